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
