"""Runs on the command line: each step is seen, a pause ends the process, another one goes on."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from tests.cli.terminal import Terminal

from loopwright.cli.text import columns
from loopwright.graphs.shop import Shop

TODAY = "Today is 2026-10-13."
QUESTION = f"Can I get a refund for my order A100? {TODAY}"
ORDER = f"Refund my order A100. {TODAY}"

SPANISH = "¿Puedo obtener un reembolso para mi pedido A100? Hoy es 2026-10-13."
PORTUGUESE = "Meu pedido A100 terá reembolso? Hoje é 2026-10-13."
SOON = {"LOOPWRIGHT_LEASE_SECONDS": "3"}
"""What a killed process held is free after 3 seconds."""
FRENCH = "Ma commande A100 sera-t-elle remboursée ? Aujourd'hui c'est 2026-10-13."

PAYER = '''
from loopwright import Effect, Limits, create_agent, tool
from loopwright.testing import ScriptedModel, call


@tool(effect="write")
def pay(number: int, effect: Effect) -> str:
    """Pay one bill, by its number; each bill is paid once only. Use it for open bills."""
    with open("paid.txt", "a") as book:
        book.write(f"{number}\\n")
    return f"bill {number} is paid"


def plan(messages):
    """Pay three bills, one after the other; the transcript says how far it is."""
    number = sum(message.type == "tool" for message in messages)
    return call("pay", number=number) if number < 3 else "All bills are paid."


agent = create_agent(ScriptedModel([plan] * 9), [pay], limits=Limits(max_steps=8))
'''


CLERK = '''
import operator
from typing import Annotated, Any

from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel, SecretStr

from loopwright import AgentState, create_agent, tool
from loopwright.testing import ScriptedModel, call


class Clerk(BaseModel):
    name: str
    pin: SecretStr


class State(AgentState):
    paid: Annotated[list[int], operator.add]


@tool(effect="write")
def pay(amount: int, runtime: ToolRuntime[Clerk, Any]) -> Command[Any]:
    """Pay an amount. Use it when asked to."""
    clerk = runtime.context
    with open("paid.txt", "a") as book:
        book.write(f"{amount} after {runtime.state['paid']} by {clerk.name} with {clerk.pin.get_secret_value()}\\n")
    return Command(update={"paid": [amount]})


agent = create_agent(
    ScriptedModel([lambda messages: "Paid." if messages[-1].type == "tool" else call("pay", amount=5)] * 9),
    [pay],
    state_schema=State,
    context_schema=Clerk,
    restore_context=lambda stored, run: {"pin": f"the pin of {stored['name']}"},
)
'''


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (QUESTION, ["Yes", "12 days ago", "within 30 days"]),
        (SPANISH, ["Sí", "hace 12 días", "30 días"]),
        (PORTUGUESE, ["Sim", "há 12 dias", "30 dias"]),
        (FRENCH, ["Oui", "il y a 12 jours", "30 jours"]),
    ],
)
def test_a_question_is_answered_in_its_language(terminal: Terminal, question: str, words: list[str]) -> None:
    """Both steps are shown, then the answer; what answers is said on stderr to be no language model."""
    ended = terminal.run("run", question)
    assert 0 == ended.code
    assert ended.lines[0].startswith("[1] lookup_order(order_id='A100') -> {")
    assert ended.lines[1].startswith("[2] refund_policy() -> {")
    for word in [*words, "2026-10-01", "250000", "succeeded (answered)"]:
        assert word in ended.out
    assert "not a language model" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(("order", "words"), [("A101", "SHIPPING"), ("A102", "2026-01-12"), ("A999", "A999")])
def test_other_orders_get_no_promise(terminal: Terminal, order: str, words: str) -> None:
    """Not delivered, delivered too long ago, unknown: the answer says why, and the run has succeeded all the same."""
    ended = terminal.run("run", QUESTION.replace("A100", order), "--json")
    assert (0, "succeeded") == (ended.code, ended.data["status"])
    assert words in ended.data["answer"]
    assert not ended.data["answer"].startswith("Yes")


def test_a_refund_waits_in_one_process_and_is_paid_in_another(terminal: Terminal) -> None:
    """The pause shows what is asked, why, and how to answer; approving elsewhere pays once, and shows the rest."""
    paused = terminal.run("run", ORDER)
    (asked,) = terminal.open_questions()
    approve = f"loopwright approve {asked['id'][:6]} --by NAME"
    assert 3 == paused.code
    for words in [
        "may this call run?",
        "issue_refund(order_id='A100', amount=250000, account='')",
        "why: a refund above 20000",
        "rule: ask('issue_refund'",
        approve,
        "edit",
        "reject",
        "respond",
    ]:
        assert words in paused.out
    assert [] == terminal.refunds()

    approved = terminal.run("approve", asked["id"][:6], "--by", "ana")
    assert 0 == approved.code
    assert "approved by ana" in approved.lines[0]
    assert approved.lines[1].startswith("[3] issue_refund(order_id='A100', amount=250000, account='') -> {")
    assert "Done: 250000 was refunded for order A100" in approved.out
    assert [("A100", 250000)] == terminal.refunds()
    assert [] == terminal.open_questions()


def test_a_context_comes_back_in_another_process(terminal: Terminal) -> None:
    """Its plain fields from the database, its secret from the hook that the agent's module has; its channels too."""
    terminal.write("clerk.py", CLERK)
    (terminal.folder / "context.json").write_text('{"name": "Ana", "pin": "hunter2"}')
    given = ["--context", "@context.json", "--state", '{"paid": [1]}']
    asked = terminal.ask("Pay.", "--agent", "clerk:agent", *given)
    assert "succeeded (answered)" in terminal.run("approve", asked["id"], "--by", "bo").out
    assert "5 after [1] by Ana with the pin of Ana\n" == (terminal.folder / "paid.txt").read_text()


