"""The ready-made tool that reads pages, against a server that means no good."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world.hostile import Site, hostile_site

from loopwright import SyncRuns, create_agent, open_checkpoints
from loopwright.errors import ConfigurationError
from loopwright.testing import ScriptedModel, call
from loopwright.tools import (
    AddressRefused,
    FetchFailed,
    Page,
    Retry,
    annotate,
    build_read_url,
    check_address,
    fetching,
)
from loopwright.tools.pages import text_of

LOOPBACK = ["127.0.0.1"]
_look_up = socket.getaddrinfo  # the real one: later the tests' own guard stands before it


def numeric(host: str, port: int) -> Sequence[str]:
    """Read an address in any of its forms, as the system does; no name is looked up."""
    found = _look_up(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [str(one[-1][0]) for one in found]


@pytest.fixture(scope="module", name="site")
def serve() -> Generator[Site]:
    """One server for all tests here."""
    with hostile_site() as site:
        yield site


def read(url: str, start: int = 0, resolve: Callable[[str, int], Sequence[str]] | None = None) -> dict[str, Any]:
    """Read a page of this machine's."""
    told: dict[str, Any] = build_read_url(private=LOOPBACK, resolve=resolve).invoke({"url": url, "start": start})
    return told


def test_a_page_as_a_reader_sees_it(site: Site) -> None:
    """Title and text come through, without scripts, styles, comments and needless blanks."""
    url = f"{site.url}/page#part"
    expected = {"url": f"{site.url}/page", "title": "Opening hours", "text": "Hours\nMon to Fri, 9 to 17"}
    assert {**expected, "characters": 25} == read(url)
    assert {**expected, "url": f"{site.url}/packed", "characters": 25} == read(f"{site.url}/packed")
    assert "Hours\nMon to Fri, 9 to 17" == read(f"{site.url}/untyped")["text"]


def test_a_long_page_in_parts(site: Site) -> None:
    """Each part says where the next one begins; the last one does not."""
    first = read(f"{site.url}/long")
    last = read(f"{site.url}/long", start=10_000)
    assert (5000, 15_000, 5000) == (len(first["text"]), first["characters"], first["next"])
    assert (5000, None) == (len(last["text"]), last.get("next"))
    assert "" == read(f"{site.url}/long", start=99_999)["text"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("latin", "café"),
        ("meta", "café"),
        ("lying", "caf\ufffd"),
        ("unknown", "café"),
        ("hex", "zz"),
        ("puny", "a-9a9a"),
        ("marked", "café"),
        ("json", '{"a": 1}'),
    ],
)
def test_encodings(site: Site, path: str, text: str) -> None:
    """The server's word counts, then the page's; what fits neither is replaced, never an error."""
    assert text == read(f"{site.url}/{path}")["text"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("pdf", "is application/pdf, which is no text"),
        ("brotli", "sent as 'br'"),
        ("badly-packed", "not packed as it says"),
        ("nowhere", "status 404"),
        ("redirect", "more than 5 redirects"),
        ("redirect?to=file:///etc/passwd", "no address of a page"),
        ("redirect?to=ftp://127.0.0.1/", "no address of a page"),
        ("redirect?to=http://[::1", "leads to 'http://.::1', which is no URL"),
    ],
)
def test_what_cannot_be_read(site: Site, path: str, why: str) -> None:
    """The model reads what is wrong."""
    with pytest.raises(FetchFailed, match=why):
        read(f"{site.url}/{path}")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "127.0.0.1",
        "javascript:alert(1)",
        "http://",
        "http://[::1",
        "http://a:99999/",
        "http://user:word@127.0.0.1/",
        "http://" + "a" * 70 + ".example/",
        "http://\x00/",
    ],
)
def test_no_address_of_a_page(url: str) -> None:
    """What is no plain web address is refused before anything is looked up."""

    def never(host: str, port: int) -> Sequence[str]:
        raise AssertionError((host, port))

    with pytest.raises(FetchFailed):
        read(url, resolve=never)


@pytest.mark.parametrize("path", ["endless", "bomb"])
def test_bodies_without_end(site: Site, path: str) -> None:
    """A body that does not end, or that is small only while it is packed, is read to the cap, and the text says so."""
    told = read(f"{site.url}/{path}")
    assert "the page is longer than what is read of any page" == told["note"]
    assert fetching.MAX_BYTES == told["characters"]


@pytest.mark.parametrize(
    ("path", "tries"), [("nowhere", 1), ("pdf", 1), ("brotli", 1), ("redirect?to=ftp://x/", 1), ("busy", 3)]
)
def test_only_what_can_pass_is_fetched_again(site: Site, path: str, tries: int) -> None:
    """A page that is not there, or that is no text, is the same a moment later; a busy server need not be."""
    before = len(site.asked)
    reader = annotate(build_read_url(private=LOOPBACK), effect="read", retry=Retry(base=0))
    agent = create_agent(ScriptedModel([call("read_url", url=f"{site.url}/{path}"), "Done."]), [reader])
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Read it.", thread_id="t")
    assert ("error", tries) == (result.trail[0]["outcome"], len(site.asked) - before)


