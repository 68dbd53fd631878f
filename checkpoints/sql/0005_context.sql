-- What the caller gave a run besides its message, to be restored when another process carries it on.

alter table lw_runs add column context text not null default '';   -- JSON, without what is secret; empty: nothing
