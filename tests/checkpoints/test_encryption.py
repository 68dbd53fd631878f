"""Encryption at rest: nothing to read in the database, and nothing that was put there by others is believed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from tests.world.plans import planned
from tests.world.stores import Store
from tests.world.stories import ANSWER, build_shop, finish, invoke, wait_at_question
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, create_agent, open_checkpoints
from loopwright.errors import ConfigurationError, StorageCorrupt
from loopwright.testing import call

OLD, NEW = b"o" * 32, b"n" * 32
SECRETS = ("the-task", "the-argument", "DELIVERED", "the-answer", "the-metadata", "paid 5 for", "the-reason")


def tell(checkpoints: Checkpoints) -> None:
    """Leave each secret in the database: two runs, one of them by plain invoke with metadata of the caller's."""
    turns = [call("look", order_id="the-argument"), call("pay", order_id="the-argument", amount=5), "the-answer"]
    agent = create_agent(planned(turns), [Till().look(), Till().pay()], checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "a"}, "metadata": {"note": "the-metadata"}}
    invoke(agent, "the-task", config)
    runs = SyncRuns(agent, checkpoints)
    for decision in ({"type": "approve"}, {"type": "reject", "message": "the-reason"}):
        waiting = runs.run("the-task", thread_id=decision["type"])
        runs.decide(waiting.approvals[0].id, decision, by="ana")
        assert "the-answer" == runs.wait(waiting.run_id).answer


@pytest.mark.parametrize("write_behind", [True, False])
def test_nothing_can_be_read(kept: Store, write_behind: bool) -> None:  # noqa: FBT001 -- a column
    """Neither what was said nor arguments, results, reasons, answers or metadata; without encryption, all of it is."""
    with open_checkpoints(kept.url, write_behind=write_behind, encryption=[NEW]) as checkpoints:
        tell(checkpoints)
        assert [] == [secret for secret in SECRETS if secret in kept.text()]
    assert [] == [secret for secret in SECRETS if secret in kept.text()]


def test_without_encryption_it_can_be_read(kept: Store) -> None:
    """So that the test before shows something."""
    with open_checkpoints(kept.url) as checkpoints:
        tell(checkpoints)
        assert [] == [secret for secret in SECRETS if secret not in kept.text()]


def test_single_values_of_other_graphs_are_hidden_too(kept: Store) -> None:
    """A channel that holds a mere text or number is sealed like any other."""
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"note": "the-answer", "number": 5, "nothing": None}
        versions: Any = dict.fromkeys(checkpoint["channel_values"], checkpoints.saver.get_next_version(None, None))
        checkpoint["channel_versions"] = versions
        checkpoints.saver.put(config, checkpoint, {"source": "input", "step": -1}, versions)
        found = checkpoints.saver.get_tuple(config)
        assert found is not None
        assert checkpoint["channel_values"] == found.checkpoint["channel_values"]
        assert "the-answer" not in kept.text()


def test_what_is_sealed_can_be_carried_on(kept: Store) -> None:
    """Another opening with the same key decides, resumes, lists by metadata and verifies the log."""
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        (asked,) = runs.approvals()
        assert {"order_id": "A1", "amount": 5} == asked.args
        runs.decide(asked.id, {"type": "approve"}, by="ana")
        assert ANSWER == runs.wait(waiting.run_id).answer
        assert [("A1", 5)] == till.paid
        assert checkpoints.ledger.log.verify().is_whole


STATE = {"sqlite": ("checkpoints", "checkpoint"), "postgres": ("checkpoint_blobs", "blob")}
WRITES = {"sqlite": ("writes", "value"), "postgres": ("checkpoint_writes", "blob")}


def flip(store: Store, table: str, column: str) -> None:
    """Change one bit in each value of a column that holds bytes."""
    if store.kind == "postgres":
        flipped = f"set_byte({column}, length({column}) - 1, get_byte({column}, length({column}) - 1) # 1)"
        store.execute(f"update {table} set {column} = {flipped} where thread_id = 'waiting'")  # noqa: S608 -- ours
        return
    rows = store.execute(f"select rowid, hex({column}) from {table} where thread_id = 'waiting'")  # noqa: S608 -- ours
    for rowid, digits in rows:
        text = f"{digits[:-1]}{int(digits[-1], 16) ^ 1:x}"
        store.execute(f"update {table} set {column} = x'{text}' where rowid = {rowid}")  # noqa: S608 -- ours


def tamper_state(store: Store) -> None:
    """Change what a checkpoint holds."""
    flip(store, *STATE[store.kind])


def tamper_writes(store: Store) -> None:
    """Change what tasks wrote."""
    flip(store, *WRITES[store.kind])


def swap(store: Store, table: str, column: str, alike: str = "") -> None:
    """Put what another thread holds in its place."""
    source = f"select {column} from {table} other where other.thread_id = 'done' {alike} limit 1"  # noqa: S608 -- ours
    filled = f"update {table} set {column} = coalesce(({source}), {column}) where thread_id = 'waiting'"  # noqa: S608
    store.execute(filled)


def swap_state(store: Store) -> None:
    """Take another thread's checkpoint, or channel."""
    table, column = STATE[store.kind]
    swap(store, table, column, "" if store.kind == "sqlite" else "and other.channel = checkpoint_blobs.channel")


