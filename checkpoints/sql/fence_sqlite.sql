-- One history a thread: a checkpoint has one child and a thread one root, save for branches that were asked for.
-- A unique index would do under a plain insert; LangGraph's `insert or replace` would delete the winner's row for it.

-- Who is whose child; with the child's id, so that a thread's line is read without its checkpoints.
drop index if exists lw_children;;
create index if not exists lw_line on checkpoints (thread_id, checkpoint_ns, parent_checkpoint_id, checkpoint_id);;

create trigger if not exists lw_one_child before insert on checkpoints
when new.parent_checkpoint_id is not null
    and json_extract(cast(new.metadata as text), '$.source') in ('input', 'loop')
    and json_extract(cast(new.metadata as text), '$.is_fork') is null
    and exists (
        select 1 from checkpoints
        where thread_id = new.thread_id and checkpoint_ns = new.checkpoint_ns
            and parent_checkpoint_id = new.parent_checkpoint_id and checkpoint_id <> new.checkpoint_id
            and json_extract(cast(metadata as text), '$.source') in ('input', 'loop')
            and json_extract(cast(metadata as text), '$.is_fork') is null)
begin select raise(abort, 'loopwright: this thread has moved on'); end;;

create trigger if not exists lw_one_root before insert on checkpoints
when new.parent_checkpoint_id is null
    and json_extract(cast(new.metadata as text), '$.source') = 'input'
    and json_extract(cast(new.metadata as text), '$.step') = -1
    and exists (
        select 1 from checkpoints
        where thread_id = new.thread_id and checkpoint_ns = new.checkpoint_ns
            and parent_checkpoint_id is null and checkpoint_id <> new.checkpoint_id
            and json_extract(cast(metadata as text), '$.source') = 'input'
            and json_extract(cast(metadata as text), '$.step') = -1)
begin select raise(abort, 'loopwright: this thread has moved on'); end;;
