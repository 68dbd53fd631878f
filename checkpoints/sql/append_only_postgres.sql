-- The log only grows: the database itself refuses to change or to delete a record.

create or replace function lw_log_is_append_only() returns trigger language plpgsql as
$$ begin raise exception 'the log is append-only'; end $$;;

create or replace trigger lw_log_append_only before update or delete on lw_log
for each row execute function lw_log_is_append_only();;

create or replace trigger lw_log_no_truncate before truncate on lw_log
for each statement execute function lw_log_is_append_only();;
