-- What SQLite says in its own words.

-- name: renew_leases
-- Of a process, all at once. One that was given back meanwhile ends at 0, and stays free.
update lw_leases set until = :until
from (select json_extract(value, '$.thread_id') as thread_id, json_extract(value, '$.token') as token
    from json_each(:held)) as held
where lw_leases.thread_id = held.thread_id and lw_leases.token = held.token
    and lw_leases.owner = :owner and lw_leases.until > 0
returning thread_id;

-- name: renew_effects
update lw_effects set until = :until
from (select json_extract(value, '$.id') as id, json_extract(value, '$.generation') as generation
    from json_each(:held)) as held
where lw_effects.id = held.id and lw_effects.generation = held.generation
    and lw_effects.owner = :owner and lw_effects.status = 'claimed'
returning id;

-- name: take_leases
insert into lw_leases (thread_id, owner, token, until)
select value, :owner, 1, :until from json_each(:threads) where true
on conflict (thread_id) do update set owner = :owner, token = lw_leases.token + 1, until = :until
where lw_leases.until <= :now
returning thread_id, token;

-- Sealing anew.

-- name: stale_states
select thread_id, checkpoint_ns, checkpoint_id, length(checkpoint) as size from checkpoints
where (thread_id, checkpoint_ns, checkpoint_id) > (:thread_id, :checkpoint_ns, :checkpoint_id)
    and substr(checkpoint, 1, 7) <> :mark
order by thread_id, checkpoint_ns, checkpoint_id limit :limit;

-- name: find_state
select thread_id, checkpoint_ns, checkpoint_id, type, cast(checkpoint as blob) as value from checkpoints
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id;

-- name: reseal_state
update checkpoints set checkpoint = :value
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id;

-- name: stale_writes
select thread_id, checkpoint_ns, checkpoint_id, task_id, idx, length(value) as size from writes
where (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) > (:thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :idx)
    and substr(value, 1, 7) <> :mark
order by thread_id, checkpoint_ns, checkpoint_id, task_id, idx limit :limit;

-- name: find_write
select thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, cast(value as blob) as value from writes
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id
    and task_id = :task_id and idx = :idx;

-- name: reseal_write
update writes set value = :value
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id
    and task_id = :task_id and idx = :idx;

-- name: stale_metadata
select thread_id, checkpoint_ns, checkpoint_id, length(metadata) as size from checkpoints
where (thread_id, checkpoint_ns, checkpoint_id) > (:thread_id, :checkpoint_ns, :checkpoint_id)
    and coalesce(substr(json_extract(cast(metadata as text), '$.sealed'), 1, 9), '') <> :mark
order by thread_id, checkpoint_ns, checkpoint_id limit :limit;

-- name: find_metadata
select thread_id, checkpoint_ns, checkpoint_id, coalesce(json_extract(cast(metadata as text), '$.sealed'), '') as sealed from checkpoints
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id;

-- name: reseal_metadata
update checkpoints set metadata = cast(json_set(cast(metadata as text), '$.sealed', :sealed) as blob)
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id;
