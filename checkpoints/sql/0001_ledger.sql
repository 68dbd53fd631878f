-- The ledger: what must be atomic across processes. Times are seconds since the epoch, money is nano-dollars.

create table lw_runs (
    id text primary key,
    thread_id text not null,
    agent text not null,              -- import reference, from which another process loads the agent; may be empty
    task text not null,
    input text not null default '',   -- the message of a run that was started but not yet taken in
    status text not null,
    reason text not null default '',
    cancel_by text not null default '',
    worker text not null default '',
    cost_nano integer not null default 0,
    created_at real not null,
    updated_at real not null
);
create index lw_runs_by_status on lw_runs (status, updated_at);
create index lw_runs_by_thread on lw_runs (thread_id, created_at);

create table lw_leases (
    thread_id text primary key,
    owner text not null,
    token integer not null,           -- counts the holders
    until real not null
);

create table lw_approvals (
    id text primary key,
    run_id text not null,
    thread_id text not null,
    question text not null,           -- tool_approval | outcome_unknown
    tool text not null,
    args text not null,
    payload text not null,
    effect_id text not null default '',
    status text not null,             -- open | decided
    decision text not null default '',
    decided_by text not null default '',
    decided_at real,
    created_at real not null,
    expires_at real
);
create index lw_approvals_by_run on lw_approvals (run_id, created_at);
create index lw_approvals_open on lw_approvals (created_at) where status = 'open';

create table lw_effects (
    id text primary key,
    key text not null,
    digest text not null,             -- over tool and canonical arguments
    tool text not null,
    run_id text not null,
    thread_id text not null,
    status text not null,             -- claimed | done | failed | unknown
    owner text not null,
    generation integer not null,      -- counts the claims
    until real not null,
    result text not null default '',
    began_at real not null,
    ended_at real
);
create index lw_effects_by_run on lw_effects (run_id);

create table lw_spend (
    run_id text not null,
    step integer not null,
    attempt integer not null,
    model text not null,
    status text not null,             -- open | settled
    input_tokens integer not null,
    output_tokens integer not null,
    cost_nano integer not null,
    opened_at real not null,
    primary key (run_id, step, attempt)
);

create table lw_log (
    number integer primary key,
    at real not null,
    thread_id text not null,
    run_id text not null,
    event text not null,
    data text not null,
    previous text not null,
    hash text not null                -- over this record and the hash before it
);
create index lw_log_by_run on lw_log (run_id);
