"""Text that fits a terminal, whatever strangers have put into it. Pure functions."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

ELLIPSIS = "…"
MIN_SHARE = 8
"""Columns that an argument gets at least."""
LONGEST = 2_000
"""Characters of an argument that a person is shown at most."""
MIN_TEXT = 24
"""Columns that a text beside a head gets at least."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def clean(text: str) -> str:
    """Return a text on one line that cannot steer a terminal: what is not printable is written as an escape."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in "\n\t" else character.encode("unicode_escape").decode("ascii")


def columns(text: str) -> int:
    """Count the columns that a cleaned text takes: wide characters take two, combining ones none."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """Clean a text, and cut it to so many columns; a cut one ends with an ellipsis."""
    line = clean(text)
    if columns(line) <= width:
        return line
    taken = 0
    for place, character in enumerate(line):
        taken += _columns(character)
        if taken > width - 1:
            return line[:place].rstrip() + ELLIPSIS
    return line


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Break a text into lines between its words, its own line breaks kept; with None as width only those."""
    lines: list[str] = []
    for line in text.splitlines():
        cleaned = clean(line)
        if width is None or columns(indent + cleaned) <= width:
            lines.append((indent + cleaned).rstrip())
        else:
            lines += _filled(cleaned, width, indent)
    return lines


def _filled(line: str, width: int, indent: str) -> list[str]:
    """Fill lines by columns: `textwrap` counts characters, so wide ones get a narrower page."""
    density = -(-columns(line) // max(1, len(line)))
    page = max(20, (width - len(indent)) // density)
    return [indent + part for part in textwrap.wrap(line, page, break_on_hyphens=False)]


def call_text(tool: str, args: Mapping[str, object], width: int) -> str:
    """Write a call as Python would, in so many columns: the longest arguments are cut, each for itself."""
    parts = [clean(f"{name}={value!r}") for name, value in args.items()]
    room = width - columns(clean(tool)) - len("()") - len(", ") * max(0, len(parts) - 1)
    share = _share([columns(part) for part in parts], room)
    return fit(f"{tool}({', '.join(fit(part, share) for part in parts)})", width)


def call_lines(tool: str, args: Mapping[str, object], width: int | None, indent: str = "") -> list[str]:
    """Write a call whole, for whoever decides about it: on one line, or an argument a line where that does not fit.

    With None as width it is one line, however long. Otherwise an argument of more than `LONGEST` characters is cut, and
    says by how much.
    """
    line = indent + clean(f"{tool}({', '.join(f'{name}={value!r}' for name, value in args.items())})")
    if width is None or columns(line) <= width:
        return [line]
    lines = [f"{indent}{clean(tool)}("]
    for name, value in args.items():
        first, *others = _filled(clean(f"{name}={_bounded(value)},"), width - 2, indent + "  ")
        lines += [first, *(f"  {other}" for other in others)]
    return [*lines, f"{indent})"]


def _bounded(value: object) -> str:
    """Write a value; of a very long one its beginning, and how much is missing."""
    written = repr(value)
    missing = len(written) - LONGEST
    return written if missing <= 0 else f"{written[:LONGEST]}{ELLIPSIS} ({missing:,} characters more: see --json)"


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """Write a text behind a head, and break it so that it stays to the right of it, or below where that is narrow."""
    if width is None or columns(head + text) <= width:
        return [f"{head}{clean(text)}".rstrip()]
    if width - columns(head) < MIN_TEXT:
        return [head.rstrip(), *_filled(clean(text), width, "       ")]
    indent = " " * columns(head)
    first, *others = _filled(clean(text), width, indent)
    return [head + first.removeprefix(indent), *others]


def _share(wanted: list[int], room: int) -> int:
    """Return how much each may take at most, so that all fit: who wants less leaves its rest to the others."""
    share = MIN_SHARE
    for place, least in enumerate(sorted(wanted)):
        share = max(MIN_SHARE, room // (len(wanted) - place))
        if least > share:
            break
        room -= least
    else:
        share = max([share, *wanted])
    return share


def step_line(step: int, tool: str, args: Mapping[str, object], observation: str, width: int) -> str:
    """Write a step on one line: `[1] lookup_order(order_id='A100') -> …`."""
    head = f"[{step}] "
    call = call_text(tool, args, max(24, width * 3 // 4 - len(head)))
    return fit(f"{head}{call} -> {observation}", width)


def age(seconds: float) -> str:
    """Say how long something took or is ago, in its largest unit."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h"
    return f"{whole // _DAY} days"


def took(seconds: float) -> str:
    """Say how long a call took."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def when(at: float) -> str:
    """Write a moment in the local time, by the second."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def money(dollars: Decimal) -> str:
    """Write US dollars: cents at least, more digits where there are any."""
    cents = dollars.quantize(Decimal("0.01"))
    exact = dollars.normalize()
    return f"${cents}" if cents == exact else f"${exact:f}"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table(rows: list[list[str]], width: int) -> list[str]:
    """Lay rows out in columns; the last one takes, and is cut to, what is left of the width."""
    wide = [max(columns(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    room = max(10, width - sum(wide) - 2 * len(wide))
    return ["  ".join([*map(_padded, row, wide), fit(row[-1], room)]).rstrip() for row in rows]


def _padded(cell: str, wide: int) -> str:
    return cell + " " * (wide - columns(cell))
