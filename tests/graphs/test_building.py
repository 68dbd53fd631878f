"""Building an agent: a mistake in its set-up fails there, by name and with the way out, and opens no gate."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool
from tests.world.till import Till

from loopwright import Limits, Loops, allow, create_agent, deny, open_checkpoints
from loopwright.errors import ConfigurationError, DuplicateTool, UnknownTool
from loopwright.graphs import change_agent
from loopwright.graphs.building import check_checkpoints
from loopwright.testing import ScriptedModel

MODEL = ScriptedModel([])
PAY = Till().pay()
WRONG: dict[str, tuple[dict[str, Any], type[ConfigurationError], str]] = {
    "a model that is none": ({"model": 5}, ConfigurationError, "model is 5"),
    "an unknown model": ({"model": "gpt-9"}, ConfigurationError, "the forms are"),
    "a function instead of a tool": ({"tools": [len]}, ConfigurationError, "decorate the function with @tool"),
    "two tools of one name": ({"tools": [PAY, Till().pay()]}, DuplicateTool, "'pay'"),
    "a misspelt tool in a rule": ({"permissions": [deny("pey")]}, UnknownTool, "its tools are: pay"),
    "a rule that is none": ({"permissions": ["deny"]}, ConfigurationError, "no rule"),
    "rules as a mapping": ({"permissions": {"pay": True}}, ConfigurationError, "permissions is .* no list"),
    "no rules": ({"permissions": None}, ConfigurationError, "permissions is None, which is no list"),
    "a bare rule": ({"permissions": deny("pay")}, ConfigurationError, "give a list of rules"),
    "no tools": ({"tools": None}, ConfigurationError, "tools is None, which is no list"),
    "a bare tool": ({"tools": PAY}, ConfigurationError, "give a list of tools"),
    "a price that is none": ({"price": 3}, ConfigurationError, r"price is 3; give Price\("),
    "a prompt that is none": ({"system_prompt": 3}, ConfigurationError, "system_prompt is 3; give a text"),
    "a name that is none": ({"name": None}, ConfigurationError, "name is None; give a text"),
    "contradicting rules": ({"permissions": [allow("pay"), deny("pay")]}, ConfigurationError, "contradict"),
    "a misspelt tool in a limit": ({"limits": Limits(max_calls_per_tool={"pey": 1})}, UnknownTool, "'pey'"),
    "limits that are none": ({"limits": {"max_steps": 3}}, ConfigurationError, r"give Limits\("),
    "loops that are none": ({"loops": False}, ConfigurationError, r"loops is False; give Loops\("),
    "a misspelt tool in an allowance": ({"loops": Loops(allow={"pey": 9})}, UnknownTool, "'pey'"),
    "a misspelt option": ({"permisions": [deny("pay")]}, ConfigurationError, "no option permisions"),
}


@pytest.mark.parametrize(("options", "kind", "match"), WRONG.values(), ids=WRONG.keys())
def test_wrong(options: dict[str, Any], kind: type[ConfigurationError], match: str) -> None:
    """Before any step runs."""
    given: dict[str, Any] = {"model": MODEL, "tools": [PAY], **options}
    with pytest.raises(kind, match=match):
        create_agent(given.pop("model"), given.pop("tools"), **given)


def test_a_plain_langchain_tool_is_a_write() -> None:
    """Nobody said what it does, so it is trusted with nothing."""

    @langchain_tool
    def anything(code: str) -> str:
        """Do something or other with a code."""
        return code

    contract = create_agent(MODEL, [anything]).spec.tools["anything"]
    assert ("write", False) == (contract.effect, contract.declared)


def test_changing_keeps_the_rest() -> None:
    """Another model, or other limits: tools and permissions stay, and what must not be is refused again."""
    agent = create_agent(MODEL, [PAY], permissions=[deny("pay")], system_prompt="Be kind.")
    other = ScriptedModel(["hi"])
    changed = change_agent(agent, model=other, limits=Limits(max_steps=1)).spec
    assert (other, 1) == (changed.model, changed.limits.max_steps)
    assert (agent.spec.tools, agent.spec.rules, "Be kind.") == (changed.tools, changed.rules, changed.system_prompt)
    with pytest.raises(UnknownTool):
        change_agent(agent, limits=Limits(max_calls_per_tool={"pey": 1}))


def test_the_system_prompt_is_sent_and_never_stored() -> None:
    """It stands before the transcript at each call."""
    model = ScriptedModel(["Done."])
    agent: Any = create_agent(model, [], system_prompt="Be kind.")
    state = agent.invoke({"messages": [("user", "Hi.")]})
    assert ["system", "human"] == [message.type for message in model.seen[0]]
    assert ["human", "ai"] == [message.type for message in state["messages"]]


def test_tools_and_rules_may_come_from_a_generator() -> None:
    """They are read once, and kept."""
    given: Any = (item for item in [PAY])
    rules: Any = (rule for rule in [deny("pay")])
    spec = create_agent(MODEL, given, permissions=rules).spec
    assert ((PAY,), ["pay", "read_result"], (deny("pay"),)) == (spec.offered, [*spec.tools], spec.rules)


def test_checkpoints_are_opened_ones() -> None:
    """A URL is not opened on the side, nor shown: it may hold a password."""
    with pytest.raises(ConfigurationError, match="checkpoints is a str; give what open_checkpoints") as raised:
        check_checkpoints("postgresql://u:S3CRET@h/db")
    assert "S3CRET" not in str(raised.value)
    check_checkpoints(None)
    with open_checkpoints("memory:") as checkpoints:
        check_checkpoints(checkpoints)
