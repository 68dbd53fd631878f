-- Every query of the ledger, by name; `queries_sqlite.sql` and `queries_postgres.sql` hold those that differ.

-- name: start_run
-- A run that was asked for and is not yet taken in; starting it again changes nothing.
insert into lw_runs
    (id, thread_id, agent, task, input, status, requester, labels, context, state, created_at, updated_at)
values
    (:id, :thread_id, :agent, :task, :input, 'running', :requester, :labels, :context, :state, :now, :now)
on conflict (id) do nothing;

-- name: begin_run
-- The ring has taken the task in.
insert into lw_runs (id, thread_id, agent, task, status, requester, labels, created_at, updated_at)
values (:id, :thread_id, :agent, :task, 'running', :requester, :labels, :now, :now)
on conflict (id) do update set input = '', state = '', updated_at = :now;

-- name: set_run_status
-- Saying again that it waits must not move `updated_at`: what was decided after that is still to be carried out.
update lw_runs set status = :status, reason = :reason,
    cost_nano = case when cost_nano > :cost_nano then cost_nano else :cost_nano end, updated_at = :now
where id = :id and status in ('running', 'waiting') and status <> :status;

-- name: reopen_run
-- A branch of its thread goes on where it had ended.
update lw_runs set status = 'running', reason = '', updated_at = :now
where id = :id and status not in ('running', 'waiting')
returning id;

-- name: set_run_worker
-- `updated_at` stays: it says since when a run waits, and what was decided after that is still to be carried out.
update lw_runs set worker = :worker where id = :id;

-- name: cancel_run
update lw_runs set cancel_by = :by, updated_at = :now
where id = :id and cancel_by = '' and status in ('running', 'waiting')
returning id;

-- name: extend_run
-- Compare and set: of two that add at one time, one does.
update lw_runs set status = 'running', reason = '', added = :added, updated_at = :now
where id = :id and status = 'stopped' and added = :before
returning id;

-- name: find_run
select * from lw_runs where id = :id;

-- name: find_runs_by_prefix
select id from lw_runs where substr(id, 1, length(:prefix)) = :prefix order by id limit 3;

-- Lists: a query for each choice, since one for all of them could use no index. Each says until when a run is parked.

-- name: list_runs
select r.*,
    (select max(a.expires_at) from lw_approvals a
        where a.run_id = r.id and a.status = 'open' and a.question = 'parked') as parked_until
from lw_runs r where r.created_at >= :since and r.created_at < :before order by r.created_at desc limit :limit;

-- name: list_runs_of_status
select r.*,
    (select max(a.expires_at) from lw_approvals a
        where a.run_id = r.id and a.status = 'open' and a.question = 'parked') as parked_until
from lw_runs r where r.status = :status and r.created_at >= :since and r.created_at < :before
order by r.created_at desc limit :limit;

-- name: list_runs_of_thread
select r.*,
    (select max(a.expires_at) from lw_approvals a
        where a.run_id = r.id and a.status = 'open' and a.question = 'parked') as parked_until
from lw_runs r where r.thread_id = :thread_id and (:status = '' or r.status = :status)
    and r.created_at >= :since and r.created_at < :before
order by r.created_at desc limit :limit;

-- name: unfinished_runs
-- What a crashed worker may have left: running, without a live lease on its thread; waiting and cancelled, decided, or
-- expired. A decision is to be carried out until a pause has taken it: whoever decides may have a clock that is behind.
-- Each reason has its index. SQLite takes a `cross join` in the order in which it stands: from the few to the many.
select r.* from lw_runs r left join lw_leases l on l.thread_id = r.thread_id and l.until > :now
where l.thread_id is null and r.id in (
    select id from lw_runs where status = 'running'
    union select id from lw_runs where status = 'waiting' and cancel_by <> ''
    union select w.id from lw_approvals a cross join lw_runs w
        where a.status = 'decided' and a.used_at = '' and w.id = a.run_id and w.status = 'waiting'
    union select w.id from lw_approvals a cross join lw_runs w
        where a.status = 'open' and a.expires_at <= :now and w.id = a.run_id and w.status = 'waiting')
order by r.created_at, r.id;

-- name: other_unfinished_runs
select * from lw_runs
where thread_id = :thread_id and thread_id <> '' and id <> :id and status in ('running', 'waiting')
order by created_at;

-- name: finished_threads
-- Threads of which every run has ended by a certain time.
select thread_id from lw_runs group by thread_id
having max(case when status in ('running', 'waiting') then 1 else 0 end) = 0 and max(updated_at) <= :before
order by thread_id;

