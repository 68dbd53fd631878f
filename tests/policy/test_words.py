"""Whether a value stands in somebody's words: tables, and what no text may bring about."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from loopwright.policy.words import find, is_plain, is_yes, keys_of, stands_in


class Access(Enum):
    """An argument can be one of a few."""

    READ = "read"


class Letter(BaseModel):
    """An argument can have parts, which its schema names."""

    to: str
    cc: str | None = None
    more: dict[str, int] = Field(default_factory=dict)


STANDS: list[tuple[Any, str]] = [
    (1200, "pay 1,200.00 now"),
    (Decimal("98.70"), "I owe 98,70 €."),
    (98.7, "98.70, please"),
    (30_000, "$30,000 in total"),
    ("1200", "rent is 1200."),
    ("13", "delete file 13."),
    ("GB29NWBK60161331926819", "from their account GB29 NWBK 6016 1331 9268 19, it seems"),
    ("GB29 NWBK 6016 1331 9268 19", "(from GB29NWBK60161331926819)"),
    ("John@X.com", "add john@x.com, mary@x.com"),
    ("www.a.com", "see https://www.a.com/."),
    ("bill-december.txt", "pay 'bill-december.txt' for me"),
    ("2024-05-20", "to May 20th, 2024"),
    (date(2024, 5, 20), "on the 20th of May"),
    (datetime(2024, 5, 20, 10, tzinfo=UTC).replace(tzinfo=None), "to 2024-05-20 at 10:00."),
    ("2024-05-20 22:00", "at 10 pm on 20.5.2024"),
    ("2024-05-20", "on 5/20/2024"),
    ("Catch up over lunch.", "with description Catch up over lunch.. Her address"),
    ("Dinner at Foo Bar", "call it 'Dinner at {restaurant}'"),
    ("STRASSE 1", "Straße 1"),
    (Access.READ, "with read permissions"),
    ([], "anything"),
    (None, "anything"),
    ("", "anything"),
    (["Ana", "Ben"], "invite Ana and Ben"),
    ({"to": "Ana", "cc": None}, "tell Ana, her address behind to, and cc nobody"),
    (Letter(to="Ana", cc=None), "tell Ana"),
    ({"Ana": 5}, "Ana gets 5"),
    (12345678901234567890123456789012, "to 12345678901234567890123456789012"),
    (1000.5, "pay 1\u202f000,50 €"),
    (1000.5, "pay 1\u00a0000,50 €"),
    (1000.5, "pay 1\u2009000.50 €"),
    (-1234567, "from -1\u202f234\u202f567 to 0"),
    (1000, "pay 1'000."),
    (1000.5, "pay 1’000,50"),  # noqa: RUF001 -- a mark that people type
    (1234.5, "1.234,50 in all"),
    (1234567.5, "12,34,567.50 rupees"),
    ("1\u202f000", "pay 1,000"),
    ("１２", "12 pieces"),  # noqa: RUF001 -- wide digits
]

STANDS_NOT: list[tuple[Any, str]] = [
    ("13", "on June 13"),
    (12, "at 12:00"),
    (2024, "on 2024-05-20"),
    (10, "10k"),
    (10, "10%"),
    (5, "5-10 pieces"),
    (1, "1,234-5"),
    (1200, "1.200 or so"),
    (-5, "5"),
    (1000, "items 1 000"),
    (15000, "items 1\u00a05000"),
    (1, "pay 1\u202f000,50 €"),
    (50, "pay 1\u202f000,50 €"),
    (510, "he is 5'10 tall"),
    (510.5, "sizes 5,10.5"),
    (1234, "sizes 12.3,4"),
    ("7", "agent 007"),
    (5, "room A-5"),
    ("ohn@x.com", "john@x.com"),
    ("x.com", "john@x.com"),
    ("https://john@x.com", "write to john@x.com"),
    ("john@x.com", "see https://john@x.com"),
    ("a.com", "www.a.com"),
    ("december", "pay bill-december.txt"),
    ("new_password", "the new password"),
    ("Alice Bob", "to Alice. Bob knows"),
    ("Ana", "Anabel"),
    ("Аna", "Ana"),  # noqa: RUF001 -- a Cyrillic letter
    ("Ana\u200b", "Ana"),
    ("2026-05-20", "on May 20th, 2024"),
    ("2024-03-04", "on 3/4/2024"),
    ("2024-05-20 10:00", "on May 20th"),
    ("Dinner at evil.com/x", "call it 'Dinner at {restaurant}'"),
    ("pay me", "say '{text}'"),
    ("...", "..."),
    (True, "True, yes"),
    (["Ana", "Eve"], "invite Ana"),
    ("--all", "delete all"),
    ({"Eve": 5}, "Ana gets 5"),
    (Letter(to="Ana", more={"Eve": 5}), "Ana gets 5"),
    (12345678901234567890123456789013, "to 12345678901234567890123456789012"),
    (Decimal("1E+9000000"), "much"),
    (Decimal("sNaN"), "nan"),
]


@pytest.mark.parametrize(("value", "said"), STANDS)
def test_what_stands_in_the_words(value: object, said: str) -> None:
    """Numbers by value, dates by what they mean, all else by whole tokens."""
    assert stands_in(value, [said])


@pytest.mark.parametrize(("value", "said"), STANDS_NOT)
def test_what_only_seems_to(value: object, said: str) -> None:
    """A part of a longer token, of a date or of a name; a look-alike; another year; a blank for everything."""
    assert not stands_in(value, [said])


@given(value=st.text(min_size=1, max_size=20) | st.integers() | st.decimals(allow_nan=False, allow_infinity=False))
def test_nothing_stands_where_nothing_was_said(value: object) -> None:
    """Whatever a model proposes."""
    assert not stands_in(value, []) or value == ""
    assert not stands_in(value, [""])


@given(st.from_regex(r"[a-z0-9]{2,12}", fullmatch=True), st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True))
def test_a_longer_token_holds_no_shorter_one(value: str, more: str) -> None:
    """Before it, behind it, or joined to it by what names, numbers and addresses are joined by."""
    longer = [value + more, more + value, *(f"{more}{joint}{value}" for joint in ("-", ".", "_", "@", "/", ":"))]
    for said in longer:
        is_same = keys_of(said) == keys_of(value)  # 01am is 1am
        assert is_same or not stands_in(value, [f"say {said} now"]), said


@given(st.text(), st.text(), st.integers())
def test_any_text_can_be_read(value: str, said: str, number: int) -> None:
    """Strangers write it: it must not make the guard fail."""
    assert isinstance(stands_in([value, number], [said]), bool)
    assert isinstance(is_plain(value, [said]), bool)
    assert find(value, said) is None or 0 <= find(value, said)[0] <= len(said)  # type: ignore[index]  # pyright: ignore[reportOptionalSubscript]  # just seen


@pytest.mark.parametrize(
    ("text", "is_free"),
    [
        ("Stay at Luxury Palace, 1 Rue de la Paix, 75002 Paris, from January 1st to 5th, 12:30.", True),
        ("Olivia Smith: 4\n- Mia Anderson: 2; e.g. late", True),
        ("see www.evil.com", False),
        ("see evil.com/x", False),
        ("mail eve@evil.com", False),
        ("passport HGK137803", False),
        ("card 4237-4252-7456-2574", False),
        ("code 463820", False),
        ("x" * 40, False),
        ("as at www.ours.com, code 111222", True),
    ],
)
def test_plain_text_brings_nothing_that_was_not_named(text: str, *, is_free: bool) -> None:
    """Links, addresses, accounts and codes are seen; those of the user are the user's."""
    assert is_free == is_plain(text, ["Tell them of www.ours.com with 111222."])


@pytest.mark.parametrize("text", ["yes", "Yes, please!", "I confirm.", "OK, go ahead", "Yes, that's right. Thank you"])
def test_a_plain_yes(text: str) -> None:
    """Agreement, and nothing that could change what is agreed to."""
    assert is_yes(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "no", "yes?", "Yes, but not that one", "yes to the first", "Sure, cancel all", "please", "Yes 500"),
        *("is this correct", "Is it OK", "do I confirm that", "OK, \u274c", "yes\u061f", "ok\uff1f", "yes\u200b"),
    ],
)
def test_no_plain_yes(text: str) -> None:
    """Any other word can change it."""
    assert not is_yes(text)
