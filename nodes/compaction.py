"""Fits what the model is sent into its context window: old results short, old turns left out and summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.models import count_text, reported_input, size_of
from loopwright.policy import (
    Compaction,
    Frame,
    Layout,
    Piece,
    TooLong,
    is_left_out,
    longest_summary,
    plan_layout,
    size_of_layout,
)
from loopwright.state import (
    AgentState,
    CompactionRecord,
    Decision,
    FinalAnswer,
    Malformed,
    Purpose,
    RunRecord,
    StopReason,
    UsageRecord,
    dump_decision,
    load_decision,
)

from .context import taint_of
from .last_words import taken_as_words
from .pieces import ROOM_FOR_MARKS, piece_of
from .spec import AgentSpec
from .summary import cut_summary, part_of
from .view import Places, digest_of, pinned_of, place_behind, places_in, summary_message, view_of

ROOM_TO_GO_ON = 40
"""Tokens of what is put between a summary and the turns behind it."""
STEPS_TO_SUMMARISE = 2
"""One to sum up, and one to go on: with fewer, turns are left out without a summary."""
LEAST_SCALE, MOST_SCALE = 0.5, 4.0
"""How far a provider's count is believed, beside the estimate."""
TOLD_PART = 0.9
"""Of what may be sent, for a transcript that is told without calls, which takes a little more."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is sent of the transcript with the next call of the model."""

    messages: list[AnyMessage]
    purpose: Purpose
    record: CompactionRecord | None = None
    """The compaction that is new with it, if one is; to be stored together with the reply."""
    without: CompactionRecord | None = None
    """The one that holds in its place where no summary comes: all that has to go is left out, so the run goes on."""
    too_long: str = ""
    """Why no call can be made at all, in words."""
    tokens: int = 0
    """How much is sent, estimated; 0 where it cannot be made shorter."""


def context_of(state: AgentState, spec: AgentSpec) -> Context:
    """Return what to send: the transcript, what stands for it, or a part of it to be summed up first.

    Pure: the same state gives the same context, so that a crash changes nothing.
    """
    purpose = Purpose(state["run"].get("purpose", Purpose.DECIDE))
    if spec.compaction is None:
        return Context(state["messages"], purpose)
    return _Planner(state, spec, spec.compaction, purpose).context()


def with_compaction(update: dict[str, Any], context: Context) -> dict[str, Any]:
    """Store a new compaction together with the reply to what was sent by it."""
    is_stored = context.record is not None and "decision" in update
    return {**update, "compactions": [context.record]} if is_stored else update


def with_summary(update: dict[str, Any], context: Context, state: AgentState, spec: AgentSpec) -> dict[str, Any]:
    """Return the update of a call that was to sum up; where no summary came of it, old turns are left out without one.

    Either way it is a step, so that steps bound it. What is left out then is in the next summary.
    """
    run: RunRecord = update.get("run") or state["run"]
    made, without = context.record, context.without
    if run.get("stop") == StopReason.CANCELLED or made is None or without is None:
        return {**update, "run": {**run, "purpose": Purpose.DECIDE}}
    written = update.get("decision")
    said = taken_as_words(load_decision(written) if written else Malformed("empty"))  # no call in it may be screened
    usage: UsageRecord = update["usage"]
    return {
        "run": {**state["run"], "purpose": Purpose.SUMMARISE},
        "usage": {**usage, "steps": state["usage"]["steps"] + 1},
        "decision": dump_decision(said),
        "compactions": [_summed_up(made, said, _most(state["run"], spec)) or without],
    }


def _most(run: RunRecord, spec: AgentSpec) -> int:
    """Return the tokens that may be sent: by the context window, or by what a provider has refused in this run."""
    most = spec.compaction.most(spec.window) if spec.compaction is not None else spec.window
    return min(most, run.get("fits", most))


