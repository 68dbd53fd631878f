-- What a call brings into the state beside its text, and what a caller gives the state at a run's start.

alter table lw_effects add column brought text not null default '';   -- JSON: see `Brought`; empty: nothing
alter table lw_runs add column state text not null default '';        -- JSON: channels by name, until the task is taken in
