"""Renewing: all that a process holds, in one statement a kind and one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from .database import Database
from .effects import EffectRow, EffectStatus
from .run_table import Lease, Leases, Presence

Held = Lease | EffectRow | Presence
"""What a process holds for as long as it works: a thread, an effect that it has claimed, a thread that a caller of a
plain `invoke` drives."""


class Renewals:
    """Moves the ends of leases and claims into the future, those of one owner all at once."""

    def __init__(
        self, database: Database, clock: Callable[[], float], leases: Leases, owner: str, seconds: float
    ) -> None:
        """Put them over their tables, for one owner."""
        self._database = database
        self._clock = clock
        self._leases = leases
        self._owner = owner
        self._seconds = seconds

    def renew(self, held: Sequence[Held]) -> list[bool]:
        """Renew all; returns of each whether it is still held, committed before this returns.

        One that somebody has locked just then is still held: it is tried again with the next beat.
        """
        self._database.hear_clock()
        leases = [lease for one in held if (lease := _lease_of(one)) is not None]
        claims = [one for one in held if isinstance(one, EffectRow)]
        arriving = [one.thread_id for one in held if isinstance(one, Presence) and one.lease is None]
        now = self._clock()
        until = {"owner": self._owner, "until": now + self._seconds}
        named = json.dumps([{"thread_id": lease.thread_id, "token": lease.token} for lease in leases])
        numbered = json.dumps([{"id": claim.id, "generation": claim.generation} for claim in claims])
        renewed, kept, taken = self._database.together(
            [
                ("renew_leases", {"held": named, **until}),
                ("renew_effects", {"held": numbered, **until}),
                ("take_leases", {"threads": json.dumps(arriving), "now": now, **until}),
            ]
        )
        threads, effects = {row["thread_id"] for row in renewed}, {row["id"] for row in kept}
        arrived = {
            row["thread_id"]: Lease(row["thread_id"], self._owner, row["token"], now + self._seconds) for row in taken
        }
        return [self._is_kept(one, threads, effects, arrived) for one in held]

    def _is_kept(self, one: Held, threads: set[str], effects: set[str], arrived: dict[str, Lease]) -> bool:
        match one:
            case EffectRow():
                return one.id in effects or self._is_claimed(one)
            case Lease():
                return one.thread_id in threads or self._leases.is_held(one)
            case Presence():
                lease = one.lease
                if lease is None:
                    one.arrive(arrived.get(one.thread_id))
                elif not (one.thread_id in threads or self._leases.is_held(lease)):
                    one.lose()
                return True

    def _is_claimed(self, claim: EffectRow) -> bool:
        rows = self._database.query("find_effect", id=claim.id)
        claimed = (EffectStatus.CLAIMED, claim.owner, claim.generation)
        return bool(rows) and (rows[0]["status"], rows[0]["owner"], rows[0]["generation"]) == claimed


def _lease_of(one: Held) -> Lease | None:
    if isinstance(one, Presence):
        return one.lease
    return one if isinstance(one, Lease) else None