def _summed_up(record: CompactionRecord, said: Decision, sent: int) -> CompactionRecord | None:
    """Return a compaction with the summary that the model wrote; None where it wrote none."""
    if not isinstance(said, FinalAnswer):
        return None
    most = int(longest_summary(sent) / record["scale"])
    summary = cut_summary(said.text, most - _around_summary(record))
    return {**record, "summary": summary, "covered": record["until"], "gap": "", "made": True} if summary else None


def _around_summary(record: CompactionRecord) -> int:
    return size_of(summary_message({**record, "summary": "", "gap": ""})) + ROOM_FOR_MARKS


class _Planner:
    """Plans one call. The transcript is looked at from where it is left out on, so a step costs no more for its age."""

    def __init__(self, state: AgentState, spec: AgentSpec, compaction: Compaction, purpose: Purpose) -> None:
        self.state = state
        self.spec = spec
        self.compaction = compaction
        self.purpose = purpose
        self.messages = state["messages"]
        self.record, self.places = _standing(state)
        self.pinned = pinned_of(self.messages)
        self.most = _most(state["run"], spec)

    def context(self) -> Context:
        pieces = self._pieces()
        layout = self._layout()
        scale = self._scale(pieces, layout)
        frame = self._frame(scale)
        planned = plan_layout(pieces, layout, frame)
        if isinstance(planned, TooLong) and self.purpose != Purpose.DECIDE:
            return Context(self._view(self.record), self.purpose)  # told without calls, it is shortened further
        if isinstance(planned, TooLong):
            return Context(self.messages, self.purpose, too_long=self._too_long(int(planned.tokens * scale)))
        tokens = int(size_of_layout(pieces, planned, frame) * scale)
        if planned is layout:
            return Context(self._view(self.record), self.purpose, tokens=tokens)
        record = self._new_record(pieces, planned, tokens, scale)
        if self._is_to_sum_up(pieces, planned):
            return self._summing_up(record, frame)
        is_kept = self.purpose == Purpose.DECIDE
        return Context(self._view(record), self.purpose, record if is_kept else None, tokens=tokens)

    def _is_to_sum_up(self, pieces: Sequence[Piece], planned: Layout) -> bool:
        """Tell whether the model is asked for a summary; in last words and the like, it is too late for one."""
        if self.purpose != Purpose.DECIDE or not is_left_out(pieces, planned.cut):
            return False
        steps = self.spec.bounds(self.state["run"], self.state["thread"]).max_steps
        return steps is None or steps - self.state["usage"]["steps"] >= STEPS_TO_SUMMARISE

    def _summing_up(self, record: CompactionRecord, frame: Frame) -> Context:
        """Return the call that sums up; of more than fits into one call, the older part.

        Without a summary all is left out at once: the same part would be asked for again, step by step to the limit.
        """
        without = record
        begin = place_behind(self.messages, record["covered"])
        part = part_of(self.messages, begin, place_behind(self.messages, record["until"]), record, frame)
        until = self.messages[part.end - 1].id or ""
        if until != record["until"]:
            record = {**record, "until": until, "digest": digest_of(self.messages[: part.end]), "left_out": part.end}
        tokens = int(count_text(part.text) * record["scale"])
        return Context([HumanMessage(part.text, id="summarise")], Purpose.SUMMARISE, record, without, tokens=tokens)

    def _layout(self) -> Layout:
        base, record = self.places.left_out, self.record
        shares = record["shares"] if record else {}
        names = [str(message.id) for message in self.messages[base:]] if shares else []
        known = {place: shares[name] for place, name in enumerate(names) if name in shares}
        return Layout(short=max(0, self.places.short - base), shares=known)

    def _pieces(self) -> list[Piece]:
        base = self.places.left_out
        pieces = [piece_of(message) for message in self.messages[base:]]
        for place in self.pinned:
            if place >= base:
                pieces[place - base] = replace(pieces[place - base], is_pinned=True)
        return pieces

    def _frame(self, scale: float) -> Frame:
        """Return what the pieces must fit into, in our own estimate: the provider's count divided by its scale."""
        most = self.most / scale
        limit = int(most if self.purpose == Purpose.DECIDE else most * TOLD_PART)
        summary = size_of(summary_message(self.record)) if self.record and self.places.left_out else 0
        longest = int(longest_summary(self.most) / scale) + ROOM_FOR_MARKS
        return Frame(
            limit, int(limit * self.compaction.target), self._fixed(), summary, longest, self.compaction.keep_turns
        )

    def _fixed(self) -> int:
        early = [
            message
            for place, message in enumerate(self.messages[: self.places.left_out])
            if place in self.pinned or isinstance(message, SystemMessage)
        ]
        return self.spec.fixed_tokens + ROOM_TO_GO_ON + sum(map(size_of, early))

    def _scale(self, pieces: Sequence[Piece], layout: Layout) -> float:
        """Return how many tokens the provider counts for one that is estimated, by its newest report.

        A report is of the input as it was sent then: one from before the standing compaction says nothing any more.
        """
        base = self.places.left_out
        for place in range(len(self.messages) - 1, max(base, self.places.made_at) - 1, -1):
            if reported := reported_input(self.messages[place]):
                before = self._frame(1.0)
                estimated = size_of_layout(pieces[: place - base], layout, before)
                return min(MOST_SCALE, max(LEAST_SCALE, reported / max(1, estimated)))
        return self.record["scale"] if self.record else 1.0

    def _view(self, record: CompactionRecord | None) -> list[AnyMessage]:
        if record is None:
            return self.messages
        places = self.places if record is self.record else places_in(self.messages, record)
        return view_of(self.messages, record, places or Places())

    def _new_record(self, pieces: Sequence[Piece], planned: Layout, tokens: int, scale: float) -> CompactionRecord:
        base, before = self.places.left_out, self.record
        left_out = base + planned.cut if is_left_out(pieces, planned.cut) else base
        covered = before["covered"] if before else ""
        return CompactionRecord(
            run=self.state["run"]["id"],
            step=self.state["usage"]["steps"] + 1,
            at=self._id_before(len(self.messages)),
            shortened=self._id_before(base + planned.short),
            shares={str(self.messages[base + place].id): share for place, share in planned.shares.items()},
            until=self._id_before(left_out),
            digest=digest_of(self.messages[:left_out]),
            covered=covered,
            summary=before["summary"] if before else "",
            gap=self._gap(place_behind(self.messages, covered), left_out),
            made=False,
            tainted=bool(taint_of(self.state, self.spec.tools)),
            scale=scale,
            left_out=left_out,
            tokens=tokens,
        )

    def _id_before(self, place: int) -> str:
        return str(self.messages[place - 1].id) if place > 0 else ""

    def _gap(self, begin: int, end: int) -> str:
        """Say what is left out without a summary; empty where nothing is."""
        gone = [place for place in range(begin, end) if place not in self.pinned]
        if not gone:
            return ""
        results = [self.messages[place] for place in gone if isinstance(self.messages[place], ToolMessage)]
        tools = Counter(message.name or "" for message in results)
        calls = ", ".join(f"{name} ({count})" for name, count in sorted(tools.items())[:_TOOLS_NAMED])
        return f"({len(gone)} messages are left out here{f'; calls among them: {calls}' if calls else ''}.)"

    def _too_long(self, tokens: int) -> str:
        window, free = self.spec.window, self.spec.window - self.compaction.most(self.spec.window)
        taken = f"instructions, tools, the user's first and newest message and the latest turn take {tokens:,}"
        if "fits" in self.state["run"]:
            return f"the context window: {taken}, and the model has refused much more than {self.most:,} as too many"
        return f"the context window of {window:,} tokens: {taken}, and {free:,} are kept free for the reply"


_TOOLS_NAMED = 20


def _standing(state: AgentState) -> tuple[CompactionRecord | None, Places]:
    """Return the compaction that holds, with its places; none where the transcript is another since."""
    records = state.get("compactions") or []
    if records:
        places = places_in(state["messages"], records[-1])
        if places is not None:
            return records[-1], places
    return None, Places()