HOSTILE = ["<!--", "<a ", "<a b='", '<a b=">', "<![CDATA[", "<?", "<script></", "<svg>", "<b>", "&", "&#1", "<title>"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_page_takes_long_to_read(piece: str) -> None:
    """No thread can be ended that works on one: markup without ends is read in one go."""
    body = (piece * (fetching.MAX_BYTES // len(piece))).encode()
    title, text = text_of(Page("http://shop.example/", "text/html", body, is_cut=True))
    assert len(title) <= 300
    assert len(text) <= len(body)


def test_markup_as_it_is_written() -> None:
    """Attributes that hold brackets, a head without an end, numbers of no character, tags in any case."""
    body = b"<head><title>A &amp; B<b></TITLE><body><p title='a>b'>x<br>1 < 2<svg/>&#" + b"9" * 5000
    page = Page("http://shop.example/", "text/html", body + b";<SCRIPT>q</script >&eacute;", is_cut=False)
    assert ("A & B<b>", "x\n1 < 2\n\ufffd\n\xe9") == text_of(page)


def test_a_server_that_never_finishes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a page counts for all of it: also for headers that never end."""
    monkeypatch.setattr(fetching, "MAX_SECONDS", 0.2)
    with pytest.raises(FetchFailed, match=r"not there within 0\.2 s"):
        read(f"{site.url}/silent")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2",
        "2130706434",
        "0x7f.0.0.2",
        "0177.0.0.2",
        "127.2",
        "0.0.0.0",  # noqa: S104 -- asked for, not bound
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.2]",
        "[::ffff:7f00:2]",
        "[64:ff9b::7f00:2]",
        "[2002:7f00:2::]",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.0.8",
        "[3fff::1]",
        "[5f00::1]",
    ],
)
@pytest.mark.parametrize("way", ["at once", "by redirect"])
def test_no_private_address(site: Site, host: str, way: str) -> None:
    """Whatever form it has, and however one gets there, an address that is not public is not connected to."""
    target = f"http://{host}:{site.port}/page"
    url = target if way == "at once" else f"{site.url}/redirect?to={target}"
    before = len(site.asked)
    with pytest.raises(AddressRefused, match="not on the public internet"):
        read(url, resolve=numeric)
    assert [] == [path for path in site.asked[before:] if path == "/page"]


def test_a_name_that_changes_its_meaning(site: Site) -> None:
    """What was checked is connected to, without a second look-up in between; a redirect is looked up anew."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    def resolve(_host: str, _port: int) -> Sequence[str]:
        return answers.pop(0)

    url = f"http://shop.example:{site.port}"
    assert "Opening hours" == read(f"{url}/page", resolve=resolve)["title"]
    with pytest.raises(AddressRefused):
        read(f"{url}/page", resolve=resolve)
    answers += [["127.0.0.1"], ["127.0.0.2"]]
    with pytest.raises(AddressRefused):
        read(f"{url}/redirect?to=/page", resolve=resolve)


def test_a_name_with_one_private_address(site: Site) -> None:
    """One address that is not public tells what the name is for: none of them is connected to."""

    def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1", "10.0.0.1"]

    before = len(site.asked)
    with pytest.raises(AddressRefused):
        read(f"http://shop.example:{site.port}/page", resolve=resolve)
    assert before == len(site.asked)


def test_nobody_there() -> None:
    """A server that does not answer, and a name that nobody has, are told in a sentence."""

    def unknown(host: str, _port: int) -> Sequence[str]:
        return [] if host == "nobody.example" else ["127.0.0.1"]

    with pytest.raises(FetchFailed, match=r"there is no host nobody\.example"):
        read("http://nobody.example/", resolve=unknown)
    with pytest.raises(FetchFailed, match="cannot be read"):
        read("http://127.0.0.1:1/")


def test_a_proxy_of_the_environment_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look names up by itself, and reach what we refuse."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert "Opening hours" == read(f"{site.url}/page")["title"]


def test_networks_are_checked_when_the_tool_is_built() -> None:
    """A misspelt network fails then, and not at the first page."""
    with pytest.raises(ConfigurationError, match=r"'10\.0\.0\.1/8' is no network"):
        build_read_url(private=["10.0.0.1/8"])


@given(st.ip_addresses(v=4))
def test_every_form_of_a_private_address_is_refused(address: ipaddress.IPv4Address) -> None:
    """An IPv4 address that is refused is refused inside every IPv6 address that leads to it as well."""
    if address.is_global and not address.is_multicast and not address.is_reserved:
        return
    number = int(address)
    forms = [number, 0xFFFF << 32 | number, 0x64FF9B << 96 | number, (0x2002 << 32 | number) << 80]
    texts = [str(address), *(str(ipaddress.IPv6Address(form)) for form in forms[1:])]
    for text in texts:
        with pytest.raises(AddressRefused):
            check_address("host", text, ())
