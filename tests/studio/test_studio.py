"""Order support on LangGraph Studio's own server, offline, driven as Studio drives it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import ConflictError
from tests.world.ring import EDGES
from tests.world.servers import Server, wait_until

from loopwright import Approval, open_checkpoints
from loopwright.graphs.shop import Order, Shop

pytestmark = pytest.mark.timeout(120)

EXPORT = {"dependencies": ["."], "graphs": {"support": "loopwright.graphs.support:agent"}}
AUTH = """
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def name(authorization: str) -> str:
    return authorization.removeprefix("Bearer ")
"""
TOTAL = 250_000
T = TypeVar("T")
_codes = count(1)


class Studio(Server):
    """The server with what the agent works on; it stores its threads when it is asked to end."""

    def __init__(self, folder: Path, export: Mapping[str, Any] = EXPORT) -> None:
        self.shop = Shop(folder / "shop.db")
        self.ledger_url = f"sqlite:///{folder / 'ledger.db'}"
        (folder / "langgraph.json").write_text(json.dumps(export), encoding="utf-8")
        settings = {
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGSMITH_TRACING": "false",
            "LOG_LEVEL": "warning",
            "LOOPWRIGHT_LEDGER": self.ledger_url,
            "LOOPWRIGHT_SHOP": str(self.shop.path),
        }
        command = "langgraph_cli dev --no-browser --no-reload --host 127.0.0.1 --port {port}"
        super().__init__(folder, command.split(), probe="/ok", env=settings)

    def new_order(self) -> str:
        """Put an order into the shop whose refund is due, and big enough to ask a person."""
        code = f"Z{next(_codes)}"
        self.shop.add_order(Order(code, "DELIVERED", TOTAL, date(2026, 9, 25), date(2026, 10, 1), ""))
        return code

    def paid(self, code: str) -> list[int]:
        """Return the refunds of an order."""
        return [refund.amount for refund in self.shop.refunds() if refund.order_id == code]

    def approval(self, approval_id: str) -> Approval:
        """Return what the ledger knows of a question."""
        with open_checkpoints(self.ledger_url) as checkpoints:
            return checkpoints.ledger.approvals.get(approval_id)


@contextmanager
def running(studio: Studio) -> Generator[Studio]:
    """Run the server for a block, in which nothing may go wrong inside it."""
    try:
        studio.start()
        yield studio
    finally:
        studio.stop()
    # Studio's server raises where a node blocks its event loop; whatever else went wrong is a traceback there too.
    assert "BlockingError" not in studio.output
    assert "Traceback" not in studio.output


@pytest.fixture(name="studio", scope="module")
def start_studio(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    """One server for all tests, each of which has its own thread and order."""
    with running(Studio(tmp_path_factory.mktemp("studio"))) as studio:
        yield studio


@pytest.fixture(name="client")
def connect(studio: Studio) -> Generator[SyncLangGraphClient]:
    """Studio's own way to talk to the server."""
    with get_sync_client(url=studio.url) as client:
        yield client