-- name: delete_spend_of_thread
-- Of its runs that have ended: a new one may have begun meanwhile.
delete from lw_spend
where run_id in (select id from lw_runs where thread_id = :thread_id and status not in ('running', 'waiting'));

-- name: take_lease
insert into lw_leases (thread_id, owner, token, until) values (:thread_id, :owner, 1, :until)
on conflict (thread_id) do update set owner = :owner, token = lw_leases.token + 1, until = :until
where lw_leases.until <= :now
returning token;

-- name: release_lease
update lw_leases set until = 0 where thread_id = :thread_id and owner = :owner and token = :token;

-- name: drop_lease
delete from lw_leases where thread_id = :thread_id and owner = :owner and token = :token;

-- name: find_lease
select * from lw_leases where thread_id = :thread_id;

-- name: open_approval
insert into lw_approvals (id, run_id, thread_id, question, tool, args, payload, effect_id, status, needs, created_at,
    expires_at, remind_at, ordinal)
values (:id, :run_id, :thread_id, :question, :tool, :args, :payload, :effect_id, 'open', :needs, :now,
    :expires_at, :remind_at, :ordinal)
on conflict (id) do nothing;

-- name: decide_approval
-- Compare and set: one decision counts, for ever.
update lw_approvals set status = 'decided', decision = :decision, decided_by = :by, decided_at = :now
where id = :id and status = 'open'
returning id;

-- name: use_approval
-- A decision counts for the pause that it answered, however often that is judged, and for no other branch.
update lw_approvals set used_at = :used_at where id = :id and status = 'decided' and used_at in ('', :used_at)
returning id;

-- name: find_approval
select * from lw_approvals where id = :id;

-- name: find_approvals_by_prefix
select id from lw_approvals where substr(id, 1, length(:prefix)) = :prefix order by id limit 3;

-- name: open_approvals
-- What is parked waits for no person.
select * from lw_approvals where status = 'open' and question <> 'parked' order by created_at, ordinal, id limit :limit;

-- name: parked_approvals
select * from lw_approvals
where status = 'open' and question = 'parked' order by expires_at, created_at, ordinal, id limit :limit;

-- name: parked_runs
-- Until when runs of one agent wait for a rate.
select a.run_id, max(a.expires_at) as until from lw_approvals a join lw_runs r on r.id = a.run_id
where a.status = 'open' and a.question = 'parked' and r.agent = :agent group by a.run_id;

-- name: parked_ahead
-- How many wait for a rate: by what is called, a tool or a model.
select count(*) as number from lw_approvals
where status = 'open' and question = 'parked' and tool = :called and expires_at > :now;

-- name: open_approvals_of_run
select * from lw_approvals where run_id = :run_id and status = 'open' order by created_at, ordinal, id limit :limit;

-- name: cast_vote
-- One vote a person, while the question is open.
insert into lw_votes (approval_id, voter, name, number, at)
select :approval_id, :voter, :name, 1 + (select count(*) from lw_votes where approval_id = :approval_id), :now
where exists (select 1 from lw_approvals where id = :approval_id and status = 'open')
on conflict (approval_id, voter) do nothing
returning voter;

-- name: votes_of
select * from lw_votes where approval_id = :approval_id order by number;

-- name: due_approvals
-- Open questions of one agent whose time is up.
select a.* from lw_approvals a join lw_runs r on r.id = a.run_id
where a.status = 'open' and a.expires_at <= :now and r.agent = :agent order by a.expires_at, a.id;

-- name: due_reminders
-- Open questions of one agent of which somebody is to be reminded, and was not yet.
select a.* from lw_approvals a join lw_runs r on r.id = a.run_id
where a.status = 'open' and a.remind_at <= :now and a.reminded_at is null and r.agent = :agent
    and (a.expires_at is null or a.expires_at > :now)
order by a.remind_at, a.id;

-- name: claim_reminder
-- Compare and set: one worker reminds.
update lw_approvals set reminded_at = :now where id = :id and status = 'open' and reminded_at is null
returning id;

-- name: return_reminder
update lw_approvals set reminded_at = null where id = :id;

-- name: approvals_of_run
select * from lw_approvals where run_id = :run_id order by created_at, ordinal, id;

-- name: approvals_of_effect
select * from lw_approvals where effect_id = :effect_id and status = 'open';

-- name: claim_effect
insert into lw_effects (id, key, digest, tool, run_id, thread_id, status, owner, generation, until, began_at)
values (:id, :key, :digest, :tool, :run_id, :thread_id, 'claimed', :owner, 1, :until, :now)
on conflict (id) do nothing
returning *;

