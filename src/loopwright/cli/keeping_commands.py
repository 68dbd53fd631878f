"""The commands about what is kept."""

from __future__ import annotations

import click

from .commanding import Command
from .exits import Exit
from .options import as_json


@click.command(cls=Command, examples=["loopwright log --since 7d", "loopwright log 19ac1e", "loopwright log --verify"])
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--since", metavar="TIME", help="Only from then on: 2026-10-13, '2026-10-13 09:30', or 2h ago.")
@click.option("--until", metavar="TIME", help="Only what was before.")
@click.option("--verify", is_flag=True, help="Recompute the chain instead: exit code 1 if it is broken.")
@as_json
def log(*, run_id: str | None, since: str | None, until: str | None, verify: bool, as_json: bool) -> Exit:
    """List what was decided and done, or verify the record.

    Each record is chained to the one before by its hash: verifying finds any that was changed, moved, left out or
    added since.
    """
    from .keeping import show_log, verify_log
    from .screen import Screen

    screen = Screen(as_json=as_json)
    if verify and (run_id or since or until):
        raise click.UsageError("--verify looks at the whole chain: leave out the run and the times")
    return verify_log(screen) if verify else show_log(run_id, screen, since=since, until=until)


@click.command(cls=Command, examples=["loopwright prune --older-than 30"])
@click.option(
    "--older-than", type=click.FloatRange(0), required=True, metavar="DAYS", help="Only what ended longer ago."
)
@as_json
def prune(*, older_than: float, as_json: bool) -> Exit:
    """Shrink threads whose runs have ended to their last state.

    The transcript, the trail and the log stay, and so does whatever runs or waits. What goes is the way there: older
    checkpoints, and with them time travel into the past.
    """
    from .keeping import prune_threads
    from .screen import Screen

    return prune_threads(older_than, Screen(as_json=as_json))


@click.command(cls=Command, examples=["LOOPWRIGHT_ENCRYPTION=NEW,OLD loopwright reseal"])
@as_json
def reseal(*, as_json: bool) -> Exit:
    """Seal an encrypted database anew with the first key.

    Give the new key first and the old ones behind it, in LOOPWRIGHT_ENCRYPTION, here and to all workers; those may work
    meanwhile. It may be stopped and begun again. When it says that none needs another key, the old ones can be dropped:
    exit code 1 if some row still does.
    """
    from .keeping import reseal_all
    from .screen import Screen

    return reseal_all(Screen(as_json=as_json))
