-- What is left to be carried on is found by why: however many runs wait, and whatever was withdrawn of runs that ended.
-- Two of these hold all that is asked of them, so that no row is looked up only to see that there is nothing to do.

create index lw_runs_cancelled on lw_runs (status, id) where status = 'waiting' and cancel_by <> '';
create index lw_runs_waiting on lw_runs (id, status) where status = 'waiting';
create index lw_approvals_untaken on lw_approvals (run_id, status, used_at) where status = 'decided' and used_at = '';

-- An earlier release could die between taking a decision and saying that the run goes on; a look found that by its time.
update lw_runs set status = 'running'
where status = 'waiting' and agent <> '(invoke)' and exists (
    select 1 from lw_approvals a
    where a.run_id = lw_runs.id and a.status = 'decided' and a.used_at <> '' and a.decided_at >= lw_runs.updated_at);
