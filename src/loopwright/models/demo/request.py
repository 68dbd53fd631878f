"""What the user wants, read from the user's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from . import words
from .words import Language, fold, has_stem, words_of


class Intent(StrEnum):
    """What a message is about."""

    MAY_REFUND = "may_refund"
    """Can this be refunded? Nothing is to be paid."""
    REFUND = "refund"
    """Pay it back."""
    STATUS = "status"
    PERSON = "person"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Request:
    """A task as it was understood."""

    language: Language
    intent: Intent
    codes: tuple[str, ...]
    """The orders it is about, as the user wrote them."""
    today: date | None
    """The date of today, where the user says it."""
    amount: int | None
    """What to pay back, where the user says it; None means all."""
    is_amount_clear: bool
    text: str


_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_NUMBER_SIGN = re.compile(r"\bn(?:[º°]|[oº]\.|um\.)\s*(?=[\w-]*\d)", re.IGNORECASE)
_CODE = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])\w+(?:-\w+)*")
_NO_CODE = re.compile(r"\d+(?:st|[nr]d|th|er|eme|ème|days?|d[ií]as?|jours?|hours?|hrs?|eur|euros?|usd|brl|mxn|º|ª)")
_NUMBERED = re.compile(
    r"(?:\b(?:order|pedido|commande|orden|encomenda)\s*(?:number|n[uú]mero|numéro)?\s*[:#]?|#)\s*([\w-]*\d[\w-]*)"
    r"|\b(?:orders|pedidos|commandes|[oó]rdenes|encomendas)\s*[:#]?\s*(\d+(?:\s*(?:,|&|and|y|e|et)\s*\d+)*)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[\w-]*\d[\w-]*")
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,' ]\d{3})*(?:[.,]\d+)?(?=(?:eur|euros?|usd|brl|mxn)?(?!\w))(\s*%)?")
_WHOLE = re.compile(r"-?\d+|-?\d{1,3}(?:[.,' ]\d{3})+")
_SPAN = re.compile(r"\d+\s*(?:days?|dias?|jours?|hours?|horas?|heures?|weeks?|semanas?|semaines?)\b|\d+:\d+")
_CLOSE = 20


def read_request(texts: Sequence[str]) -> Request:
    """Read the newest of the user's messages; the earlier ones lend the language and the order it leaves out."""
    texts = [_NUMBER_SIGN.sub("#", text) for text in texts]
    text = texts[-1]
    known = (words.detect_language(earlier) for earlier in reversed(texts))
    language = next((found for found in known if found), Language.ENGLISH)
    codes = next((found for found in map(read_codes, reversed(texts)) if found), ())
    intent = read_intent(text)
    amount, is_clear = _read_amount(text) if intent is Intent.REFUND else (None, True)
    return Request(language, intent, codes, read_today(text), amount, is_clear, text)


def read_codes(text: str) -> tuple[str, ...]:
    """Find the order codes, each once: words with a digit in them, and plain numbers behind "order" or "#"."""
    bare = _DATE.sub(" ", text)
    found = [
        (match.start(), match.group()) for match in _CODE.finditer(bare) if not _NO_CODE.fullmatch(match[0].casefold())
    ]
    for match in _NUMBERED.finditer(bare):
        found += [(token.start(), token.group()) for token in _TOKEN.finditer(bare, *match.span(match.lastindex or 0))]
    by_letters = {code.casefold(): code for _, code in sorted(found, reverse=True)}
    return tuple(reversed(by_letters.values()))


def read_today(text: str) -> date | None:
    """Find the date of today: the one beside the word, else the newest that is not said of a delivery or a purchase."""
    folded = fold(text)
    dates = [(match.start(), _as_date(match[1])) for match in _DATE.finditer(folded)]
    valid = [(place, day) for place, day in dates if day is not None]
    named = [match.end() for match in re.finditer("|".join(words.TODAY), folded)]
    if not valid or not (named or not has_stem(words_of(folded), words.PAST)):
        return None
    if not named:
        return max(day for _, day in valid)
    return min(valid, key=lambda found: min(_distance(found[0], place) for place in named))[1]


