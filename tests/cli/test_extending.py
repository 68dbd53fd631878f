"""`loopwright extend`: more for a run that met a limit."""

from __future__ import annotations

from tests.cli.terminal import Terminal

QUESTION = "Can I get a refund for my order A100? Today is 2026-10-13."


def test_a_run_goes_on_where_it_stopped(terminal: Terminal) -> None:
    """It is given more steps, and answers the question that it was asked."""
    stopped = terminal.run("run", QUESTION, "--limit-steps", "2", "--json")
    assert (4, "max_steps") == (stopped.code, stopped.data["stop_reason"])
    extended = terminal.run("extend", stopped.data["run_id"], "--steps", "4", "--as", "ana")
    assert 0 == extended.code
    assert "extended by ana" in extended.lines[0]
    assert "Yes, order A100 can be refunded." in extended.out
    assert "succeeded (answered): 3 steps, 2 tool calls" in extended.out
    assert "extended   by ana: 4 steps more" in terminal.run("show", stopped.data["run_id"]).out


def test_a_run_that_has_its_answer_is_not_extended(terminal: Terminal) -> None:
    """The text says why."""
    done = terminal.run("run", QUESTION, "--json")
    refused = terminal.run("extend", done.data["run_id"], "--steps", "4", "--as", "ana")
    assert 1 == refused.code
    assert "limit" in refused.err


def test_nothing_more_is_no_extension(terminal: Terminal) -> None:
    """It is told in the command line's own words."""
    refused = terminal.run("extend", "any", "--as", "ana")
    assert (2, True) == (refused.code, "nothing is added: say how much more, such as --steps 10" in refused.err)
