"""What counts of what a server says, as tables: names, hints, versions, settings and secrets."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from loopwright.errors import ConfigurationError
from loopwright.tools import ToolOptions
from loopwright.tools.mcp import Described, open_mcp
from loopwright.tools.mcp.hints import check_distinct, declared_options, hinted_effect, offered_name
from loopwright.tools.mcp.servers import Vault, check_server

PLAIN = Described("refund", "Pay back.", {"type": "object"})


@given(st.text(max_size=200))
def test_a_name_is_legal_for_every_provider(name: str) -> None:
    """Whatever the server calls its tool."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", offered_name("shop", name))


def test_long_names_stay_apart() -> None:
    """Two that begin alike are cut to two names; two that become one are refused."""
    first, second = (offered_name("shop", "a" * 100 + end) for end in "xy")
    assert first != second
    with pytest.raises(ConfigurationError, match=r"'a\.b' and 'a/b' would both be called 'shop__a_b'"):
        check_distinct([(offered_name("shop", one), one) for one in ("a.b", "a/b")])


@pytest.mark.parametrize(
    ("hints", "untrusted", "trusted"),
    [
        ({}, None, None),
        ({"read_only": True}, None, "read"),
        ({"idempotent": True}, None, "idempotent"),
        ({"destructive": True}, "write", "write"),
        ({"destructive": False}, None, None),
        ({"read_only": True, "destructive": True}, "write", "write"),
        ({"idempotent": True, "destructive": True}, "write", "write"),
        ({"read_only": False, "idempotent": False}, None, None),
    ],
)
def test_hints_tighten_and_loosen_only_where_trusted(
    hints: dict[str, bool], untrusted: str | None, trusted: str | None
) -> None:
    """None is undeclared, which counts as a write."""
    tool = replace(PLAIN, **hints)  # type: ignore[arg-type]  # mypy takes every field for each
    assert (untrusted, trusted) == (hinted_effect(tool, trust_hints=False), hinted_effect(tool, trust_hints=True))


def test_the_service_has_the_last_word_but_one() -> None:
    """Its own declaration counts, except that what destroys is no read."""
    own: ToolOptions = {"effect": "idempotent", "untrusted": False}
    destructive = replace(PLAIN, destructive=True)
    assert own == declared_options("shop__refund", destructive, own, trust_hints=False)
    assert {"untrusted": True} == declared_options("shop__refund", PLAIN, {}, trust_hints=False)
    with pytest.raises(ConfigurationError, match="says that it destroys"):
        declared_options("shop__refund", destructive, {"effect": "read"}, trust_hints=True)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "pay"},
        {"description": "Pay back, to account 666."},
        {"schema": {"type": "object", "properties": {"to": {}}}},
        {"read_only": True},
        {"destructive": False},
    ],
)
def test_a_version_is_all_that_was_relied_on(change: dict[str, Any]) -> None:
    """Whatever of it changes, it is another version; and the same wherever it is computed."""
    assert replace(PLAIN, **change).version != PLAIN.version
    assert Described("refund", "Pay back.", {"type": "object"}).version == PLAIN.version


@pytest.mark.parametrize(
    ("name", "server", "said"),
    [
        ("a b", {"command": "x"}, "needs a name"),
        ("a__b", {"command": "x"}, "needs a name"),
        ("shop", "http://127.0.0.1", "is a str"),
        ("shop", {}, "either a command or a url"),
        ("shop", {"command": "x", "url": "http://127.0.0.1"}, "either a command or a url"),
        ("shop", {"command": "x", "transport": "sse"}, "it can be stdio"),
        ("shop", {"command": "x", "headers": {}}, "headers means nothing for a command"),
        ("shop", {"command": "x", "args": "-m shop"}, "args is no list of texts"),
        ("shop", {"command": "x", "envv": {}}, "no setting envv"),
        ("shop", {"command": "x", "env": {"A": 1}}, r"env\['A'\] must be a text"),
        ("shop", {"url": "ftp://127.0.0.1"}, "must begin with http"),
        ("shop", {"url": "https://me:hunter22@127.0.0.1/"}, "holds a password"),
        ("shop", {"url": "http://[::1"}, "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named_and_no_value_is(name: str, server: Any, said: str) -> None:
    """Before anything is started."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        check_server(name, server)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"trust_hint": True},
        {"trust_hints": 1},
        {"tools": ["refund"]},
        {"leave_out": "shop__refund"},
        {"on_changed": "ignore"},
        {"connect_seconds": 0},
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any]) -> None:
    """As everywhere: a slip of the pen opens nothing."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        open_mcp({"shop": {"command": "no-such-command"}}, **options)


def test_secrets_are_read_for_each_connection_and_taken_out_of_texts() -> None:
    """The whole value and its words, at any depth; a plain variable if its name says so. What fails is not shown."""
    tokens = iter(("Bearer first-token", "Bearer second-token"))
    vault = Vault("shop", {"url": "http://127.0.0.1", "headers": {"a": lambda: next(tokens), "b": "plain-value"}})
    assert {"a": "Bearer first-token", "b": "plain-value"} == vault.headers()
    assert "Bearer second-token" == vault.headers()["a"]
    told = {"said": ["first-token, Bearer second-token, plain-value"]}
    assert {"said": ["(secret), (secret), (secret)"]} == vault.hide_in(told)
    plain = Vault("shop", {"command": "x", "env": {"SHOP_API_KEY": "hunter-22", "MODE": "production"}})
    plain.env()
    assert "(secret) in production" == plain.hide("hunter-22 in production")
    with pytest.raises(ConfigurationError, match=r"headers\['a'\] could not be read: StopIteration"):
        vault.headers()
    env = Vault("shop", {"command": "x", "env": {"KEY": SecretStr("hunter22")}})
    assert ({"KEY": "hunter22"}, "(secret)!") == (env.env(), env.hide("hunter22!"))
