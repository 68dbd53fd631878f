"""The demo's other story: the same model and tools on a bare LangGraph graph, as one would write it by hand.

Run as `python -m loopwright.cli.demo_bare ask|approve|resume DATABASE THREAD [MESSAGE]`.
"""

# pyright: reportUnknownMemberType=false
# LangGraph's own overloads mention types that it leaves without parameters.
from __future__ import annotations

import sys
from typing import Any, cast

import click
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from loopwright.graphs.support import support_tools

from .demo_agent import StandIn, shop
from .screen import Screen
from .text import call_text, step_line

Graph = CompiledStateGraph[MessagesState, None, MessagesState, MessagesState]

_TOOLS = support_tools(lambda: shop)


def build_graph(saver: BaseCheckpointSaver[Any]) -> Graph:
    """Assemble it: the model, a person before a refund, the tools."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", _think)
    graph.add_node("person", _ask)
    graph.add_node("tools", ToolNode(_TOOLS))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _after_model, ["person", "tools", END])
    graph.add_edge("person", "tools")
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def _think(state: MessagesState) -> dict[str, Any]:
    return {"messages": [StandIn().bind_tools(_TOOLS).invoke(state["messages"])]}


def _ask(state: MessagesState) -> dict[str, Any]:
    answer = interrupt(_calls(state)[0])
    if answer != "approve":
        raise ValueError(f"the demo only approves, not {answer!r}")
    return {}


def _after_model(state: MessagesState) -> str:
    calls = _calls(state)
    if not calls:
        return END
    return "person" if calls[0]["name"] == "issue_refund" else "tools"


def _calls(state: MessagesState) -> list[dict[str, Any]]:
    last = state["messages"][-1]
    return cast("list[dict[str, Any]]", last.tool_calls) if isinstance(last, AIMessage) else []


def main(what: str, path: str, thread_id: str, message: str = "") -> None:
    """Do one part of the story in this process, and print each step as it happens."""
    screen = Screen()
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    with SqliteSaver.from_conn_string(path) as saver:
        graph = build_graph(saver)
        steps = sum(isinstance(each, ToolMessage) for each in _messages(graph, config))
        # Every checkpoint on disk before the next step: the most careful of LangGraph's three ways.
        for update in graph.stream(_given(what, message), config, stream_mode="updates", durability="sync"):
            steps = _show(update, _messages(graph, config), steps, screen)


def _given(what: str, message: str) -> Any:
    match what:
        case "ask":
            return {"messages": [HumanMessage(message)]}
        case "approve":
            return Command(resume="approve")
        case "resume":
            return None
        case _:
            raise click.UsageError(f"{what!r} is none of ask, approve, resume")


def _messages(graph: Graph, config: RunnableConfig) -> list[Any]:
    return list(graph.get_state(config).values.get("messages", []))


def _show(update: dict[str, Any], messages: list[Any], steps: int, screen: Screen) -> int:
    for pause in update.get("__interrupt__", ()):
        screen.line("waiting for a person: " + call_text(pause.value["name"], pause.value["args"], screen.width - 24))
    for message in _written(update):
        if isinstance(message, ToolMessage):
            steps += 1
            call = _call_of(message.tool_call_id, messages)
            screen.line(step_line(steps, call["name"], call["args"], message.text, screen.width))
        elif isinstance(message, AIMessage) and not message.tool_calls:
            screen.prose(message.text)
    return steps


def _written(update: dict[str, Any]) -> list[Any]:
    nodes = [update.get("tools"), update.get("model")]
    return [message for node in nodes if node for message in node["messages"]]


def _call_of(call_id: str, messages: list[Any]) -> dict[str, Any]:
    asked = (call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls)
    return next(cast("dict[str, Any]", call) for call in asked if call["id"] == call_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
