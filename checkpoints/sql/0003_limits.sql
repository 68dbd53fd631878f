-- Budgets that many runs share, and what belongs to them: labels of runs, what was added to their limits, whom an
-- attempt is charged to; the calls of priced tools among the attempts; rates.

alter table lw_runs add column labels text not null default '';    -- JSON: by which budgets are kept apart
alter table lw_runs add column added text not null default '';     -- JSON: what `extend` added, one entry each time

alter table lw_spend add column call text not null default '';     -- the place of a tool call; empty: an attempt at a model
alter table lw_spend add column charges text not null default '';  -- JSON: ids of the budgets that its cost counts in

create table lw_budgets (
    id text primary key,              -- over name, label and window
    name text not null,
    label text not null,
    since text not null,              -- the window: a day or a month, UTC; empty for ever
    tokens bigint not null,           -- reserved and spent
    cost_nano bigint not null,
    updated_at double precision not null
);

create table lw_rates (
    name text not null,
    at double precision not null
);
create index lw_rates_by_name on lw_rates (name, at);