@pytest.mark.parametrize("context", ["hunter2", "[1]", "@hunter2.json"])
def test_a_context_that_is_none_is_not_told(terminal: Terminal, context: str) -> None:
    """What was typed may be secret; the name of a file is told."""
    terminal.write("clerk.py", CLERK)
    ended = terminal.run("run", "Pay.", "--agent", "clerk:agent", "--context", context)
    assert (1, context.startswith("@")) == (ended.code, "hunter2" in ended.err)
    assert ended.err.startswith("error: --context")


def test_a_run_that_goes_on_sees_the_shop_as_it_is_now(terminal: Terminal) -> None:
    """The order's total is lowered while the run waits: the approved refund is refused, and the answer says so."""
    asked = terminal.ask(ORDER)
    shop = Shop(terminal.shop)
    order = shop.order("A100")
    assert order is not None
    shop.update_order(replace(order, total=70000))
    approved = terminal.run("approve", asked["id"], "--by", "ana", "--json")
    answer = approved.data["run"]["answer"]
    assert [] == terminal.refunds()
    assert "70000" in answer
    assert "Done" not in answer


def test_the_limits_of_a_run_hold_in_every_process(terminal: Terminal) -> None:
    """A limit of 2 with an approval at each step stops at 2, although each step was taken by another process."""
    terminal.write("payer.py", PAYER)
    asked = terminal.ask("Pay my bills.", "--agent", "payer:agent", "--limit-steps", "2")
    again = terminal.run("approve", asked["id"], "--by", "ana", "--json")
    assert (3, "waiting") == (again.code, again.data["run"]["status"])
    stopped = terminal.run("approve", again.data["run"]["approvals"][0]["id"], "--by", "ana")
    assert 4 == stopped.code
    assert "stopped (max_steps): 2 steps" in stopped.out
    assert "0\n1\n" == (terminal.folder / "paid.txt").read_text()


def test_the_model_of_a_run_is_the_same_in_every_process(terminal: Terminal) -> None:
    """A run that was started with --model demo goes on with it where the environment would choose another."""
    elsewhere = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    asked = terminal.ask(ORDER, "--model", "demo", **elsewhere)
    approved = terminal.run("approve", asked["id"], "--by", "ana", **elsewhere)
    assert 0 == approved.code
    assert [("A100", 250000)] == terminal.refunds()


def test_a_killed_process_is_missed_and_replaced(terminal: Terminal) -> None:
    """It died right after the refund: `recover` says who still has the run, `resume` waits, and pays nothing."""
    asked = terminal.ask(ORDER)
    killed = terminal.run("approve", asked["id"], "--by", "ana", crash_at="after_effect", **SOON)
    assert -signal.SIGKILL == killed.code
    recovered = terminal.run("recover", "--json")
    assert (0, [asked["run_id"]]) == (recovered.code, [held["run_id"] for held in recovered.data["held"]])
    resumed = terminal.run("resume", asked["run_id"][:6])
    assert 0 == resumed.code
    assert "waiting for it" in resumed.err
    assert [("A100", 250000)] == terminal.refunds()


def test_recover_carries_on_what_others_have_left(terminal: Terminal) -> None:
    """Runs of several agents are carried on; one whose agent is gone is named, and keeps the exit code from 0."""
    terminal.write("payer.py", PAYER)
    for agent in ("payer:agent", "loopwright.graphs.support:agent"):
        killed = terminal.run(
            "run", QUESTION, "--agent", agent, crash_at="before_model", LOOPWRIGHT_LEASE_SECONDS="0.02"
        )
        assert -signal.SIGKILL == killed.code
    (terminal.folder / "payer.py").unlink()
    recovered = terminal.run("recover", "--json")
    assert 1 == recovered.code
    assert ["succeeded"] == [run["status"] for run in recovered.data["runs"]]
    assert ["ConfigurationError"] == [run["error"] for run in recovered.data["failed"]]
    assert "cannot load the agent 'payer:agent'" in recovered.err


def test_a_conversation_goes_on_with_its_thread(terminal: Terminal) -> None:
    """Two tasks with one thread id are two runs of one conversation."""
    terminal.run("run", QUESTION, "--thread", "customer-7")
    second = terminal.run("run", QUESTION, "--thread", "customer-7", "--json")
    assert (0, "customer-7") == (second.code, second.data["thread_id"])
    listed = terminal.run("show", "--thread", "customer-7", "--json").data
    assert [second.data["run_id"]] == [run["id"] for run in listed][:1]
    assert 2 == len(listed)


def test_every_line_fits_a_narrow_terminal(terminal: Terminal) -> None:
    """Steps are cut and prose is broken at 50 columns, in every view; only a command to copy stays whole."""
    narrow = {"COLUMNS": "50"}
    views = [terminal.run("run", ORDER, **narrow), terminal.run("inbox", **narrow)]
    views += [terminal.run("show", **narrow), terminal.run("show", terminal.open_questions()[0]["run_id"], **narrow)]
    for view in views:
        long = [line.strip() for line in [*view.lines, *view.err.splitlines()] if columns(line) > 50]
        assert [] == [line for line in long if not line.startswith("loopwright ")]
        assert [] == [line for line in long if line.endswith("…")]


def test_a_terminal_of_few_characters_gets_escapes(terminal: Terminal) -> None:
    """Where the encoding lacks a character, it is written as an escape; nothing fails."""
    ended = terminal.start_fresh("run", QUESTION, PYTHONIOENCODING="latin-1", COLUMNS="60")
    assert 0 == ended.code
    assert ended.lines[0].endswith("\\u2026")
