"""Under encryption nobody without a key changes a row of the ledger: not what stays readable, and not what is empty."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.checkpoints.test_sealed_rows import KEY, NEW, SEALED
from tests.world.stores import Store
from tests.world.stories import build_shop, wait_at_question
from tests.world.till import Till

from loopwright import SyncRuns, approve, open_checkpoints, reject
from loopwright.checkpoints import Begun, ClaimRequest, ClaimStatus, EffectStatus, Ledger, NewApproval, RunRow
from loopwright.checkpoints.cipher import Cipher
from loopwright.checkpoints.database import load_queries
from loopwright.checkpoints.row_seals import FREE, GUARDED, table_of
from loopwright.errors import StorageCorrupt
from loopwright.runs.results import run_of as view
from loopwright.state import DECISIONS, Requirement, RunStatus

TWO = Requirement(roles=[], number=2, not_by="", decisions=[*DECISIONS])
PAY = ClaimRequest("e1", "key", "digest", "pay", "r1", "t", repeatable=False, own_key=True)
CHANGES = {
    "lw_approvals": [
        "status = 'open', decision = '', decided_by = '', decided_at = null",
        "decision = ''",
        "status = 'open'",
        "used_at = ''",
        "used_at = 'elsewhere'",
        "needs = ''",
        "expires_at = null",
        "expires_at = 1",
        "decided_by = 'ben'",
        "decided_at = 5",
        "tool = 'look'",
        "run_id = 'r1'",
        "effect_id = 'e1'",
        "remind_at = 5",
        "seal = ''",
        "seal = (select max(o.seal) from lw_approvals o where o.id <> lw_approvals.id)",
    ],
    "lw_votes": ["name = 'ben'", "voter = 'ben'", "number = 2", "approval_id = 'q1'", "at = 5", "seal = ''"],
    "lw_effects": [
        "status = 'failed'",
        "status = 'done'",
        "status = 'unknown'",
        "owner = 'me'",
        "generation = 7",
        "digest = 'x'",
        "tool = 'look'",
        "run_id = 'r2'",
        "thread_id = 'u'",
        "result = ''",
        "brought = ''",
        "ended_at = 5",
        "seal = ''",
    ],
    "lw_runs": [
        "cancel_by = ''",
        "requester = 'ben'",
        "labels = ''",
        "added = ''",
        "agent = 'b'",
        "thread_id = 'u'",
        "context = ''",
        "state = ''",
        "input = ''",
        "seal = ''",
    ],
}
"""What somebody may write who has no key; each row below differs from it."""


@pytest.fixture(name="sealed")
def fill(kept: Store) -> Generator[tuple[Store, Ledger]]:
    """A ledger under encryption: a question that was rejected and one with a vote, two effects, and a run."""
    with open_checkpoints(kept.url, encryption=[KEY]) as checkpoints:
        ledger = checkpoints.ledger
        start(ledger, "r1")
        ledger.runs.set_status("r1", RunStatus.STOPPED)
        assert ledger.runs.extend(run_of(ledger), {"steps": 1, "by": "ana"})
        assert ledger.cancel("r1", "ana")
        asked = [NewApproval(name, "tool_approval", "pay", {}, {}, "e9", 99.0, needs=TWO) for name in ("q1", "q2")]
        ledger.approvals.open("r2", "t", asked)
        assert ledger.decide("q1", {"type": "reject"}, "ana").accepted
        assert ledger.approvals.use(["q1"], "here")["q1"].used_at == "here"
        assert ledger.decide("q2", {"type": "approve"}, "cara").accepted
        for name, status in (("e1", EffectStatus.FAILED), ("e2", EffectStatus.UNKNOWN)):
            claim = ledger.effects.claim(replace(PAY, id=name, run_id="r3"))
            assert claim.effect is not None
            ledger.settle(claim.effect, status, "no", {"artifact": 1})
        yield kept, ledger


def start(ledger: Ledger, run_id: str) -> None:
    """Note a run with all that a run can have."""
    ledger.runs.start(
        run_id,
        thread_id="t",
        agent="a",
        message="hi",
        task="hi",
        requester="ana",
        labels={"tenant": "acme"},
        context="{}",
        state="{}",
    )


def run_of(ledger: Ledger) -> RunRow:
    """Return the run."""
    row = ledger.runs.find("r1")
    assert row is not None
    return row


def read(ledger: Ledger) -> None:
    """Read every row that is there, as whoever decides by it does."""
    run_of(ledger)
    ledger.runs.list()
    ledger.runs.list(status="running")
    ledger.runs.list(thread_id="t")
    ledger.runs.unfinished()
    ledger.approvals.list_open()
    for name in ("q1", "q2"):
        ledger.approvals.get(name)
    for name in ("e1", "e2"):
        ledger.effects.get(name)


@pytest.mark.parametrize("table", CHANGES)
def test_a_row_that_was_changed_is_refused(sealed: tuple[Store, Ledger], table: str) -> None:
    """Any column that opens a gate, emptied ones and the seal itself included; put back, it is believed again."""
    store, ledger = sealed
    store.execute(f"create table before as select * from {table}")  # noqa: S608 -- ours
    believed: list[str] = []
    for change in CHANGES[table]:
        store.execute(f"update {table} set {change}")  # noqa: S608 -- ours
        with suppress(StorageCorrupt):
            read(ledger)
            believed.append(change)
        store.run([f"delete from {table}", f"insert into {table} select * from before"])  # noqa: S608 -- ours
    assert [] == believed
    read(ledger)


def test_what_is_not_sealed_changes_freely(sealed: tuple[Store, Ledger]) -> None:
    """Times of claims, reminders and standings of runs: they open nothing, and are written without a new seal."""
    store, ledger = sealed
    store.execute("update lw_effects set until = 5")
    store.execute("update lw_approvals set reminded_at = 5")
    store.execute("update lw_runs set status = 'waiting', reason = '', worker = 'x', cost_nano = 5, updated_at = 5")
    read(ledger)


@pytest.mark.parametrize("column", ["status", "reason"])
def test_a_standing_that_nobody_wrote_is_told(sealed: tuple[Store, Ledger], column: str) -> None:
    """It is read by itself, since it is not sealed; the error says where it stands."""
    store, ledger = sealed
    store.execute(f"update lw_runs set {column} = 'lost'")  # noqa: S608 -- ours
    with pytest.raises(StorageCorrupt, match=f"the {column} of run 'r1' is none"):
        view(run_of(ledger))
    assert "r1" == run_of(ledger).id


def test_a_change_does_not_seal_what_was_changed_before(sealed: tuple[Store, Ledger]) -> None:
    """Whoever writes without having read is refused too, and nothing of it is stored."""
    store, ledger = sealed
    store.execute("update lw_runs set cancel_by = '', requester = 'ben'")
    with pytest.raises(StorageCorrupt, match="row r1 of lw_runs was changed"):
        ledger.runs.cancel("r1", "ana")
    assert [("",)] == store.execute("select cancel_by from lw_runs")


def test_a_rejection_cannot_be_taken_back(kept: Store) -> None:
    """Opened again by who has no key, a question can be neither decided nor carried out."""
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(kept.url, encryption=[KEY]) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
        runs = SyncRuns(agent, checkpoints)
        runs.decide(waiting.approvals[0].id, reject("no"), by="ana")
        kept.execute("update lw_approvals set status = 'open', decision = '', decided_by = '', decided_at = null")
        with pytest.raises(StorageCorrupt):
            runs.decide(waiting.approvals[0].id, approve(), by="ben")
        with pytest.raises(StorageCorrupt):
            runs.wait(waiting.run_id)
    assert [] == till.paid


def test_votes_cannot_be_forged(sealed: tuple[Store, Ledger]) -> None:
    """A vote that was put there, with the seal of a real one, completes no number."""
    store, ledger = sealed
    forged = "insert into lw_votes (approval_id, voter, name, number, at, seal)"
    store.execute(f"{forged} select approval_id, 'ben', 'ben', 2, at, seal from lw_votes")  # noqa: S608 -- ours
    with pytest.raises(StorageCorrupt, match="another place"):
        ledger.decide("q2", {"type": "approve"}, "dora")


def test_an_effect_does_not_happen_again(kept: Store) -> None:
    """What is done cannot be made to look as if it had failed."""
    with open_checkpoints(kept.url, encryption=[KEY]) as checkpoints:
        effects = checkpoints.ledger.effects
        claim = effects.claim(PAY)
        assert claim.effect is not None
        effects.settle(claim.effect, EffectStatus.DONE, "paid")
        kept.execute("update lw_effects set status = 'failed'")
        with pytest.raises(StorageCorrupt, match="row e1 of lw_effects was changed"):
            effects.claim(PAY)
        kept.execute("update lw_effects set status = 'done'")
        assert effects.claim(PAY).status is ClaimStatus.DONE


_RUN = "insert into lw_runs (id, thread_id, agent, task, status, created_at, updated_at)"
_ASKED = "insert into lw_approvals (id, run_id, thread_id, question, tool, args, payload, status, created_at)"
_EFFECT = (
    "insert into lw_effects (id, key, digest, tool, run_id, thread_id, status, owner, generation, until, began_at)"
)


def write_as_before(store: Store, key: bytes = KEY) -> None:
    """Leave rows as 0.2.0 wrote them: texts bound to their own row and column, without seals."""
    cipher = Cipher([key])
    task, args, payload, name = (
        cipher.seal_text(text, place)
        for text, place in (("hi", "task of r0"), ("{}", "args of q0"), ("{}", "payload of q0"), ("k", "key of e0"))
    )
    store.run(
        [
            f"{_RUN} values ('r0', 't', 'a', '{task}', 'running', 1, 1)",
            f"{_ASKED} values ('q0', 'r0', 't', 'tool_approval', 'pay', '{args}', '{payload}', 'open', 1)",
            "insert into lw_votes (approval_id, voter, name, number, at) values ('q0', 'ana', 'ana', 1, 1)",
            f"{_EFFECT} values ('e0', '{name}', 'd', 'pay', 'r0', 't', 'unknown', 'w', 1, 1, 1)",
            "delete from lw_sealed",
        ]
    )


def test_rows_of_earlier_releases_are_sealed_once(kept: Store) -> None:
    """When this one first opens them, with any key that is given; from then on, one without a seal is refused."""
    open_checkpoints(kept.url).close()
    write_as_before(kept)
    for _ in range(2):
        with open_checkpoints(kept.url, encryption=[NEW, KEY]) as checkpoints:
            assert checkpoints.ledger.approvals.get("q0").decision is None
            assert "unknown" == checkpoints.ledger.effects.get("e0").status
    tables = ["lw_runs", "lw_approvals", "lw_votes", "lw_effects"]
    assert [(0,)] * 4 == [kept.execute(f"select count(*) from {table} where seal = ''")[0] for table in tables]  # noqa: S608
    kept.execute("update lw_effects set status = 'failed', seal = ''")
    with (
        open_checkpoints(kept.url, encryption=[NEW, KEY]) as checkpoints,
        pytest.raises(StorageCorrupt, match="not sealed"),
    ):
        checkpoints.ledger.effects.get("e0")


def test_a_missing_key_seals_nothing(kept: Store) -> None:
    """The old key is asked for before anything is written; then the rows are there."""
    open_checkpoints(kept.url).close()
    write_as_before(kept)
    with pytest.raises(StorageCorrupt, match="add the old key"):
        open_checkpoints(kept.url, encryption=[NEW])
    with open_checkpoints(kept.url, encryption=[NEW, KEY]) as checkpoints:
        assert "hi" == checkpoints.ledger.runs.list()[0].task


def test_what_this_release_wrote_is_never_taken_for_old(sealed: tuple[Store, Ledger]) -> None:
    """Whoever takes seals and the note that there are any away, to have what he changed sealed, is told so."""
    store, _ = sealed
    store.run([f"update {table} set seal = ''" for table in GUARDED])  # noqa: S608 -- ours
    store.run(["delete from lw_sealed", "update lw_effects set status = 'done'"])
    with pytest.raises(StorageCorrupt, match="the note that rows are is gone"):
        open_checkpoints(store.url, encryption=[KEY])


def test_a_database_of_an_earlier_release_is_sealed(tmp_path: Path) -> None:
    """All of what 0.1.0 wrote under encryption; its log stays as it was."""
    path = Path(shutil.copy(SEALED, tmp_path / "runs.db"))
    store = Store("sqlite", f"sqlite:///{path}", path=path)
    with open_checkpoints(store.url, encryption=[KEY]) as checkpoints:
        assert checkpoints.ledger.log.verify().is_whole
        assert 2 == len(checkpoints.ledger.runs.list())
    counted = [store.execute(f"select count(*), min(length(seal)) > 0 from {table}")[0] for table in GUARDED]  # noqa: S608
    assert [(2, 1), (2, 1), (0, None), (1, 1)] == counted


def test_records_of_the_log_belong_to_their_run(kept: Store) -> None:
    """Under another run's name, or as another event, a record cannot be read."""
    with open_checkpoints(kept.url, encryption=[KEY]) as checkpoints:
        checkpoints.ledger.runs.begin("r1", thread_id="t", agent="a", task="hi", begun=Begun("m", "b"))
        kept.drop_log_triggers()
        for change in ("run_id = 'r2'", "event = 'ended'", "thread_id = 'u'", "at = 5"):
            kept.execute("create table before as select * from lw_log")
            kept.execute(f"update lw_log set {change}")  # noqa: S608 -- ours
            with pytest.raises(StorageCorrupt, match="swapped"):
                checkpoints.ledger.log.records()
            kept.run(["delete from lw_log", "insert into lw_log select * from before", "drop table before"])
        assert Begun("m", "b") == checkpoints.ledger.runs.begun("r1")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_row_of_a_guarded_table_is_known_as_its_own(dialect: str) -> None:
    """A query that returns whole rows is about the table whose rows these are, whatever it looks at beside."""
    for name, text in load_queries(dialect).items():
        if found := re.match(r"select (?:(\w+)\.)?\*", text):
            alias = f" {found[1]}" if found[1] else ""
            named = re.search(rf"from (lw_\w+){alias}\b", text)
            assert named is not None
            assert table_of(name) == named[1], name


def test_queries_that_seal_nothing_change_nothing_that_is_sealed() -> None:
    """Of both dialects; every other query that writes to such a table seals the row anew."""
    for dialect in ("sqlite", "postgres"):
        for name, text in load_queries(dialect).items():
            table = table_of(name)
            if name in FREE and table in GUARDED:
                body = re.split(r"\b(?:where|from|returning)\b", text.split(" set ", 1)[1])[0]
                assert set(re.findall(r"(\w+) = ", body)) <= GUARDED[table].free | {"seal"}, name
