-- The log only grows: the database itself refuses to change or to delete a record.

create trigger if not exists lw_log_no_update before update on lw_log
begin select raise(abort, 'the log is append-only'); end;;

create trigger if not exists lw_log_no_delete before delete on lw_log
begin select raise(abort, 'the log is append-only'); end;;

-- A replacing insert deletes without a trigger of its own.
create trigger if not exists lw_log_no_replace before insert on lw_log
when exists (select 1 from lw_log where number = new.number)
begin select raise(abort, 'the log is append-only'); end;;
