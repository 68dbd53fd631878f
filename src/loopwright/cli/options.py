"""Options that several commands share."""

from __future__ import annotations

import click

DEFAULT_AGENT = "loopwright.graphs.support:agent"

as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document for a program.")
by = click.option("--by", "--as", "by", metavar="NAME", required=True, help="Who says so; kept in the log.")
role = click.option(
    "--role",
    "roles",
    metavar="ROLE",
    multiple=True,
    help="What they may decide about, where a rule asks for a role; can be given several times.",
)
agent = click.option(
    "--agent", metavar="MODULE:NAME", default=DEFAULT_AGENT, show_default=True, help="What create_agent returned."
)
