"""References name an agent, with what is changed of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from loopwright.cli.loading import Reference, is_loadable, load_agent, open_store, parse_reference, place
from loopwright.errors import ConfigurationError
from loopwright.graphs.support import agent as support
from loopwright.models import Price

SUPPORT = "loopwright.graphs.support:agent"


@pytest.mark.parametrize(
    "reference",
    [
        Reference(SUPPORT, {}),
        Reference("shop:agents.support", {"max_steps": "4"}),
        Reference(SUPPORT, {"model": "openai:some/model & more?", "max_cost": "0.05"}),
    ],
)
def test_a_reference_survives_its_text(reference: Reference) -> None:
    """The text in a run's row says all: another process reads the same reference from it."""
    assert reference == parse_reference(str(reference))
    assert is_loadable(str(reference))


@pytest.mark.parametrize("text", ["", "support", "(invoke)", "a.b:", ":agent", "a b:c", "a..b:c", "../shop:agent"])
def test_what_names_no_agent_is_refused(text: str) -> None:
    """The form is package.module:name."""
    with pytest.raises(ConfigurationError, match=r"names no agent; the form is package\.module:name"):
        parse_reference(text)


def test_changes_are_laid_over_the_agents_own() -> None:
    """Another model and other limits; tools, rules and the limits that are not named stay."""
    changes = {"model": "demo", "max_steps": "2", "max_tokens": "900", "max_seconds": "7.5"}
    changed = load_agent(Reference(SUPPORT, changes)).spec
    assert (2, 900, 7.5, support.spec.limits.max_tool_calls) == (
        changed.limits.max_steps,
        changed.limits.max_tokens,
        changed.limits.max_seconds,
        changed.limits.max_tool_calls,
    )
    assert (support.spec.rules, [*support.spec.tools]) == (changed.rules, [*changed.tools])
    assert support.spec.model is not changed.model


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_steps": "many"}, "max_steps is 'many'; give a number"),
        ({"max_speed": "1"}, "an agent has no option 'max_speed' that could be changed"),
        ({"max_cost": "1"}, "the price of 'demo' is not known"),
        ({"model": "demo", "max_cost": "1"}, "the price of 'demo' is not known"),
        ({"max_cost": "NaN"}, "max_cost is"),
        ({"price": "1"}, "price is '1'; give US dollars for a million input and output tokens"),
        ({"price": "-1,2"}, "Price: input is"),
        ({"model": "telepathy"}, "no model is known by the name 'telepathy'"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(changes: dict[str, str], message: str) -> None:
    """The error names what was wrong, before any step runs."""
    with pytest.raises(ConfigurationError, match=message):
        load_agent(Reference(SUPPORT, changes))


def test_a_price_makes_a_limit_on_money_possible() -> None:
    """For a model whose price nobody lists: whoever resumes the run counts by the same price."""
    reference = parse_reference(str(Reference(SUPPORT, {"price": "0.25,2", "max_cost": "1"})))
    spec = load_agent(reference).spec
    assert (Price(Decimal("0.25"), Decimal(2)), Decimal(1)) == (spec.price, spec.limits.max_cost)


def test_a_limit_on_money_is_exact() -> None:
    """The text of a price never becomes a float."""
    priced = {"model": "openai:gpt-5-mini", "max_cost": "0.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        assert Decimal("0.1") == load_agent(Reference(SUPPORT, priced)).spec.limits.max_cost


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", ".loopwright/runs.db"),
        ("postgresql://app:secret@db:5432/shop?password=secret", "postgresql://db:5432/shop"),
        ("postgres://app:s@cret@db/shop", "postgres://db/shop"),
        ("sqlite:///there.db", "sqlite:///there.db"),
        ("sqlite:///misspelt.db", "sqlite:///misspelt.db (there is no such file)"),
    ],
)
def test_where_runs_are_kept_is_told_without_a_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, told: str
) -> None:
    """A path that was misspelt is told, too, and looking into it makes no file of it."""
    monkeypatch.chdir(tmp_path)
    Path("there.db").touch()
    monkeypatch.setenv("LOOPWRIGHT_CHECKPOINTS", url)
    assert told == place()
    if "misspelt" in url:
        open_store().close()
        assert told == place()


def test_the_keys_of_an_encrypted_database_stand_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With them the commands read it; without, or with what is no key, they say so, and show nothing of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_ENCRYPTION", f"{(b'k' * 32).hex()}, {(b'o' * 32).hex()}")
    with open_store(create=True) as store:
        store.ledger.runs.begin("r", thread_id="t", agent="", task="the-secret")
    assert b"the-secret" not in Path(".loopwright/runs.db").read_bytes()
    with open_store() as store:
        assert ["the-secret"] == [row.task for row in store.ledger.runs.list()]
    for text, told in (("", "is encrypted; give its key"), ("zz", "64 hexadecimal digits"), ("6b", "32 bytes")):
        monkeypatch.setenv("LOOPWRIGHT_ENCRYPTION", text)
        with pytest.raises(ConfigurationError, match=told):
            open_store()
