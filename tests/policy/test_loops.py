"""The loop guard's options: what cannot be counted is refused when it is written down."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright import Loops
from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.policy import check_loops

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "once is no loop": ({"repeats": 1}, "repeats is 1; give a whole number from 2 on, or None"),
    "never": ({"rounds": 0}, "rounds is 0"),
    "half": ({"failures": 2.5}, "failures is 2.5"),
    "a bool": ({"no_news": True}, "no_news is True"),
    "a text": ({"no_news": "8"}, "no_news is '8'"),
    "an end that is none": ({"then": "raise"}, "then is 'raise'; give 'stop' or 'ask'"),
    "a list of tools": ({"allow": ["look"]}, r"allow is \['look'\]; give a number for each tool"),
    "an allowance of one": ({"allow": {"look": 1}}, r"allow\['look'\] is 1; .* leave the tool out"),
    "an allowance without end": ({"allow": {"look": None}}, r"allow\['look'\] is None"),
}


@pytest.mark.parametrize(("options", "match"), WRONG.values(), ids=WRONG.keys())
def test_wrong(options: dict[str, Any], match: str) -> None:
    """The message names the option and the way out."""
    with pytest.raises(ConfigurationError, match=match):
        Loops(**options)


def test_an_allowance_for_no_tool_is_refused() -> None:
    """A misspelt one would allow nothing."""
    with pytest.raises(UnknownTool, match=r"names 'states', which is no tool of this agent; its tools are: status"):
        check_loops(Loops(allow={"states": 9}), ["status"])


COUNTS: list[tuple[int | None, list[str], int | None]] = [
    (3, ["a"], 3),
    (3, ["status"], 9),
    (3, ["a", "status", "slow"], 20),
    (3, [], 3),
    (12, ["status"], 12),
    (None, ["status"], None),
]


@pytest.mark.parametrize(("count", "tools", "expected"), COUNTS)
def test_an_allowance_lifts_a_count(count: int | None, tools: list[str], expected: int | None) -> None:
    """The highest of the tools counts; none makes a count lower, or switches one on."""
    assert expected == Loops(allow={"status": 9, "slow": 20}).count_for(count, tools)
