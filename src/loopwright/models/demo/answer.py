"""The final answer: what was seen and what came of it, in the user's language, and nothing else."""

from __future__ import annotations

from .case import ESCALATE, REFUND, Case, Finding
from .observation import Observation, OrderFacts, is_unknown_order, read_paid
from .phrases import PHRASES, Phrases
from .request import Intent

_QUOTE = 400


def answer(case: Case) -> str:
    """Say what came of a request about orders: a paragraph for each refund that was tried, and for each other order."""
    tried = list(zip(case.proposals, case.seen_of(REFUND), strict=False))
    outcomes = [_outcome(case, proposal, seen) for proposal, seen in tried]
    done = {code for (code, _), _ in tried}
    return "\n".join([*outcomes, *(_about(case, code) for code in case.request.codes if _name(case, code) not in done)])


def reasons(case: Case) -> str:
    """Say why the refunds that are being proposed are in order."""
    return "\n".join(_verdict(case, order) for order in case.orders if case.find(order) is Finding.REFUNDABLE)


def handed_over(case: Case) -> str:
    """Say whether a person takes over."""
    phrases, seen = PHRASES[case.request.language], case.seen_of(ESCALATE)
    if not seen:
        return phrases.nobody
    if seen[-1].is_held or seen[-1].is_failed:
        return phrases.not_handed_over.format(text=_quote(seen[-1].text))
    return phrases.handed_over


def _name(case: Case, code: str) -> str:
    order = case.order(code)
    return code if order is None else order.code


def _about(case: Case, code: str) -> str:
    order = case.order(code)
    if order is None:
        return _missing(case, code)
    if case.request.intent is Intent.STATUS:
        return _standing(PHRASES[case.request.language], order)
    return _verdict(case, order)


def _missing(case: Case, code: str) -> str:
    phrases, seen = PHRASES[case.request.language], case.lookup(code)
    if seen is None:
        return phrases.not_looked_up.format(code=code)
    if is_unknown_order(seen.facts):
        return phrases.not_found.format(code=code)
    return phrases.not_read.format(code=code, text=_quote(seen.text))


def _standing(phrases: Phrases, order: OrderFacts) -> str:
    phrase = phrases.stands if order.delivered is None else phrases.stands_delivered
    text = phrase.format(
        code=order.code, status=order.status, ordered=order.ordered, delivered=order.delivered, total=order.total
    )
    return " ".join([text, *_paid_before(phrases, order)])


def _verdict(case: Case, order: OrderFacts) -> str:
    phrases, finding = PHRASES[case.request.language], case.find(order)
    parts = [getattr(phrases, finding.value)]
    if finding is Finding.REFUNDABLE:
        parts += [phrases.in_window, phrases.amount]
    if finding is Finding.REFUNDABLE and case.request.intent is Intent.REFUND and REFUND not in case.tools:
        parts.append(phrases.cannot_pay)
    facts = _facts(case, order, phrases)
    return " ".join([*(part.format(**facts) for part in parts), *_paid_before(phrases, order)])


def _facts(case: Case, order: OrderFacts, phrases: Phrases) -> dict[str, object]:
    window = 0 if case.policy is None else case.policy.within_days
    return {
        "code": order.code,
        "status": order.status,
        "total": order.total,
        "left": order.left,
        "delivered": order.delivered,
        "today": case.today,
        "wanted": "" if case.policy is None else case.policy.status,
        "window": _days(phrases, window),
        "ago": "" if order.delivered is None else _days(phrases, (case.today - order.delivered).days),
    }


def _days(phrases: Phrases, n: int) -> str:
    return (phrases.day if n == 1 else phrases.days).format(n=n)


def _paid_before(phrases: Phrases, order: OrderFacts) -> list[str]:
    if not 0 < order.refunded < order.total:
        return []
    return [phrases.refunded_before.format(refunded=order.refunded, total=order.total)]


def _outcome(case: Case, proposal: tuple[str, int], seen: Observation) -> str:
    """Say what came of one refund; that it was paid only where its receipt says so."""
    phrases, (code, asked) = PHRASES[case.request.language], proposal
    paid = read_paid(seen.facts)
    if paid is None:
        phrase = phrases.held if seen.is_held else phrases.unconfirmed
        return phrase.format(code=code, text=_quote(seen.text))
    parts = [phrases.paid.format(code=paid.code, amount=paid.amount, receipt=paid.receipt)]
    if paid.account:
        parts.append(phrases.paid_to.format(account=paid.account))
    if (paid.code, paid.amount) != proposal:
        parts.append(phrases.paid_other.format(asked=asked, proposed=code))
    elif (order := case.order(code)) is not None:
        parts.append(phrases.in_window.format(**_facts(case, order, phrases)))
    return " ".join(parts)


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTE else f"{line[:_QUOTE]}…"
