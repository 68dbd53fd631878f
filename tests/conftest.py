"""What holds for every test: no user's settings, no network but this machine's own, and in CI no skipped test."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.world.nursery import Nursery
from tests.world.postgres import Database, Postgres

from loopwright import Checkpoints, open_checkpoints
from loopwright.testing import ManualClock

# Set where all that the chosen tests can ask for is installed. Read now: `pytest_configure` takes it away.
_CI = bool(os.environ.get("LOOPWRIGHT_CI"))

# Keys and addresses of models, our own settings, tracing that would send each run away, proxies that would swallow
# what is meant for a local server.
_PRIVATE = ("ANTHROPIC_", "OPENAI_", "LOOPWRIGHT_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_")
_PROXIES = {"all_proxy", "http_proxy", "https_proxy"}

# A deadline measures the machine, not the code. What else the profile in force says (CI has one) stays.
settings.register_profile("loopwright", parent=settings(), deadline=None)
settings.load_profile("loopwright")


# Whose files take ten seconds and more: they come first, so that neither process waits for the other at the end.
_LONG = {
    "cli/test_demo.py",
    "durability/test_crash_matrix.py",
    "durability/test_kill.py",
    "durability/test_stopped_worker.py",
    "examples/test_fastapi_service.py",
    "examples/test_retail.py",
    "replay/test_upgrading.py",
    "studio/test_studio.py",
}


class NetworkRefused(RuntimeError):
    """A test tried to leave this machine. Not an `OSError`, which a client would take for a fault worth a retry."""


def pytest_configure() -> None:
    """Clear the environment before any test module is imported, for this process and for those it starts."""
    # No test needs to know whom this machine trusts; each HTTP client would read the list of them, for 30 ms.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = os.devnull
    for name in list(os.environ):
        if name.startswith(_PRIVATE) or name.lower() in _PROXIES:
            del os.environ[name]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files; among these and among the others, the order stays random."""
    items.sort(key=lambda item: "/".join(item.path.parts[-2:]) not in _LONG)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test has failed."""
    report = yield
    if _CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a module that skips itself has failed as well."""
    report = yield
    if _CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Generator[None]:
    """Refuse connections and look-ups beyond this machine, so that no test depends on, or talks to, the outside."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _require_loopback(self.family, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _require_loopback(self.family, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: bytes | str | None, *args: Any, **options: Any) -> Any:
        _require_loopback(socket.AF_INET, (host,))
        return getaddrinfo(host, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield


@pytest.fixture(name="clock")
def make_clock() -> ManualClock:
    """Stands still until the test moves it."""
    return ManualClock()


@pytest.fixture(name="checkpoints", params=["memory", "sqlite"])
def open_both_kinds(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Generator[Checkpoints]:
    """A store in memory, and one in a file; both by the manual clock."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'runs.db'}"
    with open_checkpoints(url, clock=clock) as checkpoints:
        yield checkpoints


@pytest.fixture(scope="session", name="postgres_server")
def start_postgres() -> Generator[Postgres]:
    """A real server; started by the first test that asks for it."""
    with Postgres() as server:
        yield server


@pytest.fixture(name="postgres")
def lend_database(postgres_server: Postgres) -> Generator[Database]:
    """A database of the test's own, set up."""
    with postgres_server.database() as database:
        yield database


@pytest.fixture(scope="session", name="shared_nursery")
def start_nursery() -> Generator[Nursery]:
    """Imports everything once, for all tests."""
    with Nursery() as nursery:
        yield nursery


@pytest.fixture(name="nursery")
def lend_nursery(shared_nursery: Nursery) -> Generator[Nursery]:
    """Forks processes that a test may kill; none outlives its test."""
    yield shared_nursery
    shared_nursery.sweep()


def _require_loopback(family: int, address: Any) -> None:
    if family in {socket.AF_INET, socket.AF_INET6} and not _is_loopback(address[0]):
        raise NetworkRefused(f"tests may only talk to this machine, not to {address!r}: start a local server instead")


def _is_loopback(host: bytes | str | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(name or "").is_loopback
    except ValueError:
        return False