def swap_writes(store: Store) -> None:
    """Take what another thread's tasks wrote to the same channel."""
    table, column = WRITES[store.kind]
    swap(store, table, column, f"and other.channel = {table}.channel")


def swap_metadata(store: Store) -> None:
    """Take another thread's metadata."""
    swap(store, "checkpoints", "metadata")


def write_plain_metadata(store: Store) -> None:
    """Put metadata in the clear."""
    value = '{"source": "loop", "step": 1}'
    store.execute(f"update checkpoints set metadata = '{value}' where thread_id = 'waiting'")  # noqa: S608 -- ours


def write_plain_state(store: Store) -> None:
    """Say that a value is not sealed, and put it in the clear."""
    table, column = STATE[store.kind]
    value = "'\\x80'::bytea" if store.kind == "postgres" else "x'80'"
    store.execute(f"update {table} set type = 'msgpack', {column} = {value} where thread_id = 'waiting'")  # noqa: S608


@pytest.mark.parametrize(
    "attack",
    [
        tamper_state,
        tamper_writes,
        swap_state,
        swap_writes,
        swap_metadata,
        write_plain_metadata,
        write_plain_state,
    ],
)
def test_checkpoints_that_were_touched_are_refused(kept: Store, attack: Callable[[Store], None]) -> None:
    """Changed by a bit, taken from another thread, or in the clear: reading and carrying on raise."""
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        finish(agent, checkpoints)
        before = len(till.paid)
        waiting = wait_at_question(agent, checkpoints)
    attack(kept)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        with pytest.raises(StorageCorrupt):
            runs.get(waiting.run_id)
        with pytest.raises(StorageCorrupt):
            runs.decide(waiting.approvals[0].id, {"type": "approve"}, by="ana")
        assert before == len(till.paid)


@pytest.mark.parametrize(
    "statement",
    [
        "update lw_approvals set args = '{\"amount\": 5000}' where status = 'open'",
        "update lw_approvals set args = (select o.args from lw_approvals o where o.status = 'decided')",
        "update lw_approvals set args = payload where status = 'open'",
        "update lw_approvals set payload = 'bm90IHNlYWxlZA==' where status = 'open'",
    ],
)
def test_questions_that_were_touched_are_refused(kept: Store, statement: str) -> None:
    """In the clear, of another row or column, or no sealed text at all: nobody is asked about other arguments."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        finish(agent, checkpoints)
        wait_at_question(agent, checkpoints)
        kept.execute(statement)
        with pytest.raises(StorageCorrupt):
            SyncRuns(agent, checkpoints).approvals()


def test_encryption_over_what_is_plain_is_refused(kept: Store) -> None:
    """A database that was written in the clear is not read as if it had been sealed."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints, pytest.raises(StorageCorrupt, match="encrypted"):
        SyncRuns(agent, checkpoints).get(waiting.run_id)


def test_what_is_encrypted_is_not_opened_without_a_key(kept: Store) -> None:
    """Else its texts would be shown as gibberish, and its log as tampered with."""
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        wait_at_question(build_shop(Till()), checkpoints)
    with pytest.raises(ConfigurationError, match=r"is encrypted; give its key: .*encryption=\[key\]"):
        open_checkpoints(kept.url)


def test_an_encrypted_database_says_so(kept: Store) -> None:
    """From its set-up on, before anything is recorded that could tell by its form."""
    open_checkpoints(kept.url, encryption=[NEW]).close()
    with pytest.raises(ConfigurationError, match="is encrypted; give its key"):
        open_checkpoints(kept.url)


def test_a_key_given_by_mistake_changes_nothing(kept: Store) -> None:
    """A database that was written in the clear does not say that it is encrypted; without the key it is as before."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
    open_checkpoints(kept.url, encryption=[NEW]).close()
    with open_checkpoints(kept.url) as checkpoints:
        assert waiting.run_id == SyncRuns(agent, checkpoints).get(waiting.run_id).run_id


def test_keys_rotate(kept: Store) -> None:
    """The new one seals; the old one opens as long as it is given; once it is not, the error says what is missing."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url, encryption=[OLD]) as checkpoints:
        old = finish(agent, checkpoints, "old")
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        assert old.messages == runs.get(old.run_id).messages
        new = finish(agent, checkpoints, "new")
        carried_on = finish(agent, checkpoints, "old", "Again.")
        assert [message.text for message in old.messages] == [
            message.text for message in carried_on.messages[: len(old.messages)]
        ]
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        assert new.messages == runs.get(new.run_id).messages
        with pytest.raises(StorageCorrupt, match="add the old key"):
            runs.get(old.run_id)


@pytest.mark.parametrize("keys", [[b"short"], [NEW, b""], [b"x" * 33]])
def test_a_key_has_32_bytes(keys: list[bytes]) -> None:
    """Anything else is refused, with how to make one."""
    with pytest.raises(ConfigurationError, match="32 bytes"):
        open_checkpoints("memory:", encryption=keys)


@pytest.mark.parametrize(
    ("extra", "package", "url"),
    [("encryption", "cryptography.exceptions", "memory:"), ("postgres", "psycopg", "postgresql:///x")],
)
def test_an_extra_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, extra: str, package: str, url: str) -> None:
    """The error says what to install."""
    for name in ("cipher", "postgres", "postgres_store"):
        monkeypatch.delitem(sys.modules, f"loopwright.checkpoints.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=rf"loopwright\[{extra}\]"):
        open_checkpoints(url, encryption=[NEW])
