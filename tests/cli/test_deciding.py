"""People's answers on the command line: each counts once, and carries its run on there and then."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.cli.terminal import Terminal

ORDER = "Refund my order A100. Today is 2026-10-13."

PAYER = '''
from loopwright import ask, create_agent, tool
from loopwright.testing import ScriptedModel, call


@tool(effect="write")
def pay(number: int) -> str:
    """Pay one bill, by its number; each bill is paid once only. Use it for open bills."""
    with open("paid.txt", "a") as book:
        book.write(f"{number}\\n")
    return f"bill {number} is paid"


def plan(messages):
    """Pay one bill, then say what came of it."""
    return messages[-1].text if messages[-1].type == "tool" else call("pay", number=7)


agent = create_agent(ScriptedModel([plan] * 9), [pay])
'''


@pytest.fixture(name="asked")
def ask_for_a_refund(terminal: Terminal) -> Any:
    """A refund of 250000 that waits for a person."""
    return terminal.ask(ORDER)


def test_the_second_approval_is_told_who_was_first(terminal: Terminal, asked: Any) -> None:
    """It changes nothing, and exits with 0: what it wanted is what counts."""
    assert 0 == terminal.run("approve", asked["id"], "--by", "ana").code
    again = terminal.run("approve", asked["id"], "--by", "ben")
    assert 0 == again.code
    assert "was already approved by ana on 20" in again.out
    assert "nothing was changed" in again.out
    assert [("A100", 250000)] == terminal.refunds()


def test_another_decision_that_comes_late_is_told_so(terminal: Terminal, asked: Any) -> None:
    """It exits with 1, names who decided what, and in JSON says that it was not accepted."""
    terminal.run("approve", asked["id"], "--by", "ana")
    late = terminal.run("reject", asked["id"], "--by", "ben", "--json")
    told = late.data
    assert (1, False, {"type": "approve"}, "ana") == (late.code, told["accepted"], told["decision"], told["by"])
    assert ("succeeded", "answered") == (told["run"]["status"], told["run"]["stop_reason"])


def test_a_rejected_refund_is_never_paid(terminal: Terminal, asked: Any) -> None:
    """The answer tells the customer so, with the reason."""
    rejected = terminal.run("reject", asked["id"], "--by", "ana", "--reason", "the box was empty", "--json")
    assert (0, "succeeded") == (rejected.code, rejected.data["run"]["status"])
    assert "the box was empty" in rejected.data["run"]["answer"]
    assert [] == terminal.refunds()


@pytest.mark.parametrize(
    "change", [["amount=40000"], ["--args", '{"order_id": "A100", "amount": 40000}'], ['amount="40000"']]
)
def test_an_edited_refund_is_paid_as_edited(terminal: Terminal, asked: Any, change: list[str]) -> None:
    """40000 instead of 250000, however it is typed; the answer says what was decided and paid."""
    edited = terminal.run("edit", asked["id"], "--by", "ana", *change)
    assert 0 == edited.code
    assert "edited by ana" in edited.lines[0]
    assert "Done: 40000 was refunded" in edited.out
    assert [("A100", 40000)] == terminal.refunds()


def test_the_same_edit_twice_is_the_same_decision(terminal: Terminal, asked: Any) -> None:
    """A late edit exits with 0 if it wanted the same arguments, else with 1, and shows those that count."""
    terminal.run("edit", asked["id"], "--by", "ana", "amount=40000")
    assert 0 == terminal.run("edit", asked["id"], "--by", "ben", "amount=40000").code
    other = terminal.run("edit", asked["id"], "--by", "ben", "amount=50000")
    assert 1 == other.code
    assert "amount=40000" in other.out


def test_an_edit_can_name_another_tool(terminal: Terminal, asked: Any) -> None:
    """Instead of paying, the matter is handed over: no refund, and the run ends escalated."""
    whole = '{"reason": "a person should look at this"}'
    edited = terminal.run("edit", asked["id"], "--by", "ana", "--tool", "escalate", "--args", whole, "--json")
    assert (4, "escalated") == (edited.code, edited.data["run"]["stop_reason"])
    assert [] == terminal.refunds()


def test_a_response_stands_in_for_the_tool(terminal: Terminal, asked: Any) -> None:
    """The tool does not run; the model goes on with the text."""
    responded = terminal.run("respond", asked["id"], "the bank has paid already", "--by", "ana", "--json")
    step = responded.data["run"]["trail"][-1]
    assert (0, "answered", "ana") == (responded.code, step["outcome"], step["by"])
    assert "the bank has paid already" in step["observation"]
    assert [] == terminal.refunds()


def test_a_cancelled_run_asks_nothing_any_more(terminal: Terminal, asked: Any) -> None:
    """Its question is withdrawn, a late approval pays nothing, and a second cancellation names the first."""
    cancelled = terminal.run("cancel", asked["run_id"][:6], "--by", "ana")
    assert 0 == cancelled.code
    assert "cancelled (cancelled)" in cancelled.out
    assert [] == terminal.open_questions()
    late = terminal.run("approve", asked["id"], "--by", "ben")
    assert 1 == late.code
    assert "was already withdrawn by ana" in late.out
    again = terminal.run("cancel", asked["run_id"], "--by", "ben")
    assert 0 == again.code
    assert "was already cancelled by ana" in again.out
    assert [] == terminal.refunds()


def test_a_run_that_has_ended_cannot_be_cancelled(terminal: Terminal, asked: Any) -> None:
    """It is told how it ended, and the exit code is 1."""
    terminal.run("approve", asked["id"], "--by", "ana")
    late = terminal.run("cancel", asked["run_id"], "--by", "ben")
    assert 1 == late.code
    assert "has already ended" in late.out


def test_a_refused_edit_leaves_the_question_open(terminal: Terminal, asked: Any) -> None:
    """Over the cap, of a wrong type, with an argument that the tool does not have: told, and nothing is lost."""
    for change in ("amount=900000", "amount=much", "amont=5"):
        refused = terminal.run("edit", asked["id"], "--by", "ana", change)
        assert (1, 1) == (refused.code, refused.err.count("\n"))
        assert "the edited call cannot run" in refused.err
    assert [asked["id"]] == [each["id"] for each in terminal.open_questions()]


def test_an_expired_question_takes_no_answer(terminal: Terminal) -> None:
    """A late approval is told so and pays nothing; `recover` carries the run on without the call."""
    terminal.write("payer.py", PAYER.replace("[pay])", "[pay], permissions=[ask('pay', expires_in=60)])"))
    asked = terminal.ask("Pay my bill.", "--agent", "payer:agent")
    with closing(sqlite3.connect(terminal.folder / ".loopwright" / "runs.db")) as database, database:
        database.execute("update lw_approvals set expires_at = expires_at - 60")
    late = terminal.run("approve", asked["id"], "--by", "ana")
    assert 1 == late.code
    assert "has expired unanswered on 20" in late.out
    recovered = terminal.run("recover")
    assert 0 == recovered.code
    assert "not run: nobody approved it in time" in recovered.out
    assert not (terminal.folder / "paid.txt").exists()


@pytest.fixture(name="unknown")
def kill_after_the_payment(terminal: Terminal) -> Any:
    """A payment of which nobody knows: its process died, and its tool cannot verify."""
    terminal.write("payer.py", PAYER)
    asked = terminal.ask("Pay my bill.", "--agent", "payer:agent")
    soon = {"LOOPWRIGHT_LEASE_SECONDS": "0.2"}
    killed = terminal.run("approve", asked["id"], "--by", "ana", crash_at="after_effect", **soon)
    assert -signal.SIGKILL == killed.code
    resumed = terminal.run("resume", asked["run_id"], "--json")
    assert 3 == resumed.code
    (question,) = resumed.data["approvals"]
    assert ("outcome_unknown", ["respond", "reject"]) == (question["question"], question["allowed"])
    return question


def test_an_unknown_outcome_is_asked_as_its_own_kind(terminal: Terminal, unknown: Any) -> None:
    """The inbox shows the three ways to answer; an approval is refused, and the question stays open."""
    shown = terminal.run("inbox").out
    assert "did this call happen?" in shown
    key = terminal.run("show", unknown["run_id"], "--json").data["effects"][0]["key"]
    assert f", under the idempotency key {key}\n" in shown
    assert f'loopwright resolve {unknown["effect_id"][:6]} --by NAME --happened "RESULT"' in shown
    assert "--not-happened" in shown
    assert f"loopwright reject {unknown['id'][:6]} --by NAME" in shown
    refused = terminal.run("approve", unknown["id"], "--by", "ana")
    assert 1 == refused.code
    assert "'approve' cannot be taken here; take one of: respond, reject" in refused.err


def test_what_happened_is_not_done_again(terminal: Terminal, unknown: Any) -> None:
    """The text is the tool's result; a second word about it comes late."""
    resolved = terminal.run("resolve", unknown["effect_id"][:6], "--by", "ana", "--happened", "paid, says the bank")
    assert 0 == resolved.code
    assert "reported as happened by ana" in resolved.lines[0]
    assert "paid, says the bank" in resolved.lines
    late = terminal.run("resolve", unknown["effect_id"], "--by", "ben", "--not-happened")
    assert 1 == late.code
    assert "was already reported as happened by ana on 20" in late.out
    assert "7\n" == (terminal.folder / "paid.txt").read_text()


