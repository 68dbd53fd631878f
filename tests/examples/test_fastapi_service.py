"""The example service, as a process of its own that answers real requests."""

from __future__ import annotations

import signal
from collections.abc import Generator
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from tests.world.servers import Server, wait_until

from loopwright import SyncRuns, open_checkpoints
from loopwright.graphs.shop import Order, Shop
from loopwright.graphs.support import agent

pytestmark = pytest.mark.timeout(120)

EXAMPLES = Path(__file__).parents[2] / "examples"
REFERENCE = "loopwright.graphs.support:agent"
TOTAL = 250_000
_codes = count(1)


class Service(Server):
    """The service over a shop and a database in one folder."""

    def __init__(self, folder: Path) -> None:
        self.shop = Shop(folder / "shop.db")
        self._client = httpx.Client()
        self.database = f"sqlite:///{folder / 'runs.db'}"
        settings = {"LOOPWRIGHT_CHECKPOINTS": self.database, "LOOPWRIGHT_SHOP": str(self.shop.path)}
        settings["RECOVER_SECONDS"] = "0.2"
        command = ["uvicorn", "--app-dir", str(EXAMPLES), "fastapi_service:app", "--port", "{port}"]
        super().__init__(folder, command, probe="/approvals", env=settings)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()
        self.stop()
        assert "Traceback" not in self.output

    def get(self, path: str) -> httpx.Response:
        """Ask."""
        return self._client.get(f"{self.url}{path}")

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """Send."""
        return self._client.post(f"{self.url}{path}", json=body, headers=headers)

    def new_order(self) -> str:
        """Put an order into the shop whose refund is due, and big enough to ask a person."""
        code = f"Z{next(_codes)}"
        self.shop.add_order(Order(code, "DELIVERED", TOTAL, date(2026, 9, 25), date(2026, 10, 1), ""))
        return code

    def paid(self, code: str) -> list[int]:
        """Return the refunds of an order."""
        return [refund.amount for refund in self.shop.refunds() if refund.order_id == code]

    def start_refund(self, code: str, **headers: str) -> str:
        """Ask for a refund; returns the run's id at once."""
        task = {"message": f"Refund my order {code}. Today is 2026-10-13.", "thread_id": f"about-{code}"}
        response = self.post("/runs", task, **headers)
        assert 202 == response.status_code
        return str(response.json()["id"])

    def rest(self, run_id: str, status: str) -> dict[str, Any]:
        """Wait until the run has that status; returns how it stands."""
        standing: dict[str, Any] = {}

        def is_there() -> bool:
            standing.update(self.get(f"/runs/{run_id}").json())
            return bool(standing["status"] == status)

        wait_until(is_there)
        return standing

    def approve(self, approval_id: str, by: str) -> dict[str, Any]:
        """Decide; returns the receipt."""
        response = self.post(f"/approvals/{approval_id}", {"decision": {"type": "approve"}, "by": by})
        assert 200 == response.status_code
        receipt: dict[str, Any] = response.json()
        return receipt


@pytest.fixture(name="service", scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Generator[Service]:
    """One service for the tests that need no other."""
    with Service(tmp_path_factory.mktemp("service")) as service:
        yield service


def test_a_run_starts_in_one_request_and_is_decided_in_another(service: Service) -> None:
    """The first returns at once, the second pays once; whoever is late is told who decided, and when."""
    code = service.new_order()
    run_id = service.start_refund(code)
    asked = service.rest(run_id, "waiting")["approvals"][0]
    assert ("issue_refund", code, TOTAL) == (asked["tool"], asked["args"]["order_id"], asked["args"]["amount"])
    assert asked["id"] in {approval["id"] for approval in service.get("/approvals").json()}
    assert [] == service.paid(code)
    first, second = service.approve(asked["id"], "ana"), service.approve(asked["id"], "bob")
    assert ((True, "ana"), (False, "ana")) == ((first["accepted"], first["by"]), (second["accepted"], second["by"]))
    assert first["at"] == second["at"]
    ended = service.rest(run_id, "succeeded")
    assert ("answered", [], "") == (ended["stop_reason"], ended["approvals"], ended["error"])
    assert str(TOTAL) in ended["answer"]
    assert [TOTAL] == service.paid(code)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=lambda ending: ending.name)
def test_the_service_can_end_between_the_two_requests(tmp_path: Path, ending: signal.Signals) -> None:
    """Stopped or killed while a person thinks, the next process takes the decision, and pays once."""
    with Service(tmp_path) as service:
        code = service.new_order()
        run_id = service.start_refund(code)
        asked = service.rest(run_id, "waiting")["approvals"][0]
        service.stop(ending)
        service.start()
        assert asked == service.rest(run_id, "waiting")["approvals"][0]
        service.approve(asked["id"], "ana")
        service.rest(run_id, "succeeded")
        assert [TOTAL] == service.paid(code)


def test_what_a_process_left_is_found_later(service: Service) -> None:
    """A lease outlives its process, and so the service's first look: it looks again."""
    with open_checkpoints(service.database) as checkpoints:
        left = SyncRuns(agent, checkpoints, reference=REFERENCE).start("Where is A1?", thread_id="left")
    service.rest(left.id, "succeeded")


def test_a_request_sent_twice_starts_one_run(service: Service) -> None:
    """With an Idempotency-Key of its own, a client may send its request again after a broken connection."""
    code = service.new_order()
    key = {"Idempotency-Key": f"request-about-{code}"}
    run_id = service.start_refund(code, **key)
    asked = service.rest(run_id, "waiting")["approvals"][0]
    assert run_id == service.start_refund(code, **key)
    service.approve(asked["id"], "ana")
    service.rest(run_id, "succeeded")
    assert run_id == service.start_refund(code, **key)
    assert [TOTAL] == service.paid(code)


def test_a_bad_request_is_refused_in_one_line(service: Service) -> None:
    """An unknown id is 404; what cannot be taken is 422, and the question stays open."""
    run_id = service.start_refund(service.new_order())
    path = f"/approvals/{service.rest(run_id, 'waiting')['approvals'][0]['id']}"
    ok = {"type": "approve"}
    refused = {
        404: [
            service.get("/runs/no-such-run"),
            service.post("/approvals/no-such-question", {"decision": ok, "by": "ana"}),
        ],
        422: [
            service.post("/runs", {"message": " ", "thread_id": "t"}),
            service.post("/runs", {"message": "Hello", "thread_id": ""}),
            service.post("/runs", {"message": "Another", "thread_id": "t"}, **{"Idempotency-Key": run_id}),
            service.post(path, {"decision": {"type": "perhaps"}, "by": "ana"}),
            service.post(path, {"decision": {"type": "edit", "args": {"amount": "a lot"}}, "by": "ana"}),
            service.post(path, {"decision": ok, "by": ""}),
        ],
    }
    assert {status: [status] * len(answers) for status, answers in refused.items()} == {
        status: [answer.status_code for answer in answers] for status, answers in refused.items()
    }
    messages = [answer.json()["error"] for answers in refused.values() for answer in answers]
    assert all(message and "\n" not in message for message in messages)
    assert "waiting" == service.get(f"/runs/{run_id}").json()["status"]
