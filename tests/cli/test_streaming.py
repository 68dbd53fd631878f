"""The command line with several models, and with their text as it comes."""

from __future__ import annotations

from tests.cli.terminal import Terminal

from loopwright.testing import Failure, OpenAIServer, call


def test_the_next_model_answers_and_is_seen(terminal: Terminal) -> None:
    """One quota is used up: the run goes on with the other model, says so at once, and `show` still knows."""
    lost = Failure(429, "You exceeded your current quota.", "insufficient_quota")
    look = call("lookup_order", order_id="A100")
    with OpenAIServer([lost, look, "It is on its way to you."]) as server:
        place = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        models = ("--model", "openai:gpt-5-mini, openai:gpt-5-nano")
        ran = terminal.run("run", "Where is A100?", *models, "--stream", **place)
    server.assert_done()
    assert 0 == ran.code
    assert ["gpt-5-mini", "gpt-5-nano", "gpt-5-nano"] == [request.body["model"] for request in server.requests]
    assert ran.out.count("[retry] gpt-5-mini: ") == 1
    assert ran.out.count("It is on its way to you.") == 1
    (run,) = terminal.run("show", "--json").data
    shown = terminal.run("show", run["id"][:8])
    assert shown.out.count("[retry] gpt-5-mini: ") == 1


def test_without_a_terminal_nothing_is_streamed(terminal: Terminal) -> None:
    """A pipe gets the finished answer, once."""
    with OpenAIServer(["It is on its way to you."]) as server:
        place = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        ran = terminal.run("run", "Where is A100?", "--model", "openai:gpt-5-mini", **place)
    assert not server.requests[0].body.get("stream")
    assert ran.out.count("It is on its way to you.") == 1
