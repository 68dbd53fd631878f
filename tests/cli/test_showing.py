"""What can be looked at: the inbox, runs, and what `check` finds."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.cli.terminal import Terminal

QUESTION = "Can I get a refund for my order A100? Today is 2026-10-13."
ORDER = "Refund my order A100. Today is 2026-10-13."


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["inbox"], "nothing waits for a person in .loopwright/runs.db"),
        (["show"], "no runs in .loopwright/runs.db"),
        (["recover"], "nothing to recover"),
    ],
)
def test_looking_into_an_empty_folder_leaves_nothing_there(terminal: Terminal, command: list[str], told: str) -> None:
    """The answer is that there is nothing, and no database is made for it."""
    ended = terminal.run(*command)
    assert (0, [told]) == (ended.code, ended.lines)
    assert [] == list(terminal.folder.iterdir())


def test_the_inbox_has_all_that_a_program_needs(terminal: Terminal) -> None:
    """Keys that stay, for one question each, oldest first."""
    first, second = terminal.ask(ORDER), terminal.ask(ORDER.replace("A100", "A108"))
    inbox: list[Any] = terminal.open_questions()
    assert [first["id"], second["id"]] == [each["id"] for each in inbox]
    expected = {
        "question": "tool_approval",
        "tool": "issue_refund",
        "args": {"order_id": "A100", "amount": 250000, "account": ""},
        "allowed": ["approve", "edit", "reject", "respond"],
        "task": ORDER,
        "effect_id": "",
        "expires_at": None,
        "needs": {"roles": [], "number": 1, "not_by": None, "decisions": ["approve", "edit", "reject", "respond"]},
        "votes": [],
        "missing": 1,
        "decision": None,
        "decided_by": "",
        "decided_at": None,
    }
    assert expected == {name: inbox[0][name] for name in expected}
    others = {"id", "run_id", "thread_id", "why", "rule", "description", "created_at"}
    assert others == set(inbox[0]) - set(expected)


def test_a_person_is_shown_all_that_is_decided_about(terminal: Terminal) -> None:
    """However narrow the terminal: the whole call, for whom it is, commands to copy, and how many questions wait."""
    terminal.write(
        "mail.py",
        "from loopwright import ask, create_agent, tool\n"
        "from loopwright.testing import ScriptedModel, call\n"
        "@tool(effect='write')\n"
        "def send(to: str, body: str) -> str:\n"
        "    '''Send.'''\n"
        "    return 'sent'\n"
        "body = 'We are sorry. ' * 9 + 'Pay 17 euros to DE89.'\n"
        "calls = [call('send', to='ana', body=body), call('send', to='ben', body=body)]\n"
        "rule = ask('send', role='team lead')\n"
        "agent = create_agent(ScriptedModel([calls]), [send], permissions=[rule])\n",
    )
    asked = terminal.ask("Write to them.", "--agent", "mail:agent", "--requester", "lea", "--label", "tenant=acme")
    inbox = terminal.run("inbox", "--limit", "1", COLUMNS="60").out
    assert "Pay 17 euros to DE89.'" in inbox
    assert f"    loopwright respond {asked['id'][:6]} --by NAME --role 'team lead' \"…\"" in inbox
    assert "  for: lea\n" in inbox
    assert "1 question shown of those open in .loopwright/runs.db" in " ".join(inbox.split())
    assert inbox.endswith("--limit 2\n")
    assert "2 questions open" in terminal.run("inbox").out
    page = terminal.run("show", asked["run_id"]).out
    assert ("for       lea" in page, "labels    tenant=acme" in page) == (True, True)


def test_a_run_is_shown_whole(terminal: Terminal) -> None:
    """Steps with verdicts, effects, decisions, the log and the answer; a person's change beside what was proposed."""
    asked = terminal.ask(ORDER)
    terminal.run("edit", asked["id"], "--by", "ana", "amount=40000")
    page = terminal.run("show", asked["run_id"][:6]).out
    for words in [
        ORDER,
        "succeeded (answered): 4 steps",
        "agent     loopwright.graphs.support:agent",
        "allow by default: reading is allowed; done in",
        "[3] issue_refund(order_id='A100', amount=40000",
        "allow by ana: edited by ana; proposed was amount=250000; done in",
        'issue_refund done: {"refunded": 40000',
        "edit by ana on 20",
        "issue_refund: edit by ana",
        "Done: 40000 was refunded",
    ]:
        assert words in page


