"""What a text decides: read leniently, never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.models.protocol import Answer, ToolUse, Unreadable, read_decision

USE = '{"type": "tool", "tool": "look", "input": {"id": "A1"}, "thought": "Let me look."}'
BARE = '{"type": "tool", "tool": "look", "input": {"id": "A1"}}'
DONE = '{"type": "final", "answer": "It is 4."}'
LOOK = ToolUse("look", {"id": "A1"}, "Let me look.")

READ: dict[str, tuple[str, Any]] = {
    "as asked for": (USE, LOOK),
    "an answer": (DONE, Answer("It is 4.")),
    "in a fence": (f"```json\n{USE}\n```", LOOK),
    "in prose": (f"Sure, here it is: {USE} I hope that helps.", LOOK),
    "text around it stands in for a thought": (f"I look.\n{BARE}", ToolUse("look", {"id": "A1"}, "I look.")),
    "twice the same": (f"{BARE}\n{BARE}", ToolUse("look", {"id": "A1"})),
    "in a list": (f"[{BARE}]", ToolUse("look", {"id": "A1"}, "[ ]")),
    "beside an object that decides nothing": (f'Given {{"id": "A1"}}: {DONE}', Answer("It is 4.")),
    "beside braces that are none": (f"Use {{curly}} ones. {DONE}", Answer("It is 4.")),
    "after thinking of another": (f"<think>{BARE}</think>{DONE}", Answer("It is 4.")),
    "after thinking": (f"<think>Hm.</think>{BARE}", ToolUse("look", {"id": "A1"}, "Hm.")),
    "after a thought that the template began": (f"I could {BARE} but no.</think>{DONE}", Answer("It is 4.")),
    "with a line break in a text": ('{"type": "final", "answer": "a\nb"}', Answer("a\nb")),
    "without input": ('{"type": "tool", "tool": "now"}', ToolUse("now", {})),
    "with null as input": ('{"type": "tool", "tool": "now", "input": null}', ToolUse("now", {})),
    "a number as the answer": ('{"type": "final", "answer": 4}', Answer("4")),
    "an object as the answer": ('{"type": "final", "answer": {"a": 1}}', Answer('{"a": 1}')),
    "an encoded input": (
        '{"type": "tool", "tool": "look", "input": "{}"}',
        ToolUse("look", {}, unread='"{}"'),
    ),
    "a list as input": ('{"type": "tool", "tool": "look", "input": [1]}', ToolUse("look", {}, unread="[1]")),
}
UNREAD: dict[str, tuple[str, str]] = {
    "plain text": ("It is 4.", "no object"),
    "another object": ('{"id": "A1"}', "no object"),
    "another type": ('{"type": "action", "tool": "look"}', "no object"),
    "one inside another object": (f'{{"decision": {USE}}}', "no object"),
    "two calls": (f"{BARE} {BARE.replace('A1', 'A2')}", "2 decisions"),
    "a call and an answer": (f"{USE} {DONE}", "2 decisions"),
    "a call that breaks off": (BARE[:-1], "breaks off"),
    "one that breaks off, and one inside it": (f'{{"type": "tool", "input": {DONE}', "breaks off"),
    "one that breaks off behind another": (f"{DONE} {BARE[:20]}", "breaks off"),
    "a thought that does not end": (f"<think>{USE}", "no object"),
    "a call in a thought that the template began": (f"I could {BARE} but no.</think>It is 4.", "no object"),
    "a name that stands twice": ('{"type": "tool", "type": "final", "answer": "x", "tool": "y"}', "breaks off"),
    "nested too deep to be kept": (
        f'{{"type": "final", "answer": {"[" * 252 + "]" * 252}}}',
        "nested too deep",
    ),
    "NaN": ('{"type": "tool", "tool": "pay", "input": {"amount": NaN}}', "breaks off"),
    "single quotes": ("{'type': 'final', 'answer': 'x'}", "no object"),
    "no tool": ('{"type": "tool", "input": {}}', "names no tool"),
    "a tool that is no text": ('{"type": "tool", "tool": 1}', "names no tool"),
    "no answer": ('{"type": "final"}', "no answer"),
    "too deep": ('{"type": "final", "answer": ' + "[" * 100_000, "breaks off"),
}


@pytest.mark.parametrize(("text", "decision"), READ.values(), ids=READ.keys())
def test_what_is_read(text: str, decision: Any) -> None:
    """One decision, whatever stands around it."""
    assert decision == read_decision(text)


@pytest.mark.parametrize(("text", "match"), UNREAD.values(), ids=UNREAD.keys())
def test_what_is_not(text: str, match: str) -> None:
    """It says why, and no call comes of it."""
    found = read_decision(text)
    assert isinstance(found, Unreadable)
    assert match in found.why


@given(st.text(alphabet=' {}[]":,abtypetoolfinal\\<>/think', max_size=60), st.integers(0, 60))
def test_noise_around_a_decision_never_makes_another_one(noise: str, cut: int) -> None:
    """Whatever surrounds it, or wherever it breaks off: this very decision, or none."""
    for text in (f"{noise}{BARE}", f"{BARE}{noise}", BARE[:cut], f"{noise}{BARE[:cut]}"):
        found = read_decision(text)
        assert isinstance(found, Unreadable) or (isinstance(found, ToolUse) and found.input == {"id": "A1"})