def test_what_did_not_happen_is_asked_about_anew(terminal: Terminal, unknown: Any) -> None:
    """After --not-happened the call waits for an approval again, and runs under a new claim."""
    asked_again = terminal.run("resolve", unknown["effect_id"], "--by", "ana", "--not-happened", "--json")
    (question,) = asked_again.data["run"]["approvals"]
    assert (3, "tool_approval") == (asked_again.code, question["question"])
    approved = terminal.run("approve", question["id"], "--by", "ana")
    assert 0 == approved.code
    assert "bill 7 is paid" in approved.lines


LEADS = """
from loopwright import ask, create_agent, tool
from loopwright.testing import ScriptedModel, call


@tool(effect="write")
def pay(number: int) -> str:
    \"\"\"Pay one bill, by its number; each bill is paid once only. Use it for open bills.\"\"\"
    with open("paid.txt", "a") as book:
        book.write(f"{number}\\n")
    return f"bill {number} is paid"


def plan(messages):
    return messages[-1].text if messages[-1].type == "tool" else call("pay", number=7)


rule = ask("pay", role="lead", number=2, not_requester=True, expires_in=3600, decisions=["approve"])
agent = create_agent(ScriptedModel([plan] * 9), [pay], permissions=[rule])
"""


def test_two_leads_approve(terminal: Terminal) -> None:
    """The inbox says who may decide, who has, and until when; whoever may not is told why; the second one decides."""
    terminal.write("leads.py", LEADS)
    asked = terminal.ask("Pay bill 7.", "--agent", "leads:agent", "--requester", "lea")
    inbox = terminal.run("inbox").out
    assert "who: 2 different people with the role lead, not lea" in inbox
    assert "unanswered, it counts as rejected in" in inbox
    assert f"loopwright approve {asked['id'][:6]} --by NAME --role lead" in inbox
    assert "loopwright edit" not in inbox
    lead = ("--role", "lead")
    for by, told in ((["--by", "ana"], "has not the role 'lead'"), (["--as", "lea", *lead], "lea requested this run")):
        refused = terminal.run("approve", asked["id"], *by)
        assert (1, True) == (refused.code, told in refused.err)
    first = terminal.run("approve", asked["id"], "--as", "ana", *lead, "--json")
    assert (3, True, ["ana"], 1) == (first.code, *(first.data[name] for name in ("accepted", "votes", "missing")))
    again = terminal.run("approve", asked["id"], "--as", "ana", *lead)
    assert "you have approved it before; 1 of 2 have approved: ana" in again.out
    assert "1 of 2 have approved: ana" in terminal.run("inbox").out
    second = terminal.run("approve", asked["id"], "--as", "ben", *lead)
    assert (0, True) == (second.code, "approved by ana, ben" in second.lines[0])
    assert "7\n" == (terminal.folder / "paid.txt").read_text(encoding="utf-8")
    log = terminal.run("log").out
    assert "voted" in log
    assert "pay: approved by ben (lead); number=7" in log
    assert "pay: approve by ana, ben; number=7" in log


