"""What a model is asked when it looks back at its own answer."""

from __future__ import annotations

from loopwright.policy import Reflect

_QUESTION = (
    "Look back before this answer is given: compare the task with what was done and with the answer. "
    "Did it work? Is anything missing, wrong, or claimed without having been seen in a result?"
)
_REPLY = (
    "No tool can be called now. If the answer can stand as it is, reply with the one word DONE. "
    "Otherwise say in a few sentences what is missing or wrong, and nothing else."
)
GO_ON = "Now do what you found missing: call a tool if you need one, then give the whole final answer again."


def question_of(reflect: Reflect | None) -> str:
    """Return the question, the agent's own or the usual one, with how to reply."""
    own = reflect.instruction.strip() if reflect is not None else ""
    return f"{own or _QUESTION} {_REPLY}"
