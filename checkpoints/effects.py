"""Effects: claimed before they are run, settled after, never run blindly twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from typing_extensions import TypedDict

from loopwright.errors import EffectNotFound

from .database import Database, Row
from .log import Log


class EffectStatus(StrEnum):
    """What is known of an effect; the values are what is stored."""

    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"
    """It did not happen."""
    UNKNOWN = "unknown"


class ClaimStatus(StrEnum):
    """What a claim brought."""

    MINE = "mine"
    """Run it, then settle."""
    DONE = "done"
    """It has happened: `result` is the answer."""
    FAILED = "failed"
    """It was tried under this very claim and did not happen: `result` says why."""
    BUSY = "busy"
    """A live worker runs it now."""
    UNKNOWN = "unknown"
    """Nobody knows whether it happened."""
    CONFLICT = "conflict"
    """The tool's own key names an effect with other arguments."""
    CANCELLED = "cancelled"
    """The run was cancelled meanwhile: nothing was claimed."""


class Brought(TypedDict, total=False):
    """What a call brought beside the text of its result; plain data."""

    place: str
    """The place of the call in its run: only there is it taken into the state."""
    update: dict[str, Any]
    """Of open channels."""
    artifact: Any
    blocks: list[dict[str, Any]]
    refused: bool
    """Whether the tool ran, and its result was refused: then the text says why."""


@dataclass(frozen=True, slots=True)
class EffectRow:
    """An effect, as the ledger has it."""

    id: str
    key: str
    digest: str
    tool: str
    run_id: str
    thread_id: str
    status: str
    owner: str
    generation: int
    """Counts the claims."""
    until: float
    result: Any
    began_at: float
    ended_at: float | None
    brought: Brought = field(default_factory=Brought)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Which effect is to be claimed, by which call."""

    id: str
    key: str
    """What the tool hands on as its idempotency key."""
    digest: str
    """Over tool and canonical arguments."""
    tool: str
    run_id: str
    thread_id: str
    repeatable: bool
    """Whether running it twice with one key is harmless (`idempotent`)."""
    own_key: bool
    """Whether the tool named it; else its place in the run did."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim brought; with `MINE` it is what settles the effect."""

    status: ClaimStatus
    effect: EffectRow | None = None
    in_doubt: bool = False
    """Whether somebody began it before, who is gone or does not know what came of it."""

    @property
    def result(self) -> Any:
        """What is stored as the effect's result."""
        return self.effect.result if self.effect else None