def test_a_program_reads_the_same_of_a_run(terminal: Terminal) -> None:
    """Money is text, and every table of the ledger has its list."""
    asked = terminal.ask(ORDER)
    terminal.run("approve", asked["id"], "--by", "ana")
    run = terminal.run("show", asked["run_id"], "--json").data
    assert ("succeeded", "answered", "0") == (run["status"], run["stop_reason"], run["cost"])
    assert ["lookup_order", "refund_policy", "issue_refund"] == [step["tool"] for step in run["trail"]]
    assert [("approve", "ana")] == [(each["decision"]["type"], each["decided_by"]) for each in run["approvals"]]
    assert ["done"] == [effect["status"] for effect in run["effects"]]
    assert [True] * 4 == [attempt["settled"] for attempt in run["attempts"]]
    assert ["began", "asked", "decided", "claimed", "settled", "ended"] == [each["event"] for each in run["log"]]
    assert run["usage"]["cost"] == "0"


def test_runs_are_listed_newest_first(terminal: Terminal) -> None:
    """A table for people, the same for programs; other folders know nothing of it."""
    terminal.run("run", QUESTION)
    asked = terminal.ask(ORDER)
    table = terminal.run("show")
    assert ["run", "thread", "age", "status", "task"] == table.lines[0].split()
    assert table.lines[1].startswith(asked["run_id"][:6])
    assert ["waiting", "succeeded"] == [run["status"] for run in terminal.run("show", "--json").data]


def test_showing_a_run_needs_none_of_its_agents_code(terminal: Terminal) -> None:
    """The agent's module is gone: the run can still be looked at, and cancelled."""
    terminal.write("gone.py", "from loopwright.graphs.support import agent")
    asked = terminal.ask(ORDER, "--agent", "gone:agent")
    (terminal.folder / "gone.py").unlink()
    assert "lookup_order" in terminal.run("show", asked["run_id"]).out
    cancelled = terminal.run("cancel", asked["run_id"], "--by", "ana")
    assert 0 == cancelled.code
    assert "the cancellation is noted" in cancelled.out


def test_a_run_of_a_program_of_its_own_is_left_to_it(terminal: Terminal) -> None:
    """What was started by a plain invoke can be seen, not driven: its program alone can."""
    terminal.write(
        "service.py",
        "from loopwright import create_agent, open_checkpoints\n"
        "from loopwright.graphs.shop import open_shop\n"
        "from loopwright.graphs.support import support_tools\n"
        "with open_checkpoints('sqlite:///.loopwright/runs.db') as checkpoints:\n"
        "    agent = create_agent('demo', support_tools(open_shop), checkpoints=checkpoints)\n"
        f"    agent.invoke({{'messages': [('user', {ORDER!r})]}}, {{'configurable': {{'thread_id': 'mine'}}}})\n",
    )
    terminal.run("run", QUESTION)
    assert 0 == terminal.start_fresh(command=[sys.executable, "service.py"]).code
    shown = terminal.run("inbox")
    assert "belongs to the program that started it: answer there" in shown.out
    (asked,) = terminal.open_questions()
    refused = terminal.run("approve", asked["id"], "--by", "ana")
    assert 1 == refused.code
    assert "only that program can carry it on" in refused.err
    assert 1 == len(terminal.open_questions())


