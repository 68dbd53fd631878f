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
    cost_nano bigint not null default 0,
    created_at double precision not null,
    updated_at double precision not null
);
create index lw_runs_by_status on lw_runs (status, updated_at);
create index lw_runs_by_thread on lw_runs (thread_id, created_at);

create table lw_leases (
    thread_id text primary key,
    owner text not null,
    token bigint not null,           -- counts the holders
    until double precision not null
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
    decided_at double precision,
    used_at text not null default '',  -- the pause whose judge took the decision: a decision counts on one branch
    created_at double precision not null,
    expires_at double precision
);
create index lw_approvals_by_run on lw_approvals (run_id, created_at);
create index lw_approvals_open on lw_approvals (created_at) where status = 'open';
create index lw_approvals_by_effect on lw_approvals (effect_id) where status = 'open';

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
    until double precision not null,
    result text not null default '',
    began_at double precision not null,
    ended_at double precision
);
create index lw_effects_by_run on lw_effects (run_id);
create index lw_effects_unsettled on lw_effects (digest) where status in ('claimed', 'unknown');

create table lw_spend (
    run_id text not null,
    step integer not null,
    attempt integer not null,
    model text not null,
    status text not null,             -- open | settled
    input_tokens bigint not null,
    output_tokens bigint not null,
    cost_nano bigint not null,
    opened_at double precision not null,
    primary key (run_id, step, attempt)
);

create table lw_log (
    number bigint primary key,
    at double precision not null,
    thread_id text not null,
    run_id text not null,
    event text not null,
    data text not null,
    previous text not null,
    hash text not null                -- over this record and the hash before it
);
create index lw_log_by_run on lw_log (run_id);

create table lw_log_head (
    one integer primary key check (one = 1),
    number bigint not null,           -- of the newest record: without it, records missing at the end would not show
    hash text not null
);
insert into lw_log_head (one, number, hash) values (1, 0, '');
