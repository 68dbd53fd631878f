"""Whatever a model, its checks and its looks back say: a run makes a bounded number of calls, within its limits."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.world.stores import MOSTLY_IN_MEMORY, some_store

from loopwright import Limits, ProposedAnswer, Reflect, RunStatus, StopReason, SyncRuns, create_agent, open_checkpoints
from loopwright.testing import ScriptedModel, check_transcript

SAYS = st.sampled_from(["It is 4.", '{"n": 4}', "DONE", '{"n": "four"}'])
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FINDS: Any = st.sampled_from([None, True, False, "wrong", "", 0, KeyError("x")])


def check_of(findings: list[Any], heard: list[Any]) -> Any:
    """A check that finds what was drawn, in order, and then the last of it for ever; `heard` is what it said."""

    def check(answer: ProposedAnswer) -> Any:
        found = findings[min(len(answer.run.get("objections", ())), len(findings) - 1)]
        heard.append(found)
        if isinstance(found, Exception):
            raise found
        return found

    return check


@settings(max_examples=40)
@given(
    says=st.lists(SAYS, min_size=1, max_size=4),
    findings=st.lists(st.lists(FINDS, min_size=1, max_size=4), max_size=2),
    retries=st.integers(0, 3),
    times=st.integers(0, 2),
    form=st.booleans(),
    steps=st.integers(1, 12),
    tokens=st.sampled_from([None, 150, 1000]),
    wrap_up=st.booleans(),
    store=MOSTLY_IN_MEMORY,
)
def test_answers_are_bounded(
    says: list[str],
    findings: list[list[Any]],
    retries: int,
    times: int,
    *,
    form: bool,
    steps: int,
    tokens: int | None,
    wrap_up: bool,
    store: Any,
) -> None:
    """At most one call, one more a retry, and two a look back; a run that succeeded has an answer that passed."""
    model = ScriptedModel([says[number % len(says)] for number in range(40)])
    heard: list[Any] = []
    limits = Limits(max_steps=max(steps, 2) if wrap_up else steps, max_tokens=tokens)
    agent = create_agent(
        model,
        [],
        limits=limits,
        wrap_up=wrap_up,
        verify=[check_of(found, heard) for found in findings],
        response_format=SCHEMA if form else None,
        reflect=Reflect(times=times) if times else None,
        answer_retries=retries,
    )
    with some_store(store) as url, open_checkpoints(url) as checkpoints:
        result = SyncRuns(agent, checkpoints).run("How many?", thread_id="t")
    usage = result.usage
    assert usage.model_calls == len(model.seen) <= 1 + retries + 2 * times + wrap_up
    assert usage.steps <= (limits.max_steps or 0)
    assert tokens is None or usage.tokens <= tokens
    assert result.status in (RunStatus.SUCCEEDED, RunStatus.STOPPED)
    assert len([one for one in result.objections if one["by"] != "reflect"]) <= retries + 1
    check_transcript(result.messages)
    if result.status is RunStatus.SUCCEEDED:
        assert not form or isinstance(result.output["n"], int)
        assert all(found is None or found is True for found in heard[len(heard) - len(findings) :])
    if result.stop_reason is StopReason.UNVERIFIED:
        assert result.output is None
        assert result.error
