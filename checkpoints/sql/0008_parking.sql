-- What waits for a rate stands beside what waits for a person; each is listed and counted from an index of its own,
-- however much there is of the other.

drop index lw_approvals_open;
create index lw_approvals_asked on lw_approvals (created_at, id) where status = 'open' and question <> 'parked';
create index lw_approvals_parked on lw_approvals (tool, expires_at) where status = 'open' and question = 'parked';
create index lw_approvals_due on lw_approvals (expires_at) where status = 'open';
create index lw_approvals_reminders on lw_approvals (remind_at) where status = 'open' and reminded_at is null;

create table lw_rate_windows (
    name text primary key,
    seconds double precision not null -- the longest that any rate of that name looks back: its calls are kept for so long
);
