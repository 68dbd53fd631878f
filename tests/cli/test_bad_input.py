"""Bad input: one line that says what is wrong and how to mend it, an exit code, and nothing lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.terminal import WITHOUT_ROOTS_POWERS, Ended, Terminal

ORDER = "Refund my order A100. Today is 2026-10-13."
RUN = ["run", ORDER]


def assert_one_line(ended: Ended, words: str) -> None:
    """One line on stderr, no traceback, nothing on stdout, and exit code 1."""
    assert words in ended.err
    assert (1, "", 1) == (ended.code, ended.out, ended.err.count("\n"))
    assert ended.err.startswith("error: ")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["approve", "nope", "--by", "ana"], "no approval 'nope' in .loopwright/runs.db; `loopwright inbox`"),
        (["approve", "", "--by", "ana"], "no approval ''"),
        (["approve", "%", "--by", "ana"], "no approval '%'"),
        (["show", "nope"], "no run 'nope' in .loopwright/runs.db; `loopwright show` lists"),
        (["run", "Hi", "--label", "a=b", "--label", "a=c"], "--label a is given twice"),
        (["show", "--status", "nope"], "status is 'nope'; there are running, waiting, succeeded"),
        (["log", "--since", "soon"], "--since 'soon' is no time; give one such as 2026-10-13"),
        (["show", "--before", "20261013"], "no run '20261013'"),
        (["show", "--thread", "nope"], "no runs on thread 'nope'"),
        (["resume", "nope"], "no run 'nope'"),
        (["cancel", "nope", "--by", "ana"], "no run 'nope'"),
        (["resolve", "nope", "--by", "ana", "--not-happened"], "no effect 'nope'"),
        (["run", " "], "the message is empty; say what the agent is to do"),
        ([*RUN, "--thread", " 7"], "thread_id ' 7' cannot be used; give a text"),
        ([*RUN, "--thread", ""], "thread_id '' cannot be used; give a text"),
        ([*RUN, "--agent", "shop"], "'shop' names no agent; the form is package.module:name"),
        ([*RUN, "--agent", "no_such_module:agent"], "No module named 'no_such_module'"),
        ([*RUN, "--agent", "loopwright.graphs.support:nobody"], "loopwright.graphs.support has no 'nobody'"),
        ([*RUN, "--agent", "json:dumps"], "'json:dumps' is no agent but a function; name what create_agent returned"),
        ([*RUN, "--model", "telepathy"], "no model is known by the name 'telepathy'; the forms are 'openai:MODEL'"),
        ([*RUN, "--model", "openai:gpt-5-mini"], "needs a key; set OPENAI_API_KEY"),
        ([*RUN, "--limit-cost", "1"], "'demo' is not known; give price=Price(input, output), or --price INPUT"),
        ([*RUN, "--price", "cheap"], "price is 'cheap'; give US dollars for a million input and output tokens"),
        ([*RUN, "--limit-cost", "cheap"], "max_cost is 'cheap'; give a number"),
        (["check", "--agent", "json:dumps"], "is no agent"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(terminal: Terminal, args: list[str], words: str) -> None:
    """Unknown ids, threads, agents and models, a missing key, an empty message: named, with the way out."""
    assert_one_line(terminal.run(*args), words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"LOOPWRIGHT_CHECKPOINTS": "mysql://shop"}, "cannot open checkpoints at 'mysql://shop'; the forms are"),
        ({"LOOPWRIGHT_CHECKPOINTS": "sqlite:///nowhere/runs.db"}, "create it, or choose another path"),
        ({"LOOPWRIGHT_CHECKPOINTS": "sqlite:///."}, "is a folder, not a database file"),
        ({"LOOPWRIGHT_CHECKPOINTS": "memory:"}, "which no other process could read; name a file"),
        ({"LOOPWRIGHT_LEASE_SECONDS": "soon"}, "LOOPWRIGHT_LEASE_SECONDS is 'soon'; give seconds above 0"),
        ({"LOOPWRIGHT_LEASE_SECONDS": "0"}, "give seconds above 0"),
        ({"LOOPWRIGHT_MODEL": "openai:gpt-5-mini"}, "needs a key; set OPENAI_API_KEY"),
        ({"LOOPWRIGHT_MODEL": "telepathy"}, "no model is known by the name 'telepathy'"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(terminal: Terminal, settings: dict[str, str], words: str) -> None:
    """A missing folder, a URL of no known form, a model without its key: named, with the way out."""
    assert_one_line(terminal.run(*RUN, **settings), words)


_HEAD = "from loopwright import Limits, create_agent, deny, tool\n"
_TOOL = "@tool(effect='read')\ndef look(order_id: str) -> str:\n    '''Look up an order by its order_id.'''\n"


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            _HEAD + _TOOL + "agent = create_agent('demo', [look], permissions=[deny('lok')])",
            "deny('lok') names no tool",
        ),
        (_HEAD + "@tool\ndef look(a: str) -> str: ...\n", "tool 'look' has no docstring"),
        (_HEAD + "limits = Limits(None, None, None, None, None, None)", "no limit at all"),
        (_HEAD + _TOOL + "agent = create_agent('demo', [look, look])", "two tools are called 'look'"),
        (_HEAD + "agent = create_agent('demo', [], checkpointer=None)", "not checkpointer="),
        ("agent = ", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_mistake_in_an_agents_module_is_told_in_one_line(terminal: Terminal, module: str, words: str) -> None:
    """A misspelt tool in a rule, a tool without a docstring, no limit at all: refused before any step runs."""
    terminal.write("mine.py", module)
    ended = terminal.run(*RUN, "--agent", "mine:agent")
    assert_one_line(ended, words)
    assert "cannot load the agent 'mine:agent'" in ended.err
    assert not (terminal.folder / ".loopwright").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["approve", "3fa9c1"], "Missing option '--by'"),
        (["edit", "3fa9c1", "--by", "ana"], "nothing to change: give NAME=VALUE, --args or --tool"),
        (["edit", "3fa9c1", "--by", "ana", "amount"], "'amount' has not the form name=value"),
        (["edit", "3fa9c1", "--by", "ana", "--args", "[1]"], "'[1]' is no JSON object"),
        (["resolve", "8d21aa", "--by", "ana"], "say either --happened RESULT or --not-happened"),
        (["resolve", "8d21aa", "--by", "ana", "--happened", "x", "--not-happened"], "say either"),
        (["run", "task", "--limit-steps", "-1"], "Invalid value for '--limit-steps'"),
        (["dance"], "No such command 'dance'"),
    ],
)
def test_a_wrong_use_exits_with_2(terminal: Terminal, args: list[str], words: str) -> None:
    """What the help does not say is refused with the usage."""
    ended = terminal.run(*args)
    assert 2 == ended.code
    assert words in ended.err


def test_a_program_gets_the_error_as_json(terminal: Terminal) -> None:
    """With --json stdout holds the error's class, message and facts; stderr still has the line."""
    ended = terminal.run("resume", "nope", "--json")
    assert 1 == ended.code
    assert ("RunNotFound", {"run_id": "nope"}) == (ended.data["error"], ended.data["facts"])
    assert ended.err == f"error: {ended.data['message']}\n"


