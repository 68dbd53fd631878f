-- The questions of one turn stand in its order, records are found by their time, and a database that is encrypted
-- says so.

alter table lw_approvals add column ordinal integer not null default 0;   -- among those that were asked together
drop index lw_approvals_asked;
create index lw_approvals_asked on lw_approvals (created_at, ordinal, id) where status = 'open' and question <> 'parked';

create index lw_log_by_time on lw_log (at);

alter table lw_sealed add column proof text not null default '';          -- a sealed text; empty: it may hold texts in the clear