class Effects:
    """The effects, for one owner."""

    def __init__(self, database: Database, log: Log, clock: Callable[[], float], owner: str, seconds: float) -> None:
        """Put the effects over their table."""
        self._database = database
        self._log = log
        self._clock = clock
        self._owner = owner
        self._seconds = seconds

    def claim(self, request: ClaimRequest) -> Claim:
        """Claim an effect, or learn what became of it; committed before this returns."""
        same = {"digest": request.digest, "run_id": request.run_id, "thread_id": request.thread_id}
        with self._database.serial():
            there, run, alike = self._database.together(
                [
                    ("find_effect", {"id": request.id}),
                    ("find_run", {"id": request.run_id}),
                    ("unsettled_like", {"id": request.id, "now": self._clock(), **same}),
                ]
            )
            if there:
                return self._again(request, _effect(there[0]))
            if run and run[0]["cancel_by"]:
                return Claim(ClaimStatus.CANCELLED)
            if alike and not request.own_key:
                return self._like(request, _effect(alike[0]))
            return self._mine(self._database.write("claim_effect", **self._values(request)))

    def _is_cancelled(self, request: ClaimRequest) -> bool:
        run = self._database.query("find_run", id=request.run_id)
        return bool(run and run[0]["cancel_by"])

    def _like(self, request: ClaimRequest, row: EffectRow) -> Claim:
        """Answer for the very same call, in another place of this thread, of which nobody knows whether it happened.

        Only settling that one can tell whether this one is a repetition. One that may be repeated takes its key over.
        """
        return self._again(replace(request, id=row.id, key=row.key), row)

    def _again(self, request: ClaimRequest, row: EffectRow) -> Claim:
        """Decide what a second claim of one effect means."""
        if row.digest != request.digest:
            return self._other_arguments(request, row)
        match EffectStatus(row.status):
            case EffectStatus.DONE:
                return Claim(ClaimStatus.DONE, row)
            case EffectStatus.FAILED:
                return self._take_over(request, row) if request.own_key else Claim(ClaimStatus.FAILED, row)
            case EffectStatus.CLAIMED if row.until > self._clock():
                return Claim(ClaimStatus.BUSY, row)
            case EffectStatus.CLAIMED | EffectStatus.UNKNOWN if request.repeatable:
                return self._take_over(request, row)
            case EffectStatus.CLAIMED:
                self._lose(row)
                return Claim(ClaimStatus.UNKNOWN, row)
            case EffectStatus.UNKNOWN:
                return Claim(ClaimStatus.UNKNOWN, row)

    def _other_arguments(self, request: ClaimRequest, row: EffectRow) -> Claim:
        """One key, other arguments: never a stored result.

        Under a tool's own key that is a conflict, unless the earlier one did not happen. Under a place in the run the
        model said something else when the step was repeated: what was begun there is unknown.
        """
        if request.own_key:
            if row.status == EffectStatus.FAILED:
                return self._take_over(request, row)
            return Claim(ClaimStatus.CONFLICT, row)
        if row.status == EffectStatus.CLAIMED and row.until > self._clock():
            return Claim(ClaimStatus.BUSY, row)
        if row.status == EffectStatus.CLAIMED:
            self._lose(row)
        return Claim(ClaimStatus.UNKNOWN, row)

    def _take_over(self, request: ClaimRequest, row: EffectRow) -> Claim:
        if self._is_cancelled(request):
            return Claim(ClaimStatus.CANCELLED)
        values = self._values(request)
        won = self._database.write(
            "reclaim_effect",
            generation=row.generation,
            status=row.status,
            **{name: values[name] for name in ("id", "digest", "run_id", "thread_id", "owner", "until", "now")},
        )
        in_doubt = request.repeatable and row.status != EffectStatus.FAILED
        return self._mine(won, in_doubt=in_doubt) if won else Claim(ClaimStatus.BUSY, self.find(request.id))

    def _mine(self, written: Sequence[Row], *, in_doubt: bool = False) -> Claim:
        claimed = _effect(written[0])
        self._note("claimed", claimed, generation=claimed.generation)
        return Claim(ClaimStatus.MINE, claimed, in_doubt)

    def _values(self, request: ClaimRequest) -> dict[str, Any]:
        now = self._clock()
        return {
            "id": request.id,
            "key": request.key,
            "digest": request.digest,
            "tool": request.tool,
            "run_id": request.run_id,
            "thread_id": request.thread_id,
            "owner": self._owner,
            "until": now + self._seconds,
            "now": now,
        }

    def release(self, claim: Claim) -> None:
        """Give a claim back: the tool paused before it did anything, and will be called again.

        One that was taken over is as unknown as before: whoever began it may have done it.
        """
        row = claim.effect
        if row is None:
            return
        if claim.in_doubt:
            with self._database.serial():
                self._lose(row)
        else:
            self._database.write("release_effect", id=row.id, owner=row.owner, generation=row.generation)

    def retake(self, request: ClaimRequest) -> Claim:
        """Claim an unknown effect that a hook says did not happen; `BUSY` when another was faster."""
        with self._database.serial():
            row = self.get(request.id)
            if row.status != EffectStatus.UNKNOWN or row.digest != request.digest:
                return self._again(request, row)
            return self._take_over(request, row)

    def settle(self, claim: EffectRow, status: EffectStatus, result: Any, brought: Brought | None = None) -> EffectRow:
        """Say what became of a claimed effect; returns what counts, which another may have said before.

        Args:
            claim: From a claim with `MINE`.
            status: `DONE`, `FAILED`, or `UNKNOWN` when the tool was begun and its outcome is not known.
            result: JSON-like; the stored answer.
            brought: What the call brought beside it, for whoever carries the run on before its next checkpoint.
        """
        with self._database.serial():
            if status is EffectStatus.UNKNOWN:
                self._lose(claim)
                return self.get(claim.id)
            values = {"id": claim.id, "owner": claim.owner, "generation": claim.generation}
            told = {"result": json.dumps(result), "brought": json.dumps(brought) if brought else ""}
            won = self._database.write("settle_effect", status=status.value, now=self._clock(), **told, **values)
            if won:
                self._note("settled", claim, status=status.value)
                return _effect(won[0])
            # Taken for dead, it comes back with what no longer counts, and may contradict what does.
            self._note("late", claim, status=status.value, result=result, generation=claim.generation)
            return self.get(claim.id)

    def resolve(self, effect_id: str, status: EffectStatus, result: Any, by: str) -> tuple[bool, EffectRow]:
        """Say what became of an effect whose outcome is unknown; False when it was known already.

        A claim that has run out counts as unknown.
        """
        with self._database.serial():
            row = self.get(effect_id)
            if row.status == EffectStatus.CLAIMED and row.until <= self._clock():
                self._lose(row)
            values = {"id": effect_id, "status": status.value, "result": json.dumps(result), "now": self._clock()}
            won = bool(self._database.write("resolve_effect", **values))
            if won:
                self._note("resolved", row, status=status.value, by=by)
            return won, self.get(effect_id)

    def find(self, effect_id: str) -> EffectRow | None:
        """Return an effect, or None."""
        rows = self._database.query("find_effect", id=effect_id)
        return _effect(rows[0]) if rows else None

    def get(self, effect_id: str) -> EffectRow:
        """Return an effect.

        Raises:
            EffectNotFound: If there is none with that id.
        """
        found = self.find(effect_id)
        if found is None:
            text = f"no effect {effect_id!r}; `loopwright show RUN` lists a run's effects"
            raise EffectNotFound(text, effect_id=effect_id)
        return found

    def of_run(self, run_id: str) -> list[EffectRow]:
        """Return the effects of a run, in order."""
        return [_effect(row) for row in self._database.query("effects_of_run", run_id=run_id)]

    def matching(self, prefix: str) -> list[str]:
        """Return up to three ids that begin so."""
        return [row["id"] for row in self._database.query("find_effects_by_prefix", prefix=prefix)]

    def _lose(self, row: EffectRow) -> None:
        if self._database.write("lose_effect", id=row.id, generation=row.generation):
            self._note("unknown", row, generation=row.generation)

    def _note(self, event: str, row: EffectRow, **data: Any) -> None:
        about = {"effect": row.id, "key": row.key, "tool": row.tool, **data}
        self._log.append(event, thread_id=row.thread_id, run_id=row.run_id, **about)


def _effect(row: Row) -> EffectRow:
    result: Any = json.loads(row["result"]) if row["result"] else None
    values: dict[str, Any] = {**row, "result": result, "brought": json.loads(row["brought"] or "{}")}
    values.pop("seal")
    return EffectRow(**values)
