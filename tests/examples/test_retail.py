"""The example shop: every task of the retail data set, as a scripted model's calls, through the whole ring."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.retail import agent
from examples.retail.agent import build_retail_agent
from examples.retail.changes import Refused, Swap, cancel, change_payment, exchange_items
from examples.retail.records import Address, Item, Method, Order, Payment, User, Variant
from examples.retail.tools import CHANGES
from tests.world.nursery import KILLED, Nursery
from tests.world.retail import FULL, SAMPLE, SETS, Branch, Task, tasks_of

from loopwright import RunResult, SyncRuns, open_checkpoints, reject
from loopwright.testing import ScriptedModel, call, check_transcript

pytestmark = pytest.mark.timeout(180)
WEEK = 7 * 86400.0
FOUND_NOTHING = {
    ("2", "get_product_details"): 1,
    ("3", "get_product_details"): 1,
    ("4", "get_product_details"): 1,
    ("35", "find_user_id_by_email"): 1,
    ("37", "find_user_id_by_email"): 1,
    ("46", "get_order_details"): 2,
    ("47", "get_order_details"): 2,
    ("54", "find_user_id_by_email"): 1,
    ("67", "find_user_id_by_name_zip"): 2,
    ("105", "exchange_delivered_order_items"): 1,
}
"""By task, the calls that do nothing by design: look-ups of what is not there, and a gift card that does not cover."""


@pytest.fixture(name="branch", params=SETS, ids=lambda data: data.parent.parent.name)
def open_branch(request: pytest.FixtureRequest, tmp_path: Path) -> Branch:
    """The sample; and the whole data set where it is there."""
    return Branch(tmp_path, request.param)


def test_who_the_pages_speak_of_is_in_the_sample(tmp_path: Path) -> None:
    """Pasted as they stand, the commands of the README and of the agent's module find their customer and order."""
    shop = Branch(tmp_path, SAMPLE).first
    pages = [(Path(agent.__file__).parent / "README.md").read_text(encoding="utf-8"), str(agent.__doc__)]
    for first, last, code in re.findall(r"I am (\w+) (\w+), zip (\d+)", "".join(pages)):
        found = shop.user_by_name(first, last, code)
        user = shop.user(found)
        assert user is not None
        assert {*re.findall(r"#W\d+", "".join(pages))} <= {*user.orders}


def outcomes(results: Iterator[tuple[Task, RunResult]]) -> Iterator[tuple[str, str, str]]:
    """Yield task, tool and outcome of each call, and check that the calls were the task's own, in order."""
    for task, result in results:
        assert [one["name"] for one in task.calls] == [entry["tool"] for entry in result.trail]
        yield from ((task.id, entry["tool"], entry["outcome"]) for entry in result.trail)


def test_every_task_through_the_ring(branch: Branch) -> None:
    """With an approving person every call is made, those that find nothing become observations, and the books agree."""
    tasks = tasks_of(branch.data)
    results = branch.serve(tasks, url="memory:")
    for task in tasks:
        result = results[task.id]
        hands_over = "transfer_to_human_agents" in {one["name"] for one in task.calls}
        assert result.stop_reason == ("escalated" if hands_over else "answered")
        assert branch.apply(task).contents() == branch.books(task).contents()
        check_transcript(result.messages)
    made = [*outcomes((task, results[task.id]) for task in tasks)]
    failed = Counter((task, tool) for task, tool, outcome in made if outcome != "done")
    known = {task.id for task in tasks}
    assert {place: times for place, times in FOUND_NOTHING.items() if place[0] in known} == failed
    if branch.data == FULL:
        assert (74, 365, 14) == (len(tasks), len(made), len({tool for _, tool, _ in made}))


def test_a_person_who_rejects_every_change(branch: Branch) -> None:
    """The books are untouched, and all that only reads is still done."""
    tasks = tasks_of(branch.data)
    results = branch.serve(tasks, url="memory:", decide=lambda: reject("not today"))
    assert {"rejected"} == {
        outcome for _, tool, outcome in outcomes((task, results[task.id]) for task in tasks) if tool in CHANGES
    }
    assert all(branch.first.contents() == branch.books(task).contents() for task in tasks)


