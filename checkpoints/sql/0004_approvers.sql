-- Who may decide, who has approved so far, who is to be reminded, and for whom a run was started.

alter table lw_runs add column requester text not null default '';

alter table lw_approvals add column needs text not null default '';   -- JSON; empty: one person, whoever it is
alter table lw_approvals add column remind_at double precision;
alter table lw_approvals add column reminded_at double precision;

create table lw_votes (
    approval_id text not null,
    voter text not null,              -- the name as it is compared: a person has one vote
    name text not null,
    number integer not null,          -- counts the votes of the question
    at double precision not null,
    primary key (approval_id, voter)
);