def _distance(place: int, word_end: int) -> tuple[bool, int]:
    """Rank a date by its distance from the word; one close behind the word comes before all others."""
    gap = place - word_end
    return not 0 <= gap <= _CLOSE, abs(gap)


def _as_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_intent(text: str) -> Intent:
    """Tell what a message is about; in doubt it is a question, since a question pays nothing."""
    known = words_of(fold(text))
    about_refund = _is_about_refund(known)
    if _wants_person(known, is_busy=about_refund):
        return Intent.PERSON
    if about_refund:
        return Intent.REFUND if _instructions(text) else Intent.MAY_REFUND
    if has_stem(known, words.STATUS) or read_codes(text):
        return Intent.STATUS
    return Intent.OTHER


def _wants_person(known: list[str], *, is_busy: bool) -> bool:
    if words.PEOPLE.isdisjoint(known):
        return False
    return has_stem(known, words.TALK) or not (is_busy or has_stem(known, words.STATUS))


_POLITE = re.compile(
    r"\b(?:(?:can|could|would|will) you(?: please)? refund|please refund"
    r"|(?:puedes|podrias|podria usted|puede usted|por favor) (?:reembols|devolverme|devuelv)"
    r"|(?:voce (?:pode|poderia)|por favor,?) (?:me )?(?:reembols|devolv)"
    r"|(?:pouvez|pourriez)[- ]vous (?:me )?rembourser|(?:peux|pourrais)[- ]tu (?:me )?rembourser)"
)
_VERB = re.compile(
    r"(?<!\ba )(?<!\bthe )(?<!\bmy )(?<!\bthis )(?<!\bany )(?<!\bfull )(?<!\bfor )(?<!\babout )\brefund\b"
    r"(?! (?:for|of|status|policy|rules?|window|eligib))"
)


def _instructions(text: str) -> list[str]:
    """Return the sentences that tell us to pay; none where the message asks anything beside a polite "can you"."""
    sentences = [part for part in re.split(r"(?<=[.!?;\n])\s+", text) if part.strip()]
    return [sentence for sentence in sentences if _instructs(fold(sentence), asks="?" in text)]


def _instructs(folded: str, *, asks: bool) -> bool:
    known = words_of(folded)
    if not words.NEGATION.isdisjoint(_without_contraction(known)):
        return False
    if _POLITE.search(folded):
        return True
    if asks or not words.ASKING.isdisjoint(known):
        return False
    by_verb = not words.IMPERATIVE.isdisjoint(known) or _VERB.search(folded) is not None
    return by_verb or (_is_about_refund(known) and not words.WANTING.isdisjoint(known))


def _without_contraction(known: list[str]) -> list[str]:
    """Leave out the Portuguese "no", which means "in the"."""
    is_portuguese = words.detect_language(" ".join(known)) is Language.PORTUGUESE
    return [word for word in known if word != "no" or not is_portuguese]


def _is_about_refund(known: list[str]) -> bool:
    return has_stem(known, words.REFUND) or {"money", "back"} <= set(known)


def _read_amount(text: str) -> tuple[int | None, bool]:
    """Read how much to pay back, and whether that is clear: all, or one whole number."""
    telling = " ".join(_instructions(text))
    rest = _DATE.sub(" ; ", telling)
    for code in read_codes(telling):
        rest = re.sub(rf"(?<![\w-]){re.escape(code)}(?![\w-])", " ; ", rest)
    rest = _SPAN.sub(" ; ", fold(rest))
    if not re.search(r"\d", rest):
        return None, words.VAGUE.isdisjoint(words_of(rest))
    numbers = list(_NUMBER.finditer(rest))
    if len(numbers) != 1 or numbers[0][1] or not _WHOLE.fullmatch(numbers[0][0]):
        return None, False
    return int(re.sub(r"[^\d-]", "", numbers[0][0])), True