-- name: reclaim_effect
-- Take over what another has left, if nobody else did meanwhile.
update lw_effects set status = 'claimed', owner = :owner, generation = generation + 1, until = :until, digest = :digest,
    run_id = :run_id, thread_id = :thread_id, began_at = :now, result = '', brought = '', ended_at = null
where id = :id and generation = :generation and status = :status
returning *;

-- name: unsettled_like
-- The same call elsewhere in the thread, begun by who is gone, or with an outcome that nobody knows.
-- (The index holds these two statuses; SQLite must be told so by the same words.)
select * from lw_effects
where digest = :digest and status in ('claimed', 'unknown') and id <> :id and (run_id = :run_id or (:thread_id <> '' and thread_id = :thread_id))
    and (status = 'unknown' or (status = 'claimed' and until <= :now))
order by began_at limit 1;

-- name: settle_effect
-- Only who claimed it last may say what became of it; an outcome that was unknown may become known.
update lw_effects set status = :status, result = :result, brought = :brought, ended_at = :now
where id = :id and owner = :owner and generation = :generation and status in ('claimed', 'unknown')
returning *;

-- name: lose_effect
-- Its claim has run out: from now on its outcome is unknown.
update lw_effects set status = 'unknown'
where id = :id and generation = :generation and status = 'claimed'
returning id;

-- name: resolve_effect
-- A person, or a hook, knows: the claim's owner can say nothing any more.
update lw_effects set status = :status, result = :result, ended_at = :now, generation = generation + 1
where id = :id and status = 'unknown'
returning id;

-- name: find_effect
select * from lw_effects where id = :id;

-- name: find_effects_by_prefix
select id from lw_effects where substr(id, 1, length(:prefix)) = :prefix order by id limit 3;

-- name: effects_of_run
select * from lw_effects where run_id = :run_id order by began_at, id;

-- name: open_attempt
-- The next attempt at a step; none when the run was cancelled meanwhile, or another worker took the number.
insert into lw_spend
    (run_id, step, attempt, model, status, input_tokens, output_tokens, cost_nano, opened_at, call, charges)
select :run_id, :step, 1 + (select count(*) from lw_spend where run_id = :run_id and step = :step),
    :model, 'open', :input_tokens, :output_tokens, :cost_nano, :now, :call, :charges
where not exists (select 1 from lw_runs where id = :run_id and cancel_by <> '')
on conflict (run_id, step, attempt) do nothing
returning attempt;

-- name: settle_attempt
update lw_spend set status = 'settled', input_tokens = :input_tokens, output_tokens = :output_tokens, cost_nano = :cost_nano
where run_id = :run_id and step = :step and attempt = :attempt and status = 'open'
returning attempt;

-- name: attempts_of_step
select * from lw_spend where run_id = :run_id and step = :step and call = :call order by attempt;

-- name: attempts_of_run
select * from lw_spend where run_id = :run_id order by step, attempt;

-- name: find_budget
select * from lw_budgets where id = :id;

-- name: reserve_budget
-- Only if it fits. The first reservation of a share makes its row; its caller has looked that it fits.
insert into lw_budgets (id, name, label, since, tokens, cost_nano, updated_at)
values (:id, :name, :label, :since, :tokens, :cost_nano, :now)
on conflict (id) do update set tokens = lw_budgets.tokens + :tokens, cost_nano = lw_budgets.cost_nano + :cost_nano,
    updated_at = :now
where lw_budgets.tokens + :tokens <= :max_tokens and lw_budgets.cost_nano + :cost_nano <= :max_cost
returning id;

-- name: change_budget
update lw_budgets set tokens = tokens + :tokens, cost_nano = cost_nano + :cost_nano, updated_at = :now where id = :id;

-- name: rate_is_full
-- The oldest of the newest calls that fill the window; none while there is room.
select at from lw_rates where name = :name and at > :since order by at desc limit 1 offset :others;

-- name: count_rate
insert into lw_rates (name, at) values (:name, :now);

-- name: pull_rate
-- What was counted by a clock that was set back since counts as made now.
update lw_rates set at = :now where name = :name and at > :now;

-- name: widen_rate
insert into lw_rate_windows (name, seconds) values (:name, :seconds)
on conflict (name) do update set seconds = :seconds where lw_rate_windows.seconds < :seconds;

-- name: forget_rate
-- Not by one's own rate: another agent may have a longer one for the same tool or model.
delete from lw_rates where name = :name and at <= :now - (select seconds from lw_rate_windows where name = :name);

-- name: last_log
select number, hash from lw_log_head;