def _corrupt(path: Path) -> None:
    path.write_bytes(b"This is no database, however you look at it. " * 200)


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma user_version = 99")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(_corrupt, "is no usable SQLite database"), (_make_newer, "was written by a newer loopwright (schema 99")],
)
@pytest.mark.parametrize("args", [RUN, ["inbox"], ["show"], ["recover"]])
def test_a_database_that_cannot_be_read_stays_as_it_is(
    terminal: Terminal, spoil: Callable[[Path], None], words: str, args: list[str]
) -> None:
    """Corrupt, or written by a newer version: told, and not a byte of it is changed."""
    path = terminal.folder / "runs.db"
    spoil(path)
    before = path.read_bytes()
    assert_one_line(terminal.run(*args, LOOPWRIGHT_CHECKPOINTS="sqlite:///runs.db"), words)
    assert before == path.read_bytes()


def test_a_read_only_database_is_told_so(terminal: Terminal) -> None:
    """A new run needs to write: the error says which file, and what is there can be read again later."""
    asked = terminal.ask(ORDER)
    kept = terminal.folder / ".loopwright"
    for path in kept.iterdir():
        path.chmod(0o444)
    kept.chmod(0o555)
    ended = terminal.start_fresh(*RUN, command=WITHOUT_ROOTS_POWERS)
    kept.chmod(0o755)
    for path in kept.iterdir():
        path.chmod(0o644)
    assert_one_line(ended, "is read-only; make the file and its folder writable")
    assert [asked["id"]] == [each["id"] for each in terminal.open_questions()]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["approve", "--by", " "], "a decision needs a name"),
        (["respond", "", "--by", "ana"], "respond: the text is empty"),
        (["edit", "--by", "ana", "--tool", "refnd"], "the edited call cannot run"),
    ],
)
def test_an_answer_that_cannot_be_taken_leaves_the_question_open(
    terminal: Terminal, args: list[str], words: str
) -> None:
    """No name, no text, no such tool: refused, and asked still."""
    asked = terminal.ask(ORDER)
    assert_one_line(terminal.run(args[0], asked["id"], *args[1:]), words)
    assert [asked["id"]] == [each["id"] for each in terminal.open_questions()]


def test_a_file_in_the_folders_place_is_told_in_one_line(terminal: Terminal) -> None:
    """Where `.loopwright` cannot be made, the error says so, and names the variable that moves it."""
    terminal.write(".loopwright", "no folder")
    assert_one_line(terminal.run(*RUN), "cannot create the folder '.loopwright'")


def test_an_unexpected_error_is_one_line_too(terminal: Terminal) -> None:
    """An error that nobody foresaw names itself; a variable brings the traceback for whoever has to mend it."""
    terminal.write("odd.py", "def __getattr__(name):\n    raise RuntimeError('no luck')")
    ended = terminal.run(*RUN, "--agent", "odd:agent")
    assert_one_line(ended, "error: unexpected RuntimeError: no luck (set LOOPWRIGHT_TRACEBACK=1 to see where)")
    assert "Traceback" in terminal.run(*RUN, "--agent", "odd:agent", LOOPWRIGHT_TRACEBACK="1").err
