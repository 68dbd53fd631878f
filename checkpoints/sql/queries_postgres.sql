-- What PostgreSQL says in its own words. Rows that somebody else has locked are passed over: one of them must not keep
-- the rest of a process's leases waiting until they have all run out.

-- name: renew_leases
-- Of a process, all at once. One that was given back meanwhile ends at 0, and stays free.
with held as (select * from json_to_recordset(:held::json) as h (thread_id text, token bigint)),
unlocked as (
    select l.thread_id from lw_leases l join held h on l.thread_id = h.thread_id and l.token = h.token
    where l.owner = :owner and l.until > 0
    for update of l skip locked
)
update lw_leases set until = :until from unlocked where lw_leases.thread_id = unlocked.thread_id
returning lw_leases.thread_id;

-- name: renew_effects
with held as (select * from json_to_recordset(:held::json) as h (id text, generation integer)),
unlocked as (
    select e.id from lw_effects e join held h on e.id = h.id and e.generation = h.generation
    where e.owner = :owner and e.status = 'claimed'
    for update of e skip locked
)
update lw_effects set until = :until from unlocked where lw_effects.id = unlocked.id
returning lw_effects.id;

-- name: take_leases
with asked as (select value as thread_id from json_array_elements_text(:threads::json)),
unlocked as (
    select l.thread_id from lw_leases l join asked a on l.thread_id = a.thread_id
    where l.until <= :now
    for update of l skip locked
),
taken as (
    update lw_leases set owner = :owner, token = token + 1, until = :until
    from unlocked where lw_leases.thread_id = unlocked.thread_id
    returning lw_leases.thread_id, lw_leases.token
),
made as (
    insert into lw_leases (thread_id, owner, token, until)
    select a.thread_id, :owner, 1, :until from asked a
    where not exists (select 1 from lw_leases l where l.thread_id = a.thread_id)
    on conflict (thread_id) do nothing
    returning thread_id, token
)
select thread_id, token from taken union all select thread_id, token from made;

-- name: server_time
select extract(epoch from clock_timestamp())::double precision as now;

-- Sealing anew. Rows that somebody else has locked are passed over: so nobody can wait for each other.

-- name: stale_blobs
select thread_id, checkpoint_ns, channel, version, octet_length(blob) as size from checkpoint_blobs
where (thread_id, checkpoint_ns, channel, version) > (:thread_id, :checkpoint_ns, :channel, :version)
    and substr(blob, 1, 7) <> :mark
order by thread_id, checkpoint_ns, channel, version limit :limit;

-- name: find_blob
select thread_id, checkpoint_ns, channel, version, type, blob as value from checkpoint_blobs
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and channel = :channel and version = :version for update skip locked;

-- name: reseal_blob
update checkpoint_blobs set blob = :value
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and channel = :channel and version = :version;

-- name: stale_writes
select thread_id, checkpoint_ns, checkpoint_id, task_id, idx, octet_length(blob) as size from checkpoint_writes
where (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) > (:thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :idx)
    and substr(blob, 1, 7) <> :mark
order by thread_id, checkpoint_ns, checkpoint_id, task_id, idx limit :limit;

-- name: find_write
select thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob as value from checkpoint_writes
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id
    and task_id = :task_id and idx = :idx for update skip locked;

-- name: reseal_write
update checkpoint_writes set blob = :value
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id
    and task_id = :task_id and idx = :idx;

-- name: stale_metadata
select thread_id, checkpoint_ns, checkpoint_id, octet_length(metadata::text) as size from checkpoints
where (thread_id, checkpoint_ns, checkpoint_id) > (:thread_id, :checkpoint_ns, :checkpoint_id)
    and coalesce(substr(metadata->>'sealed', 1, 9), '') <> :mark
order by thread_id, checkpoint_ns, checkpoint_id limit :limit;

-- name: find_metadata
select thread_id, checkpoint_ns, checkpoint_id, coalesce(metadata->>'sealed', '') as sealed from checkpoints
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id for update skip locked;

-- name: reseal_metadata
update checkpoints set metadata = jsonb_set(metadata, '{sealed}', to_jsonb(:sealed::text))
where thread_id = :thread_id and checkpoint_ns = :checkpoint_ns and checkpoint_id = :checkpoint_id;