def test_check_answers_the_five_questions(terminal: Terminal) -> None:
    """For people and for programs; findings are told, and do not change the exit code."""
    terminal.write(
        "thin.py",
        "from loopwright import create_agent, tool\n"
        "@tool\n"
        "def pay(n: int) -> str:\n"
        "    '''Pay.'''\n"
        "agent = create_agent('demo', [pay], name='thin')\n",
    )
    page = terminal.run("check", "--agent", "thin:agent")
    report = terminal.run("check", "--agent", "thin:agent", "--json")
    assert (0, 0) == (page.code, report.code)
    assert 5 == len(report.data["answers"])
    for answer in report.data["answers"]:
        assert answer["question"] in page.lines
    assert {"pay"} == {finding["tool"] for finding in report.data["findings"]}
    assert "pay: its effect is not declared" in page.out


PARKING = """
from loopwright import Rate, create_agent
from loopwright.testing import ScriptedModel

agent = create_agent(
    ScriptedModel(["Done."]), [], rate=Rate(calls=1, per_seconds=7200, when_exceeded="park"), name="slow"
)
"""


def test_what_is_parked_is_shown_and_cannot_be_answered(terminal: Terminal) -> None:
    """In the inbox and wherever runs are shown: for which rate, and when it goes on; no click does anything."""
    terminal.write("slow.py", PARKING)
    run = ["run", "Do it.", "--agent", "slow:agent"]
    assert 0 == terminal.run(*run).code
    parked = terminal.run(*run, "--json")
    assert (3, "waiting", [], "model:scripted") == (
        parked.code,
        parked.data["status"],
        parked.data["approvals"],
        parked.data["parked"]["name"],
    )
    told = "parked: model:scripted (rate limit of 1 in 7200 s); it goes on by itself at "
    inbox = terminal.run("inbox").out
    assert told in inbox
    assert "nothing waits for a person in .loopwright/runs.db; 1 parked" in inbox
    assert told in terminal.run("show", parked.data["run_id"]).out
    assert "waiting (parked, 1 h)" in terminal.run("show").out
    (asked,) = terminal.open_questions()
    assert ("parked", []) == (asked["question"], asked["allowed"])
    refused = terminal.run("approve", asked["id"], "--by", "ana")
    assert 1 == refused.code
    assert (
        "is no question: its run waits for a rate (rate limit of 1 in 7200 s) and goes on by itself at" in refused.err
    )


def test_an_operator_finds_a_run_among_many(terminal: Terminal) -> None:
    """By its standing, its time, and page by page; a range of the log likewise."""
    terminal.ask(ORDER)
    for _ in range(3):
        terminal.run("run", "Where is my order A100? Today is 2026-10-13.")
    listed: list[Any] = terminal.run("show", "--json").data
    ids = [run["id"] for run in listed]

    def shown(*args: str) -> list[str]:
        return [run["id"] for run in terminal.run("show", "--json", *args).data]

    assert (ids[:3], ids[3:]) == (shown("--status", "succeeded"), shown("--status", "waiting"))
    assert (ids, []) == (shown("--since", "1h"), shown("--before", "2026-01-01"))
    page = terminal.run("show", "--limit", "2")
    assert f"2 runs shown, the newest first; for older ones: --before {ids[1][:6]}" in page.out
    assert ids[2:] == shown("--limit", "2", "--before", ids[1][:6])
    assert "for older ones" not in terminal.run("show", "--before", ids[1][:6]).out
    assert "no such runs in" in terminal.run("show", "--status", "failed").out
    assert ([], True) == (terminal.run("log", "--until", "1d", "--json").data, "ended" in terminal.run("log").out)


def test_a_page_has_each_step_whole(terminal: Terminal) -> None:
    """However narrow the terminal: what a tool said is broken, and not cut."""
    run = terminal.ask(ORDER)["run_id"]
    steps = terminal.run("show", run, COLUMNS="60").out.partition("steps\n")[2].partition("\nquestions")[0]
    entries = terminal.run("show", run, "--json").data["trail"]
    assert entries
    for entry in entries:
        assert "".join(entry["observation"].split()) in "".join(steps.split())


def test_an_ended_run_is_shown_without_the_models_banner(terminal: Terminal) -> None:
    """Nothing answers any more."""
    ended = terminal.run("run", "Where is my order A100? Today is 2026-10-13.", "--json")
    assert "demo" in ended.err
    assert "" == terminal.run("resume", ended.data["run_id"]).err
