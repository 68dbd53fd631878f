"""Text fits the terminal, and cannot steer it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loopwright.cli.text import (
    LONGEST,
    age,
    call_lines,
    call_text,
    clean,
    columns,
    counted,
    fit,
    money,
    step_line,
    table,
    took,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe: 3 €, 東京", "Größe: 3 €, 東京"),
        ("one\ntwo\tthree", "one two three"),
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("\r\x00", "\\r\\x00"),
    ],
)
def test_what_steers_a_terminal_is_written_as_an_escape(text: str, shown: str) -> None:
    """Control characters and marks that turn the writing direction are seen, not obeyed."""
    assert shown == clean(text)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("a word", 3, "a…"),
        ("東京大阪", 8, "東京大阪"),
        ("東京大阪", 7, "東京大…"),
        ("東京大阪", 6, "東京…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
        ("", 3, ""),
    ],
)
def test_a_line_is_cut_by_columns(text: str, width: int, shown: str) -> None:
    """A wide character takes two columns, a combining one none; a cut line ends with an ellipsis."""
    assert shown == fit(text, width)
    assert columns(shown) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize(
    "text",
    [
        "Yes, order A100 can be refunded. It was delivered on 2026-10-01, 12 days ago, within 30 days.",
        "ご注文A100は返金できます。" * 8,
        "x" * 300,
        "first line\n\n  indented line that is long enough to be broken at some place between its words",
    ],
)
def test_prose_fits_the_page(text: str, width: int) -> None:
    """Every line fits with its indent, in any script, and nothing of the text is lost."""
    lines = wrap(text, width, "  ")
    assert all(columns(line) <= width for line in lines)
    assert "".join(text.split()) == "".join("".join(lines).split())


def test_prose_without_a_page_keeps_its_own_lines() -> None:
    """In a file or a pipe a sentence stays on one line, where it can be searched."""
    assert ["  one two", "", "  three"] == wrap("one two\n\nthree", None, "  ")


@pytest.mark.parametrize(
    ("args", "width", "shown"),
    [
        ({}, 40, "tool()"),
        ({"order_id": "A100", "amount": 40000}, 60, "tool(order_id='A100', amount=40000)"),
        ({"text": "x" * 50, "n": 1}, 40, "tool(text='xxxxxxxxxxxxxxxxxxxxxx…, n=1)"),
        ({"a": "x" * 50, "b": "y" * 50, "c": 1}, 40, "tool(a='xxxxxxxxx…, b='yyyyyyyyy…, c=1)"),
        ({"note": "two\nlines\x1b"}, 40, "tool(note='two\\nlines\\x1b')"),
        ({"nested": {"a": [1, None]}}, 40, "tool(nested={'a': [1, None]})"),
    ],
)
def test_a_call_reads_like_python(args: dict[str, object], width: int, shown: str) -> None:
    """Arguments are written as Python would; long ones are cut one by one, so that the short ones stay whole."""
    assert shown == call_text("tool", args, width)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_whoever_decides_sees_the_whole_call(width: int) -> None:
    """Nothing of an argument is left out: what does not fit on a line takes several, all within the width."""
    args = {"to": "ana@example.org", "body": "Please pay 17 euros to " + "DE89 3704 " * 40 + "\x1b", "n": 1}
    lines = call_lines("send_mail", args, width, "  ")
    assert all(columns(line) <= width for line in lines)
    assert ["  send_mail(", "  )", "    n=1,"] == [lines[0], lines[-1], lines[-2]]
    written = "".join(f"{name}={value!r}," for name, value in args.items())
    assert "".join(written.split()) == "".join("".join(lines[1:-1]).split())


def test_a_short_call_and_one_in_a_pipe_take_one_line() -> None:
    """Where nobody's terminal sets a width, a line can be searched; of a text without end, the rest is counted."""
    assert ["  pay(to='ana', amount=3)"] == call_lines("pay", {"to": "ana", "amount": 3}, 40, "  ")
    assert [f"say(text={'x' * 9000!r})"] == call_lines("say", {"text": "x" * 9000}, None)
    shown = "".join(call_lines("say", {"text": "x" * (LONGEST + 1000)}, 80))
    assert "… (1,002 characters more: see --json)," in " ".join(shown.split())


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_step_takes_one_line(width: int) -> None:
    """However long arguments and result are, some of each is seen."""
    line = step_line(12, "issue_refund", {"order_id": "A100", "reason": "r" * 200}, "observed " * 40, width)
    assert columns(line) <= width
    assert line.startswith("[12] issue_refund(order_i")
    assert " -> obs" in line


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (172799, "47 h"), (172800, "2 days")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, shown: str) -> None:
    """An age is short; a clock that went back makes it zero."""
    assert shown == age(seconds)


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [("0", "$0.00"), ("1.5", "$1.50"), ("0.004", "$0.004"), ("12", "$12.00"), ("0.000000001", "$0.000000001")],
)
def test_money_is_exact(dollars: str, shown: str) -> None:
    """Cents at least, and every digit that there is."""
    assert shown == money(Decimal(dollars))


def test_counts_agree_with_their_nouns() -> None:
    """One step, two steps, thousands with a comma."""
    assert ["1 step", "0 steps", "2,360 tokens"] == [counted(1, "step"), counted(0, "step"), counted(2360, "token")]


def test_short_times_are_told_in_milliseconds() -> None:
    """A call of 2 ms did not take 0.0 s."""
    assert ["2 ms", "1.5 s"] == [took(0.002), took(1.5)]


def test_a_table_fits_and_cuts_its_last_column() -> None:
    """Columns are as wide as their widest cell; the last takes what is left."""
    rows = [["run", "status", "task"], ["ab12", "waiting", "a task that is too long for the line"]]
    assert ["run   status   task", "ab12  waiting  a task that is too…"] == table(rows, 35)