class Chat:
    """One thread: a new one, or one that is there."""

    def __init__(self, client: SyncLangGraphClient, thread_id: str = "") -> None:
        self._threads = client.threads
        self._runs: Any = client.runs  # its overloads name dictionaries of nothing in particular
        self.id = thread_id or client.threads.create()["thread_id"]

    def say(self, text: str) -> dict[str, Any]:
        """Send a message, and return the state in which the run rests."""
        return self._wait(input={"messages": [{"role": "user", "content": text}]})

    def follow(self, text: str, modes: Sequence[str]) -> list[Any]:
        """Send a message, and return all that was streamed."""
        given = {"messages": [{"role": "user", "content": text}]}
        return [*self._runs.stream(self.id, "support", input=given, stream_mode=modes)]

    def resume(self, value: Any, *, checkpoint: Any = None) -> dict[str, Any]:
        """Answer what is asked now, or was asked at a checkpoint."""
        return self._wait(command={"resume": value}, checkpoint=checkpoint)

    def _wait(self, **given: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", self._runs.wait(self.id, "support", **given))

    @property
    def state(self) -> dict[str, Any]:
        """The state as it is stored."""
        return cast("dict[str, Any]", self._threads.get_state(self.id)["values"])

    @property
    def question(self) -> dict[str, Any]:
        """What is asked now; fails if nothing is."""
        interrupts = [one for task in self._threads.get_state(self.id)["tasks"] for one in task["interrupts"]]
        assert len(interrupts) == 1
        return cast("dict[str, Any]", interrupts[0])

    @property
    def is_asking(self) -> bool:
        """Whether the thread waits for a person."""
        return self._threads.get(self.id)["status"] == "interrupted"

    @property
    def is_busy(self) -> bool:
        """Whether the server works on the thread."""
        return self._threads.get(self.id)["status"] == "busy"


def refund(client: SyncLangGraphClient, code: str) -> Chat:
    """Ask for a refund that needs a person."""
    chat = Chat(client)
    chat.say(f"Refund my order {code}. Today is 2026-10-13.")
    assert chat.is_asking
    return chat


def outcomes(state: Mapping[str, Any]) -> list[str]:
    """Return what became of the refunds that were proposed."""
    return [entry["outcome"] for entry in state["trail"] if entry["tool"] == "issue_refund"]


def test_the_graph_and_its_schemas_are_there(client: SyncLangGraphClient) -> None:
    """Studio sees an input of messages, the whole state, and each edge of the ring."""
    assistant = client.assistants.search(graph_id="support")[0]
    schemas = client.assistants.get_schemas(assistant["assistant_id"])
    assert list(cast("Any", schemas["input_schema"])["properties"]) == ["messages"]
    assert {"messages", "run", "usage", "turn", "trail"} <= set(cast("Any", schemas["state_schema"])["properties"])
    edges = client.assistants.get_graph("support")["edges"]
    assert {(edge["source"], edge["target"]) for edge in edges} == EDGES


def test_a_question_runs_to_its_answer(client: SyncLangGraphClient, studio: Studio) -> None:
    """Nothing is asked where nothing is changed; the whole story is in the state."""
    code = studio.new_order()
    state = Chat(client).say(f"Can I get a refund for my order {code}? Today is 2026-10-13.")
    assert ("succeeded", "answered") == (state["run"]["status"], state["run"]["reason"])
    assert all(fact in state["run"]["answer"] for fact in ["2026-10-01", "12 days ago", "within 30 days", "250000"])
    assert ["lookup_order", "refund_policy"] == [entry["tool"] for entry in state["trail"]]
    assert "__interrupt__" not in state


def test_studio_can_follow_a_run_as_it_streams(client: SyncLangGraphClient, studio: Studio) -> None:
    """The modes that Studio asks for bring each node's update, and end in the question."""
    text = f"Refund my order {studio.new_order()}. Today is 2026-10-13."
    parts = Chat(client).follow(text, ["values", "updates", "messages-tuple", "debug"])
    nodes = [next(iter(part.data)) for part in parts if part.event == "updates"]
    assert ["observe", "reason", "guard", "act", "observe", "reason"] == nodes[:6]
    assert "__interrupt__" == nodes[-1]
    assert "error" not in {part.event for part in parts}


def test_a_refund_asks_with_what_real_clients_read(client: SyncLangGraphClient, studio: Studio) -> None:
    """The payload has the keys of LangChain's middleware, of Agent Inbox, and of the form for one call."""
    code = studio.new_order()
    chat = refund(client, code)
    shown = chat.question["value"]
    args = {"order_id": code, "amount": TOTAL, "account": ""}
    assert {"type": "tool_approval", "name": "issue_refund", "args": args}.items() <= shown.items()
    assert [{"name": "issue_refund", "args": args, "arguments": args, "description": shown["description"]}] == shown[
        "action_requests"
    ]
    allowed = ["approve", "edit", "reject", "respond"]
    assert [{"action_name": "issue_refund", "allowed_decisions": allowed}] == shown["review_configs"]
    assert {"tool_call_id", "approval_id", "run_id", "allowed"} <= shown.keys()
    assert "error" not in shown
    assert chat.id in {thread["thread_id"] for thread in client.threads.search(status="interrupted", limit=100)}
    assert [] == studio.paid(code)


APPROVE = {"type": "approve"}
EDITED = {"order_id": "CODE", "amount": 40_000}
EDIT = {"type": "edit", "edited_action": {"name": "issue_refund", "args": EDITED}}
REJECT = {"type": "reject", "message": "not this one"}
RESPOND = {"type": "respond", "message": "paid by hand"}

Standing = tuple[str, list[str], list[int], str]
"""The run's status, what became of the proposed refunds, what was paid, and who decided."""

ACCEPTED: dict[str, tuple[Any, Standing]] = {
    "decisions: approve": ({"decisions": [APPROVE]}, ("succeeded", ["done"], [TOTAL], "anonymous")),
    "bare approve": (APPROVE, ("succeeded", ["done"], [TOTAL], "anonymous")),
    "listed approve": ([APPROVE], ("succeeded", ["done"], [TOTAL], "anonymous")),
    "inbox accept": ([{"type": "accept", "args": None}], ("succeeded", ["done"], [TOTAL], "anonymous")),
    "decisions: edit": ({"decisions": [EDIT]}, ("succeeded", ["done"], [40_000], "anonymous")),
    "bare edit": ({"type": "edit", "args": EDITED}, ("succeeded", ["done"], [40_000], "anonymous")),
    "edited as text": (
        [{"type": "edit", "args": {**EDITED, "amount": "99"}}],
        ("succeeded", ["done"], [99], "anonymous"),
    ),
    "inbox edit": (
        [{"type": "edit", "args": {"action": "issue_refund", "args": EDITED}}],
        ("succeeded", ["done"], [40_000], "anonymous"),
    ),
    "decisions: reject": ({"decisions": [REJECT]}, ("succeeded", ["rejected"], [], "anonymous")),
    "bare reject": ({"type": "reject"}, ("succeeded", ["rejected"], [], "anonymous")),
    "inbox ignore": ([{"type": "ignore", "args": None}], ("succeeded", ["rejected"], [], "anonymous")),
    "decisions: respond": ({"decisions": [RESPOND]}, ("succeeded", ["answered"], [], "anonymous")),
    "inbox response": ([{"type": "response", "args": "by hand"}], ("succeeded", ["answered"], [], "anonymous")),
}


def test_each_accepted_answer_means_the_same_from_every_client(client: SyncLangGraphClient, studio: Studio) -> None:
    """The run ends, with exactly what was decided; the ledger says by whom, or that nobody was authenticated."""

    def stand(answer: Any) -> Standing:
        code = studio.new_order()
        chat = refund(client, code)
        approval_id = chat.question["value"]["approval_id"]
        state = chat.resume(_with_code(answer, code))
        return state["run"]["status"], outcomes(state), studio.paid(code), studio.approval(approval_id).decided_by

    expected = {name: standing for name, (_, standing) in ACCEPTED.items()}
    assert expected == at_once(stand, {name: answer for name, (answer, _) in ACCEPTED.items()})


WRONG: dict[str, Any] = {
    "text": "yes",
    "true": True,
    "number": 1,
    "nothing decided": {"decisions": []},
    "empty": [],
    "two at once": [APPROVE, APPROVE],
    "unknown type": {"type": "approved"},
    "type in a list": {"type": ["approve"]},
    "no type": {"approve": True},
    "no response": {"type": "respond"},
    "edit to text": {"type": "edit", "args": "40000"},
    "edit that does not fit": {"type": "edit", "args": {"order_id": "CODE", "amount": "a lot"}},
    "edit above the cap": {"type": "edit", "args": {"order_id": "CODE", "amount": 600_000}},
    "edit with a stray name": {"type": "edit", "args": {**EDITED, "sum": 1}},
    "edit to no tool": [{"type": "edit", "args": {"action": "pay_out", "args": EDITED}}],
}


def test_a_wrong_answer_is_asked_again(client: SyncLangGraphClient, studio: Studio) -> None:
    """It is never a yes and never an exception: the question stays, says what was wrong, and takes the next answer."""

    def stand(answer: Any) -> tuple[bool, bool, list[int], list[int]]:
        code = studio.new_order()
        chat = refund(client, code)
        before = chat.question["value"]
        chat.resume(_with_code(answer, code))
        after = chat.question["value"]
        has_error = bool(after.pop("error", ""))
        paid_before = studio.paid(code)
        chat.resume(APPROVE)
        return has_error, before == after, paid_before, studio.paid(code)

    nothing: list[int] = []
    assert dict.fromkeys(WRONG, (True, True, nothing, [TOTAL])) == at_once(stand, WRONG)


def at_once(work: Callable[[Any], T], cases: Mapping[str, Any]) -> dict[str, T]:
    """Do the same for each case, on threads of their own: the server looks for work only twice a second."""
    with ThreadPoolExecutor(8) as people:
        done = {name: people.submit(work, case) for name, case in cases.items()}
        return {name: result.result() for name, result in done.items()}


def _with_code(answer: Any, code: str) -> Any:
    """Put the test's own order into an answer."""
    if isinstance(answer, dict):
        return {name: _with_code(value, code) for name, value in cast("dict[str, Any]", answer).items()}
    if isinstance(answer, list):
        return [_with_code(value, code) for value in answer]  # pyright: ignore[reportUnknownVariableType]  # any JSON
    return code if answer == "CODE" else answer


def test_four_clicks_at_the_same_moment_pay_once(client: SyncLangGraphClient, studio: Studio) -> None:
    """Whoever clicks, and however often: one effect."""
    code = studio.new_order()
    chat = refund(client, code)
    click_together(studio, chat, APPROVE)
    state = chat.state
    assert ("succeeded", ["done"]) == (state["run"]["status"], outcomes(state))
    assert [TOTAL] == studio.paid(code)


def test_clicks_that_name_their_question_never_answer_the_next_one(client: SyncLangGraphClient, studio: Studio) -> None:
    """Two refunds in one turn, one question after the other: a double click on the first leaves the second open."""
    first, second = studio.new_order(), studio.new_order()
    chat = refund(client, f"{first} and {second}")
    asked = chat.question
    assert first == asked["value"]["args"]["order_id"]
    click_together(studio, chat, {asked["id"]: APPROVE})
    assert second == chat.question["value"]["args"]["order_id"]
    assert ([], []) == (studio.paid(first), studio.paid(second))
    state = chat.resume({chat.question["id"]: REJECT})
    assert ["done", "rejected"] == outcomes(state)
    assert ([TOTAL], []) == (studio.paid(first), studio.paid(second))


def click_together(studio: Studio, chat: Chat, answer: Any) -> None:
    """Answer four times at the same moment, and wait until the thread is at rest."""
    together = threading.Barrier(4)

    def click() -> None:
        with get_sync_client(url=studio.url) as client:
            together.wait()
            with suppress(ConflictError):  # the server may refuse a run while another one is on
                Chat(client, chat.id).resume(answer)

    with ThreadPoolExecutor(4) as people:
        for clicked in [people.submit(click) for _ in range(4)]:
            clicked.result()
    wait_until(lambda: not chat.is_busy)


@pytest.mark.parametrize(
    ("decided", "answered", "outcome", "paid"),
    [(REJECT, REJECT, "rejected", []), (APPROVE, APPROVE, "done", [TOTAL]), (APPROVE, REJECT, "rejected", [TOTAL])],
    ids=["rejected", "approved", "approved, then rejected"],
)
def test_going_back_to_the_question_asks_anew(
    client: SyncLangGraphClient, studio: Studio, *, decided: Any, answered: Any, outcome: str, paid: list[int]
) -> None:
    """Studio can resume from an earlier checkpoint: what was decided counts there, and the effect is done once."""
    code = studio.new_order()
    chat = refund(client, code)
    asked = client.threads.get_state(chat.id)["checkpoint"]
    chat.resume(decided)
    before = studio.paid(code)
    again = chat.resume(APPROVE, checkpoint=asked)
    assert ([], before) == (outcomes(again), studio.paid(code))
    assert "decided on another branch" in chat.question["value"]["error"]
    assert ([outcome], paid) == (outcomes(chat.resume({chat.question["id"]: answered})), studio.paid(code))


def test_a_new_message_takes_the_place_of_what_was_asked(client: SyncLangGraphClient, studio: Studio) -> None:
    """The call is answered "superseded"; it never runs, and the new task is worked on."""
    code = studio.new_order()
    chat = refund(client, code)
    approval_id = chat.question["value"]["approval_id"]
    state = chat.say(f"Where is my order {code}?")
    assert ("succeeded", ["not_run"]) == (state["run"]["status"], outcomes(state))
    assert ("cancel", []) == ((studio.approval(approval_id).decision or {})["type"], studio.paid(code))


def test_a_question_outlives_the_server(client: SyncLangGraphClient, studio: Studio) -> None:
    """Stopped while a person thinks, started again, it still asks the same; the answer is carried out once."""
    code = studio.new_order()
    chat = refund(client, code)
    before = chat.question
    studio.stop()
    studio.start()
    assert before == chat.question
    state = chat.resume({before["id"]: APPROVE})
    assert (["done"], [TOTAL]) == (outcomes(state), studio.paid(code))


def test_whoever_the_server_has_authenticated_is_who_decided(tmp_path: Path) -> None:
    """With authentication the decision is taken in the name of the user, not in one that the answer brings."""
    (tmp_path / "auth.py").write_text(AUTH, encoding="utf-8")
    with (
        running(Studio(tmp_path, {**EXPORT, "auth": {"path": "./auth.py:auth"}})) as studio,
        get_sync_client(url=studio.url, headers={"authorization": "Bearer ana"}) as ana,
    ):
        chat = refund(ana, studio.new_order())
        approval_id = chat.question["value"]["approval_id"]
        state = chat.resume({**APPROVE, "by": "bob"})
    assert ["ana"] == [entry["by"] for entry in state["trail"] if entry["tool"] == "issue_refund"]
    assert "ana" == studio.approval(approval_id).decided_by
