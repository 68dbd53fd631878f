"""The commands by which a person answers."""

from __future__ import annotations

import click

from .commanding import Command
from .exits import Exit
from .options import as_json, by, role


@click.command(
    cls=Command, examples=["loopwright approve 3fa9c1 --by ana", "loopwright approve 3fa9c1 --by ana --role lead"]
)
@click.argument("approval_id", metavar="ID")
@by
@role
@as_json
def approve(*, approval_id: str, by: str, roles: tuple[str, ...], as_json: bool) -> Exit:
    """Let a call run exactly as it was shown, and carry its run on.

    The first decision counts, whoever clicks twice; where several people must approve, each has one vote. The beginning
    of an ID is enough.
    """
    from loopwright.state import Person
    from loopwright.state import approve as approved

    from .deciding import decide
    from .screen import Screen

    return decide(approval_id, approved(), Person(by, roles), Screen(as_json=as_json))


@click.command(cls=Command, examples=['loopwright reject 3fa9c1 --by ana --reason "the box was empty"'])
@click.argument("approval_id", metavar="ID")
@by
@role
@click.option("--reason", default="", help="Read by the model.")
@as_json
def reject(*, approval_id: str, by: str, roles: tuple[str, ...], reason: str, as_json: bool) -> Exit:
    """Forbid a call for good, and carry its run on.

    Asked whether an effect happened, it says: it did not, and it shall not run.
    """
    from loopwright.state import Person
    from loopwright.state import reject as rejected

    from .deciding import decide
    from .screen import Screen

    return decide(approval_id, rejected(reason), Person(by, roles), Screen(as_json=as_json))


@click.command(
    cls=Command,
    examples=[
        "loopwright edit 3fa9c1 --by ana amount=40000",
        'loopwright edit 3fa9c1 --by ana --args \'{"order_id": "A100", "amount": 40000}\'',
    ],
)
@click.argument("approval_id", metavar="ID")
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@by
@role
@click.option("--args", "whole", metavar="JSON", help="All arguments at once, instead of the proposed ones.")
@click.option("--tool", default="", metavar="NAME", help="Another tool instead.")
@as_json
def edit(
    *,
    approval_id: str,
    changes: tuple[str, ...],
    by: str,
    roles: tuple[str, ...],
    whole: str | None,
    tool: str,
    as_json: bool,
) -> Exit:
    """Let a call run with other arguments, and carry its run on.

    A VALUE is read as JSON where it is some, else as text. What comes of it is checked anew; where several people must
    approve it, it is asked about anew, and you are the first of them.
    """
    from loopwright.state import Person, PersonDecision

    from .arguments import parse_args, parse_changes
    from .deciding import decide
    from .screen import Screen

    if not (changes or whole or tool):
        raise click.UsageError(
            "nothing to change: give NAME=VALUE, --args or --tool; to let it run as it is, approve it"
        )
    try:
        args = None if whole is None else parse_args(whole)
        laid_over = parse_changes(changes) or None
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    decision = PersonDecision("edit", tool=tool, args=args, changes=laid_over)
    return decide(approval_id, decision, Person(by, roles), Screen(as_json=as_json))


@click.command(cls=Command, examples=['loopwright respond 3fa9c1 --by ana "already paid by the bank on 2026-10-11"'])
@click.argument("approval_id", metavar="ID")
@click.argument("text")
@by
@role
@as_json
def respond(*, approval_id: str, text: str, by: str, roles: tuple[str, ...], as_json: bool) -> Exit:
    """Answer in the tool's place; the tool does not run.

    Carries the run on. Asked whether an effect happened, it says: it did, and TEXT is its result.
    """
    from loopwright.state import Person
    from loopwright.state import respond as responded

    from .deciding import decide
    from .screen import Screen

    return decide(approval_id, responded(text), Person(by, roles), Screen(as_json=as_json))


@click.command(
    cls=Command,
    examples=[
        'loopwright resolve 8d21aa --by ana --happened "paid, receipt 4711"',
        "loopwright resolve 8d21aa --by ana --not-happened",
    ],
)
@click.argument("effect_id", metavar="EFFECT")
@by
@click.option(
    "--happened", "result", metavar="RESULT", help="It happened, and this is what the tool would have returned."
)
@click.option("--not-happened", is_flag=True, help="It did not happen: its call is checked and asked about anew.")
@as_json
def resolve(*, effect_id: str, by: str, result: str | None, not_happened: bool, as_json: bool) -> Exit:
    """Say whether an effect happened, where nobody knows.

    Carries the run on.
    """
    from loopwright import state

    from .deciding import resolve as resolved
    from .screen import Screen

    if (result is None) != not_happened:
        raise click.UsageError("say either --happened RESULT or --not-happened")
    outcome = state.not_happened() if result is None else state.happened(result)
    return resolved(effect_id, outcome, by, Screen(as_json=as_json))
