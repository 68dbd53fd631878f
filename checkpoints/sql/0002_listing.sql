-- Lists of runs, newest first, are read from an index, however many runs there are.

drop index lw_runs_by_status;
create index lw_runs_by_status on lw_runs (status, created_at);
create index lw_runs_by_creation on lw_runs (created_at);