def test_a_kill_after_every_third_effect(branch: Branch, nursery: Nursery) -> None:
    """Processes die again and again between a change and its record; the books end as without any kill."""
    ended, number = None, 0
    while ended is None:
        options = {"folder": str(branch.folder), "data": str(branch.data), "later": number * WEEK}
        child = nursery.start("tests.world.retail:serve_on", crash_at="after_effect:3", **options)
        ended, number = child.receive(), number + 1
        assert child.wait() == (KILLED if ended is None else 0)
    tasks = tasks_of(branch.data)
    assert len(tasks) == ended
    assert number > len([one for task in tasks for one in task.calls if one["name"] in CHANGES]) // 3 - 1
    assert all(branch.apply(task).contents() == branch.books(task).contents() for task in tasks)


LISTED = "I will cancel order #W9911714 because it was ordered by mistake. Is that right?"


@pytest.mark.parametrize(
    ("listed", "said", "status"),
    [
        (LISTED, "Yes, please.", "cancelled"),
        (LISTED, "Yes, but use the other reason.", "pending"),
        (LISTED, "No.", "pending"),
        (LISTED.replace("ordered by mistake", "no longer needed"), "Yes.", "pending"),
        (LISTED.replace("#W9911714", "your order"), "Yes.", "pending"),
    ],
)
def test_a_customer_who_confirms(tmp_path: Path, listed: str, said: str, status: str) -> None:
    """A yes to a message that listed all of it clears the change; with anything else a person is asked."""
    branch = Branch(tmp_path, SAMPLE)
    order = branch.first.order("#W9911714")
    assert order is not None
    customer = branch.first.user(order.user_id)
    assert customer is not None
    cancel = call("cancel_pending_order", order_id=order.order_id, reason="ordered by mistake")
    model = ScriptedModel([call("find_user_id_by_email", email=customer.email), listed, cancel, "Done."])
    agent = build_retail_agent(model, lambda: branch.first)
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        runs.run(f"Cancel my order, please. I am {customer.email}.", thread_id="t")
        result = runs.run(said, thread_id="t")
    after = branch.first.order(order.order_id)
    assert after is not None
    assert (status, 0 if status == "cancelled" else 1) == (after.status, len(result.approvals))


def test_what_went_back_already_does_not_go_back_again() -> None:
    """An order that is paid in another way, and then cancelled, pays its price back once, to who paid last."""
    nowhere = Address("", "", "", "", "", "")
    methods = {"gift": Method("gift", "gift_card", balance=0), "card": Method("card", "credit_card")}
    user = User("u", "f", "l", "e", nowhere, methods)
    order = Order("#W1", "u", "pending", nowhere, (), (Payment("payment", 10_000, "gift"),))
    moved = change_payment(order, user, "card")
    cancelled = cancel(moved.order, user, "no longer needed")
    assert ({"gift": 10_000}, {}) == (moved.balances, cancelled.balances)
    assert (Payment("refund", 10_000, "card"),) == cancelled.order.payments[len(moved.order.payments) :]


def test_nothing_is_exchanged_for_itself() -> None:
    """It could be done once only, and nothing would have come of it."""
    nowhere = Address("", "", "", "", "", "")
    item = Item("i", "p", "Lamp", {}, 10_000)
    order = Order("#W1", "u", "delivered", nowhere, (item,), (Payment("payment", 10_000, "card"),))
    user = User("u", "f", "l", "e", nowhere, {"card": Method("card", "credit_card")})
    same = {"i": Variant("i", "p", {}, available=True, price=10_000)}
    with pytest.raises(Refused, match="i would be changed into itself"):
        exchange_items(order, user, same, Swap(["i"], ["i"], "card"))


def test_another_customers_order_is_never_changed_or_told(tmp_path: Path) -> None:
    """Whoever confirms: a customer who was found can change, and see, their own orders only."""
    branch = Branch(tmp_path, SAMPLE)
    order = branch.first.order("#W9911714")
    assert order is not None
    other = branch.first.user_by_email("aarav.santos8320@example.com")
    email = "aarav.santos8320@example.com"
    assert other not in ("", order.user_id)
    cancel = call("cancel_pending_order", order_id=order.order_id, reason="ordered by mistake")
    look = [call("get_order_details", order_id=order.order_id), call("get_user_details", user_id=order.user_id)]
    own = call("get_user_details", user_id=other)
    model = ScriptedModel([call("find_user_id_by_email", email=email), cancel, [*look, own], "I cannot."])
    agent = build_retail_agent(model, lambda: branch.first)
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Yes.", thread_id="t")
    assert ["done", "denied", "denied", "denied", "done"] == [entry["outcome"] for entry in result.trail]
