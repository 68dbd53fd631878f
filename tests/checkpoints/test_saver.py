"""The saver: LangGraph's, with thread ids that cannot be mixed up."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from tests.world.plans import planned
from tests.world.stores import Store
from tests.world.stories import LOOK, build_shop, invoke
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, create_agent, open_checkpoints
from loopwright.checkpoints import check_thread_id
from loopwright.errors import ConfigurationError

ID = uuid.UUID("5ef2a57a-059f-4aae-846b-4ba22214479a")


@pytest.mark.parametrize(
    ("given", "text"),
    [("a", "a"), ("1", "1"), (1, "1"), (ID, str(ID)), ("x" * 255, "x" * 255), ("😀", "😀"), ("a b", "a b"), ("A", "A")],
)
def test_ids_that_are_taken(given: object, text: str) -> None:
    """Strings as they are; an int and a UUID by their text, knowingly."""
    assert text == check_thread_id(given)


@pytest.mark.parametrize("given", [None, "", " a", "a ", "\n", "x" * 256, "a\0b", 1.0, True, b"a", ["a"], "\ud800"])
def test_ids_that_are_refused(given: object) -> None:
    """Up front, with what is right."""
    with pytest.raises(ConfigurationError, match="1 to 255 characters"):
        check_thread_id(given)


def test_versions_count_up(store: Store, checkpoints: Checkpoints) -> None:
    """And on from what LangGraph's own saver wrote; short ones, save on PostgreSQL, which sorts them as text."""
    version = checkpoints.saver.get_next_version
    given: list[Any] = [None, "00000000000000000000000000000007.0.5"]
    if store.kind != "postgres":
        given += [1, 41]
    assert [1, 8, 2, 42][: len(given)] == [int(str(version(current, None)).split(".")[0]) for current in given]
    first = version(None, None)
    assert first < version(first, None)


def test_no_thread_is_an_error(checkpoints: Checkpoints) -> None:
    """Also for whoever asks the saver alone."""
    with pytest.raises(ConfigurationError, match="thread_id is None"):
        checkpoints.saver.get_tuple({"configurable": {}})


def tell(checkpoints: Checkpoints, thread_id: object, message: str = "Hi.") -> list[str]:
    """Invoke with a thread id; returns what stands in its transcript then."""
    agent = create_agent(planned(["Done."]), [], checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": thread_id}}
    result = invoke(agent, message, config)
    assert result["messages"] == agent.get_state(config).values["messages"]
    return [one.text for one in result["messages"]]


@pytest.mark.parametrize("given", [1, ID, "😀", "x" * 255])
def test_ids_on_every_store(checkpoints: Checkpoints, given: object) -> None:
    """Given as it is or as its text, it is one thread, by every door of the saver; and no other's."""
    assert ["Hi.", "Done."] == tell(checkpoints, given)
    assert ["Hi.", "Done.", "Hi.", "Done."] == tell(checkpoints, str(given))
    assert ["Hi.", "Done."] == tell(checkpoints, "other")
    saver = checkpoints.saver
    config: Any = {"configurable": {"thread_id": given, "checkpoint_ns": ""}}
    newest = saver.get_tuple(config)
    listed = [*saver.list(config)]
    assert newest is not None
    assert newest.checkpoint["id"] == listed[0].checkpoint["id"]
    assert {str(given)} == {str(one.config.get("configurable", {})["thread_id"]) for one in listed}
    saver.delete_thread(cast("str", given))
    assert saver.get_tuple(config) is None
    assert [] == [*saver.list(config)]
    assert ["Hi.", "Done.", "Hi.", "Done."] == tell(checkpoints, "other")


def test_ids_that_no_store_takes(checkpoints: Checkpoints) -> None:
    """Every door of the saver refuses them alike, and nothing is stored."""
    saver = checkpoints.saver
    runs = SyncRuns(create_agent(planned(["Done."]), []), checkpoints)
    given: list[Any] = [None, "", " a", "x" * 256, "a\0b", 1.0, True, "\ud800"]
    for thread_id in given:
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": "x"}}
        doors: list[Callable[[], object]] = [
            partial(saver.get_tuple, config),
            partial(saver.put, config, empty_checkpoint(), {}, {}),
            partial(saver.put_writes, config, [("messages", 1)], "t"),
            partial(saver.get_delta_channel_history, config=config, channels=["messages"]),
            partial(saver.list, config),
            partial(saver.delete_thread, thread_id),
            partial(runs.run, "Hi.", thread_id=thread_id),
        ]
        for door in doors:
            with pytest.raises(ConfigurationError, match="1 to 255 characters"):
                door()
    assert [] == [*saver.list(None)]
    assert [] == [*checkpoints.ledger.runs.list()]


@pytest.mark.parametrize("write_behind", [True, False])
@pytest.mark.parametrize("keys", [(), (b"k" * 32,)])
def test_no_secret_of_the_configuration_is_stored(kept: Store, keys: tuple[bytes, ...], write_behind: bool) -> None:  # noqa: FBT001 -- a column
    """What a caller puts beside the thread id is in no table; what it gives as metadata is."""
    with open_checkpoints(kept.url, encryption=keys, write_behind=write_behind) as checkpoints:
        agent = create_agent(planned(["Done."]), [], checkpoints=checkpoints)
        secret = {"api_key": "sk-secret", "headers": {"authorization": "Bearer secret"}, "pin": 987654321}
        config: Any = {"configurable": {"thread_id": "t", **secret}, "metadata": {"note": "for the file"}}
        invoke(agent, "Hi.", config)
        agent.update_state(config, {"messages": [("user", "By hand.")]}, as_node="observe")
        assert "for the file" == [*checkpoints.saver.list(config)][-1].metadata.get("note")
        assert [] == [found for found in ("sk-secret", "Bearer", "987654321") if found in kept.text()]


def test_an_agent_within_a_graph(checkpoints: Checkpoints) -> None:
    """It shares the graph's saver, and nobody flushes it when the graph is left: each of its super-steps is stored."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("child", build_shop(Till(), LOOK, LOOK, "Done."))
    graph.add_edge(START, "child")
    config: Any = {"configurable": {"thread_id": "t"}}
    parent = graph.compile(checkpointer=checkpoints.saver)
    assert "Done." == parent.invoke({"messages": [("user", "Look.")]}, config)["messages"][-1].text
    listed: Any = checkpoints.saver.list(None)
    found = [one for one in listed if one.config["configurable"]["checkpoint_ns"]]
    steps = sorted(one.metadata["step"] for one in found)
    assert [*range(-1, 12)] == steps
