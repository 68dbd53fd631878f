-- One history a thread: a checkpoint has one child and a thread one root, save for branches that were asked for.

create unique index if not exists lw_one_child on checkpoints (thread_id, checkpoint_ns, parent_checkpoint_id)
where parent_checkpoint_id is not null
    and metadata->>'source' in ('input', 'loop') and not metadata ? 'is_fork';;

create unique index if not exists lw_one_root on checkpoints (thread_id, checkpoint_ns)
where parent_checkpoint_id is null and metadata->>'source' = 'input' and metadata->>'step' = '-1';;