-- name: move_log_head
update lw_log_head set number = :number, hash = :hash;

-- name: append_log
-- Together with `move_log_head`.
insert into lw_log (number, at, thread_id, run_id, event, data, previous, hash)
values (:number, :at, :thread_id, :run_id, :event, :data, :previous, :hash);

-- name: forget_run
delete from lw_runs where id = :id;

-- name: forget_effects
delete from lw_effects where run_id = :id;

-- name: forget_spend
delete from lw_spend where run_id = :id;

-- name: forget_log
delete from lw_log where run_id = :id;

-- name: first_log
select data from lw_log order by number limit 1;

-- name: whole_log
select * from lw_log order by number;

-- name: log_between
select * from lw_log where at >= :since and at < :until order by at, number;

-- name: log_of_run
select * from lw_log where run_id = :run_id order by number;

-- name: release_effect
-- Nothing was begun: as if it had never been claimed.
delete from lw_effects where id = :id and owner = :owner and generation = :generation and status = 'claimed';

-- Under encryption, rows carry seals: see `row_seals.py`.

-- name: find_vote
select * from lw_votes where approval_id = :approval_id and voter = :voter;

-- name: seal_run
update lw_runs set seal = :seal where id = :id;

-- name: seal_approval
update lw_approvals set seal = :seal where id = :id;

-- name: seal_vote
update lw_votes set seal = :seal where approval_id = :approval_id and voter = :voter;

-- name: seal_effect
update lw_effects set seal = :seal where id = :id;

-- name: page_of_runs
select * from lw_runs where id > :after order by id limit 500;

-- name: page_of_approvals
select * from lw_approvals where id > :after order by id limit 500;

-- name: page_of_votes
-- All votes of a question are on one page.
select * from lw_votes where approval_id > :after order by approval_id, voter;

-- name: page_of_effects
select * from lw_effects where id > :after order by id limit 500;

-- name: sealed_since
select since, proof from lw_sealed;

-- name: mark_sealed
insert into lw_sealed (since, proof) values (:now, :proof);

-- name: add_proof
update lw_sealed set proof = :proof;

-- Sealing anew: see `resealing.py`. A sealed text begins with nine letters that tell form and key; `:mark` has those of
-- what needs nothing, `:earlier` those of the same key in the form of earlier releases.

-- name: stale_runs
select id, length(task) + length(input) + length(context) + length(state) as size from lw_runs
where id > :id and (substr(seal, 1, 9) <> :mark
    or substr(task, 1, 9) not in ('', :mark) or substr(input, 1, 9) not in ('', :mark)
    or substr(context, 1, 9) not in ('', :mark) or substr(state, 1, 9) not in ('', :mark))
order by id limit :limit;

-- name: stale_approvals
select id, length(args) + length(payload) + length(decision) as size from lw_approvals
where id > :id and (substr(seal, 1, 9) <> :mark or substr(args, 1, 9) not in ('', :mark)
    or substr(payload, 1, 9) not in ('', :mark) or substr(decision, 1, 9) not in ('', :mark))
order by id limit :limit;

-- name: stale_votes
select approval_id, voter, length(seal) as size from lw_votes
where (approval_id, voter) > (:approval_id, :voter) and substr(seal, 1, 9) <> :mark
order by approval_id, voter limit :limit;

-- name: stale_effects
select id, length(key) + length(result) + length(brought) as size from lw_effects
where id > :id and (substr(seal, 1, 9) <> :mark or substr(key, 1, 9) not in ('', :mark)
    or substr(result, 1, 9) not in ('', :mark) or substr(brought, 1, 9) not in ('', :mark))
order by id limit :limit;

-- name: stale_log
-- What this key opens stays as it is: nothing is won by a copy.
select l.number, length(l.data) as size from lw_log l left join lw_log_copies c on c.number = l.number
where l.number > :number and substr(l.data, 1, 9) not in (:mark, :earlier)
    and (c.data is null or substr(c.data, 1, 9) <> :mark)
order by l.number limit :limit;

-- name: reseal_run
update lw_runs set task = :task, input = :input, context = :context, state = :state, seal = :seal where id = :id;

-- name: reseal_approval
update lw_approvals set args = :args, payload = :payload, decision = :decision, seal = :seal where id = :id;

-- name: reseal_effect
update lw_effects set key = :key, result = :result, brought = :brought, seal = :seal where id = :id;

-- name: find_log
select * from lw_log where number = :number;

-- name: copy_log
insert into lw_log_copies (number, data) values (:number, :data) on conflict (number) do update set data = :data;

-- name: log_copies
select number, data from lw_log_copies where number between :first and :last;
