"""Whether a value stands in somebody's words: whole tokens, strictly normalised. Pure functions.

Numbers are compared by value, dates and times by what they mean, all else without regard to case. A token is never
found inside a longer one: `13` stands neither in `June 13` (a date) nor in `bill-13.txt` (a name).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_TOKEN = re.compile(
    rf"""
      (?P<url>(?:https?://|www\.)[^\s<>"'`|\\^{{}}\[\]()“”]+)
    | (?P<mail>[\w.+%-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<iban>(?-i:[A-Z]{{2}}\d{{2}}(?:\ [A-Z0-9]{{4}}){{2,7}}(?:\ [A-Z0-9]{{1,3}})?)(?!\w))
    | (?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})(?=T\d|(?![\w-]))
    | (?P<month_first>{_MONTH}\ \d{{1,2}}(?:st|[nr]d|th)?(?:,?\ \d{{4}})?)(?!\w)
    | (?P<day_first>\d{{1,2}}(?:st|[nr]d|th)?(?:\ of)?\ {_MONTH}(?:\ \d{{4}})?)(?!\w)
    | (?P<numeric>\d{{1,2}}(?P<between>[./])\d{{1,2}}(?P=between)\d{{4}})(?!\w)
    | (?P<time>T?\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?:\ ?[ap]m)?|\d{{1,2}}\ ?[ap]m)(?!\w|:)
    | (?P<number>(?<![\w.)])-?\d+(?:[.,'’]\d+)*|\d+(?:[.,'’]\d+)*)(?![\w%‰]|[-/.,:@'’]\w)
    | (?P<word>\w+(?:[-./_'’@:+\#&=~%]+\w+)*[%‰]?)
    | (?P<mark>[^\s"'“”‘’`()\[\]{{}}<>,])
    """,  # noqa: RUF001 -- the marks that people type
    re.VERBOSE | re.IGNORECASE,
)
_TEMPLATE = re.compile(r"[\"'“‘`]([^\"'“”‘’`\n]*\{\w+\}[^\"'“”‘’`\n]*)[\"'”’`]")  # noqa: RUF001 -- as above
_BLANK = re.compile(r"\{\w+\}")
_MAX_FILLED = 80
"""Characters that may stand where the user left a blank."""
_LINK = re.compile(r"\w\.\w{2}|\w@\w|://")
_LONG_NUMBER, _LONG_CODE, _SOME_FIGURES, _LONG_WORD = 6, 6, 3, 32
"""From so many digits, or characters with so many digits among them, a word may be an account, a key or a code."""
_DAYS, _HOURS, _MONTHS_A_YEAR, _HALF_A_DAY = 31, 24, 12, 12

_ENDS = frozenset(("mark", character) for character in ".!?;:-–…")  # noqa: RUF001 -- as above
"""What a text may end or begin with: left out when it is compared."""
_DASH = ("mark", "-")
"""It may not begin with this one: `--all` is an order to many a program, and `all` is a word."""

_AGREE = frozenset({"yes", "yep", "yeah", "confirm", "confirmed", "agreed", "correct", "ok", "okay", "sure"})
_BESIDE = frozenset(
    {"please", "do", "it", "that", "this", "is", "s", "right", "i", "go", "ahead", "proceed", "and", "all", "thanks"}
    | {"thank", "you", "absolutely", "definitely", "exactly", "of", "course", "sounds", "good", "looks", "the"}
)
"""What may stand beside a yes without changing it."""
_QUESTION = re.compile(r"\W*(?:is|do\s+i|i\s+do)\b")
"""How a question begins that is made of these words, and often lacks its mark; or what somebody does themselves."""
_ASKS = frozenset("?\u061f\u203d\u055e\u1367")
"""Question marks; what is a variant of the first one is read as it."""

Key = tuple[Any, ...]
"""What a token is compared by; its first item is the kind."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text, with where it stands in it."""

    key: Key
    begin: int
    end: int


_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?:[\u00a0\u202f\u2007\u2009]\d{3})+(?!\d)")
"""A number whose thousands are set apart by a space that does not break, or a narrow one: `1 000,50` in print."""
_NARROW = re.compile(r"[\u00a0\u202f\u2007\u2009]")


def normal(text: str) -> str:
    """Return the text as it is read here: in Unicode's compatibility form, where a wide digit is a digit.

    That form knows no narrow spaces; so those within numbers become apostrophes before.
    """
    if not text.isascii():
        text = _GROUPED.sub(lambda found: _NARROW.sub("'", found[0]), text)
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=64)
def tokens(text: str) -> tuple[Token, ...]:
    """Split a normal text into tokens; quotes, brackets and commas are left out."""
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        kind, said = str(found.lastgroup), found.group(0)
        if kind == "url":
            said = said.rstrip(".,;:!?")
        yield Token(_key(kind, said), found.start(), found.start() + len(said))


def _key(kind: str, said: str) -> Key:
    match kind:
        case "url":
            bare = re.sub(r"^https?://", "", said, flags=re.IGNORECASE).rstrip("/").casefold()
            # With a name before the host it would read as a mail address, and is none.
            return ("link" if "@" in bare.partition("/")[0] else "text", bare)
        case "iban":
            return ("text", said.replace(" ", "").casefold())
        case "iso" | "month_first" | "day_first" | "numeric":
            return _date_key(said) or ("text", said.casefold())
        case "time":
            return _time_key(said) or ("text", said.casefold())
        case "number":
            return _number_key(said)
        case "mark":
            return ("mark", said)
        case _:
            return ("text", said.casefold())


def _date_key(said: str) -> Key | None:
    """Read a date; None for one that could be two, such as 3/4/2024, and for one that is none."""
    figures = [int(part) for part in re.findall(r"\d+", said)]
    named = re.search(r"[a-z]{3,}", said.casefold().replace("of", ""))
    if named and named[0][:3] in _MONTHS:
        year = figures[1] if len(figures) > 1 else None
        return _checked_date(year, _MONTHS.index(named[0][:3]) + 1, figures[0])
    if "-" in said:
        return _checked_date(*figures)
    day, month, year = figures
    if "/" in said and day != month:
        if day <= _MONTHS_A_YEAR and month <= _MONTHS_A_YEAR:
            return None
        day, month = max(day, month), min(day, month)
    return _checked_date(year, month, day)


def _checked_date(year: int | None, month: int, day: int) -> Key | None:
    return ("date", year, month, day) if 1 <= month <= _MONTHS_A_YEAR and 1 <= day <= _DAYS else None


def _time_key(said: str) -> Key | None:
    figures = [int(part) for part in re.findall(r"\d+", said)][:3]
    hour, minute, second = [*figures, 0, 0][:3]
    half = said.casefold()[-2:]
    if half in {"am", "pm"}:
        if not 1 <= hour <= _HALF_A_DAY:
            return None
        hour = hour % _HALF_A_DAY + (_HALF_A_DAY if half == "pm" else 0)
    return ("time", hour, minute, second) if hour <= _HOURS else None


_APOSTROPHES = re.compile(r"-?\d{1,3}(?:['’]\d{3})+(?:[.,]\d+)?")  # noqa: RUF001 -- a mark that people type
_BOTH_MARKS = re.compile(r"-?\d{1,3}(?:(?:,\d{2,3})*,\d{3}\.|(?:\.\d{3})+,)\d+")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")
_DOUBTFUL = re.compile(r"-?[1-9]\d{0,2}\.\d{3}|0\d+")


def _number_key(said: str) -> Key:
    """Read a number; `1.234` alone could be two, `007` is a code, and `5'10` no number: they stay texts."""
    plain = re.sub(r"['’]", "", said)  # noqa: RUF001 -- as above
    if plain != said and not _APOSTROPHES.fullmatch(said):
        return ("text", said.casefold())
    points, commas = plain.count("."), plain.count(",")
    if points and commas:
        if not _BOTH_MARKS.fullmatch(plain):
            return ("text", said.casefold())
        last = max(plain.rfind("."), plain.rfind(","))
        plain = re.sub(r"[.,]", "", plain[:last]) + "." + plain[last + 1 :]
    elif commas:
        plain = plain.replace(",", "" if _THOUSANDS.fullmatch(plain) else ".")
    elif _DOUBTFUL.fullmatch(plain) or points > 1:
        return ("text", said)
    try:
        return _exact(Decimal(plain))
    except InvalidOperation:
        return ("text", said.casefold())


def _exact(number: Decimal) -> Key:
    """Return a number without its trailing zeros, and with all its digits, however many or far apart they are."""
    if not number.is_finite():
        return ("text", str(number).casefold())
    digits = len(number.as_tuple().digits)
    return ("number", number.normalize(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)))


def scalars(value: object, *, keys: bool = True) -> Iterator[object]:
    """Walk through a value's single parts; None, empty texts and empty lists have none.

    Args:
        value: Any.
        keys: Whether the keys of a mapping are parts, too: whoever chooses them chooses what the call does. The names
            of a model's fields never are: its schema chose them.
    """
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from (key,) if keys else ()
            yield from scalars(item, keys=keys)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in cast("Sequence[object]", value):
            yield from scalars(item, keys=keys)
    elif isinstance(value, BaseModel):
        for name, item in value:
            yield from (name,) if keys and name not in type(value).model_fields else ()
            yield from scalars(item, keys=keys)
    elif value is not None and value != "":
        yield value.value if isinstance(value, Enum) else value


def keys_of(value: object) -> tuple[Key, ...]:
    """Return what a single value is compared by; nothing for one that no words can stand for, such as True."""
    if isinstance(value, bool):
        return ()
    if isinstance(value, int):
        return (_exact(Decimal(value)),)
    if isinstance(value, float | Decimal):
        return (_exact(Decimal(str(value))),)
    text = value.isoformat() if isinstance(value, date | datetime | time) else str(value)
    keys = [token.key for token in tokens(normal(text))]
    while keys and keys[-1] in _ENDS:
        keys.pop()
    while keys and keys[0] in _ENDS and keys[0] != _DASH:
        keys.pop(0)
    return tuple(keys)


def stands_in(value: object, said: Sequence[str], *, blanks: bool = True) -> bool:
    """Tell whether a value stands in one of these texts, each of its parts as a whole.

    None and what is empty choose nothing, and so stand in any text.

    Args:
        value: Any.
        said: The texts.
        blanks: Whether a text that the speaker quoted with blanks, such as `'Dinner at {restaurant}'`, stands for what
            fills them.
    """
    return all(_part_stands_in(part, said, blanks=blanks) for part in scalars(value))


def _part_stands_in(part: object, said: Sequence[str], *, blanks: bool) -> bool:
    keys = keys_of(part)
    if not keys:
        return False
    if all(key[0] in {"date", "time"} for key in keys):
        return all(any(_find((key,), normal(text)) for text in said) for key in keys)
    return any(_find(keys, normal(text)) or (blanks and _fills(part, normal(text))) for text in said)


def is_yes(text: str) -> bool:
    """Tell whether a message says yes and nothing else; "yes, but …", "yes to the first" and "is it ok" do not."""
    said = normal(text).casefold()
    words = set(re.findall(r"\w+", said))
    has_signs = any(unicodedata.category(character) in {"So", "Cf"} or character in _ASKS for character in said)
    return bool(words & _AGREE) and words <= _AGREE | _BESIDE and not has_signs and not _QUESTION.match(said)


def find(value: object, text: str) -> tuple[int, int] | None:
    """Return where a single value stands in a normal text; None where it does not."""
    keys = keys_of(value)
    return _find(keys, text) if keys else None


def _find(keys: Sequence[Key], text: str) -> tuple[int, int] | None:
    known = tokens(text)
    for place in range(len(known) - len(keys) + 1):
        if all(_is_same(key, known[place + ahead].key) for ahead, key in enumerate(keys)):
            return known[place].begin, known[place + len(keys) - 1].end
    return None


def _is_same(key: Key, said: Key) -> bool:
    """Compare a value's token with one that was said; a date said without a year is of any year."""
    if key[0] == "date" and said[0] == "date" and said[1] is None:
        return key[2:] == said[2:]
    return key == said


def _fills(part: object, text: str) -> bool:
    """Tell whether a text is one that was quoted with blanks, filled with plain words."""
    value = " ".join(normal(str(part)).split()).casefold()
    return any(_fits(value, quoted) for quoted in _TEMPLATE.findall(text))


def _fits(value: str, quoted: str) -> bool:
    fixed = _BLANK.split(quoted.casefold())
    if not any(re.search(r"\w{2}", part) for part in fixed):
        return False  # nothing but blanks: anything would fit
    pattern = rf"(.{{1,{_MAX_FILLED}}}?)".join(map(_spaced, fixed))
    found = re.fullmatch(pattern, value)
    return found is not None and all(is_plain(filled, ()) for filled in found.groups())


def _spaced(part: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(part))


def is_plain(value: object, said: Sequence[str]) -> bool:
    """Tell whether a text brings no link, address, account, code or long number that these texts do not hold."""
    suspects = [token for part in scalars(value) for token in tokens(normal(str(part))) if _is_suspect(token.key)]
    return all(any(_find((token.key,), normal(text)) for text in said) for token in suspects)


def _is_suspect(key: Key) -> bool:
    if key[0] == "number":
        return len(re.sub(r"\D", "", f"{key[1]:f}")) >= _LONG_NUMBER
    if key[0] != "text":
        return False
    word = str(key[1])
    figures = sum(map(str.isdigit, word))
    is_code = len(word) >= _LONG_CODE and figures >= _SOME_FIGURES
    return is_code or len(word) > _LONG_WORD or _LINK.search(word) is not None