ASKER = '''
from loopwright import create_agent
from loopwright.testing import ScriptedModel, call
from loopwright.tools import ask_human


def plan(messages):
    """Ask for a colour, then repeat it."""
    asked = call("ask_human", question="Which colour?", choices=["red", "blue"])
    return messages[-1].text if messages[-1].type == "tool" else asked


agent = create_agent(ScriptedModel([plan] * 9), [ask_human])
'''


def test_a_question_of_the_model_is_answered(terminal: Terminal) -> None:
    """The inbox shows the question and how to answer; what is no choice is refused, and the answer carries it on."""
    (terminal.folder / "asker.py").write_text(ASKER)
    waiting = terminal.run("run", "Paint it.", "--agent", "asker:agent", "--json").data
    id_ = waiting["approvals"][0]["id"]
    shown = terminal.run("inbox").out
    assert "asked: Which colour? Answer with one of: red, blue." in shown
    assert f'loopwright respond {id_[:6]} --by NAME "…"' in shown
    assert "loopwright approve" not in shown
    wrong = terminal.run("respond", id_, "green", "--by", "ana")
    assert (1, True) == (wrong.code, "answer with one of: red, blue" in wrong.err)
    right = terminal.run("respond", id_, "blue", "--by", "ana", "--json")
    assert ("succeeded", "blue") == (right.data["run"]["status"], right.data["run"]["answer"])
