"""Final answers on the command line: what was wrong is seen as it happens, and later."""

from __future__ import annotations

from tests.cli.terminal import Terminal

AGENT = '''
from loopwright import Reflect, create_agent, tool
from loopwright.testing import ScriptedModel, call


@tool(effect="read")
def look(order_id: str) -> str:
    """Look up an order by its code, such as A100. Returns its status."""
    return "DELIVERED"


def names_the_order(answer):
    return None if "A100" in answer.text else "it does not name the order A100"


SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
TURNS = ["It is there.", call("look", order_id="A100"), "A100.", "Too short.", "A100: \\u2713"]
TOLD = [turn if isinstance(turn, dict) or turn == "Too short." else '{"said": "%s"}' % turn for turn in TURNS]
model = ScriptedModel(TOLD)
agent = create_agent(model, [look], verify=names_the_order, response_format=SCHEMA, reflect=Reflect())
never = create_agent(ScriptedModel(["Yes."] * 9), [look], verify=names_the_order, answer_retries=1)
'''


def test_each_objection_is_seen_where_it_happened(terminal: Terminal) -> None:
    """`run` shows it between the steps, `show` too, and both tell programs the output as plain data."""
    terminal.write("desk.py", AGENT)
    ended = terminal.run("run", "--agent", "desk:agent", "Where is A100?")
    assert 0 == ended.code, ended.err
    begin = ["[check] names_the_order: it does not name the order A100", "[2] look(order_id='A100') -> DELIVERED"]
    assert [*begin, "[reflect] Too short."] == ended.lines[:3]
    run = terminal.run("show", "--json").data[0]["id"]
    shown = terminal.run("show", run)
    places = [shown.out.index(line) for line in ("[check] names_the_order", "[2] look(", "[reflect] Too short.")]
    assert sorted(places) == places
    told = terminal.run("show", run, "--json").data
    assert {"said": "A100: ✓"} == told["output"]
    assert ["names_the_order", "reflect"] == [objection["by"] for objection in told["objections"]]


def test_an_answer_that_never_passed(terminal: Terminal) -> None:
    """It is shown with what is wrong, and the exit code is that of a run that was stopped."""
    terminal.write("desk.py", AGENT)
    ended = terminal.run("run", "--agent", "desk:never", "Where is A100?")
    assert 4 == ended.code, ended.err
    assert "error: the answer could not be verified: names_the_order: it does not name the order A100" in ended.out
    assert "stopped (unverified): 2 steps" in ended.out
