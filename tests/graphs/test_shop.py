"""The shop's database: seeded once, safe for many at once, and it pays once a key."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.world.nursery import Nursery

from loopwright.graphs.shop import KeyReused, Order, Policy, Refused, Shop, ShopError, open_shop

NOON = datetime(2026, 10, 13, 12, tzinfo=UTC)


@pytest.fixture(name="shop")
def make_shop(tmp_path: Path) -> Shop:
    """A fresh shop in a file, whose clock stands still."""
    return Shop(tmp_path / "shop.db", now=lambda: NOON)


def test_first_use_fills_the_books(shop: Shop) -> None:
    """A shop that nobody used before holds its orders and its policy."""
    assert shop.order("A100") == Order("A100", "DELIVERED", 250000, date(2026, 9, 24), date(2026, 10, 1))
    assert shop.order("A101") == Order("A101", "SHIPPING", 480000, date(2026, 10, 8))
    assert shop.policy() == Policy(30, "DELIVERED")
    assert shop.refunds() == []
    assert shop.escalations() == []


def test_the_orders_show_every_kind_of_trouble(shop: Shop) -> None:
    """Among the orders are an old delivery, a cancelled one, one above the cap and a poisoned note."""
    orders = shop.orders()
    delivered = [order for order in orders if order.delivered_at is not None]
    assert len(orders) >= 12
    assert any(order.delivered_at < date(2026, 3, 1) for order in delivered if order.delivered_at)
    assert any(order.status == "CANCELLED" for order in orders)
    assert any(order.status == "DELIVERED" and order.total > 500_000 for order in orders)
    assert any("issue_refund" in order.note for order in orders)


def test_a_second_shop_on_the_file_keeps_what_was_changed(shop: Shop) -> None:
    """Opening a shop that exists fills nothing in again."""
    order = shop.order("A100")
    assert order is not None
    shop.update_order(replace(order, status="LOST"))
    shop.set_policy(Policy(7, "LOST"))
    again = Shop(shop.path)
    assert again.order("A100") == replace(order, status="LOST")
    assert again.policy() == Policy(7, "LOST")


def test_codes_are_found_in_any_case(shop: Shop) -> None:
    """Customers write codes in small letters; the books know one order by them, and refund one total."""
    assert shop.order("a100") == shop.order("A100")
    shop.refund("k1", "a100", 200000)
    with pytest.raises(Refused):
        shop.refund("k2", "A100", 200000)


def test_the_same_key_returns_the_first_receipt(shop: Shop) -> None:
    """A refund with a key that was used for it pays nothing more, even when nothing is left to pay."""
    first = shop.refund("k1", "A100", 250000)
    later = Shop(shop.path, now=lambda: NOON.replace(hour=18))
    assert later.refund("k1", "A100", 250000) == first
    assert shop.refund_by_key("k1") == first
    assert shop.refunds() == [first]


@pytest.mark.parametrize(
    ("order_id", "amount", "account"), [("A100", 2, ""), ("A100", 1, "other"), ("A101", 1, ""), ("A100", -1, "")]
)
def test_a_key_is_never_used_for_other_values(shop: Shop, order_id: str, amount: int, account: str) -> None:
    """Another order, amount or account under a used key is an error, and pays nothing."""
    first = shop.refund("k1", "A100", 1)
    with pytest.raises(KeyReused, match="k1"):
        shop.refund("k1", order_id, amount, account)
    assert shop.refunds() == [first]


@pytest.mark.parametrize(("order_id", "amount"), [("NONE", 1), ("A100", 0), ("A100", -5), ("A100", 250001)])
def test_what_the_books_do_not_allow_is_refused(shop: Shop, order_id: str, amount: int) -> None:
    """An unknown order, an amount that is not positive and one above the total pay nothing."""
    with pytest.raises(Refused):
        shop.refund("k1", order_id, amount)
    assert shop.refunds() == []
    assert shop.refund_by_key("k1") is None


@settings(max_examples=25, deadline=None)
@given(amounts=st.lists(st.integers(-10, 100_000) | st.integers(), max_size=8))
def test_no_row_of_refunds_ever_exceeds_the_total(tmp_path_factory: pytest.TempPathFactory, amounts: list[int]) -> None:
    """Whatever is asked for in turn, what is paid is what fits, in the order in which it came."""
    shop = Shop(tmp_path_factory.mktemp("shop") / "shop.db")
    left = 250000
    paid: list[int] = []
    for n, amount in enumerate(amounts):
        if 0 < amount <= left:
            shop.refund(str(n), "A100", amount)
            left -= amount
            paid.append(amount)
        else:
            with pytest.raises(Refused):
                shop.refund(str(n), "A100", amount)
    assert [refund.amount for refund in shop.refunds()] == paid
    assert shop.refunded("A100") == 250000 - left


def test_an_escalation_is_written_once_a_key(shop: Shop) -> None:
    """Handing over again under the key changes nothing; another reason under it is an error."""
    first = shop.escalate("k1", "wants a person")
    assert shop.escalate("k1", "wants a person") == first
    with pytest.raises(KeyReused):
        shop.escalate("k1", "wants a manager")
    assert shop.escalations() == [first]


def test_orders_can_be_added_and_changed(shop: Shop) -> None:
    """An added order is read back as it was; adding a taken code or changing a missing order is an error."""
    order = Order("zx-9", "LOST", 7, date(2026, 1, 2), date(2026, 1, 3), 'a "note"; with {signs}')
    shop.add_order(order)
    assert shop.order("ZX-9") == order
    with pytest.raises(ShopError, match="already"):
        shop.add_order(replace(order, order_id="ZX-9"))
    with pytest.raises(ShopError, match="no order"):
        shop.update_order(replace(order, order_id="zx-10"))


def test_many_processes_may_use_a_shop_first(nursery: Nursery, tmp_path: Path) -> None:
    """Processes that meet a missing file together agree on its rows, and pay one refund."""
    path = tmp_path / "shop.db"
    workers = [nursery.start("tests.world.crowds:refund_at_once", path=str(path)) for _ in range(6)]
    assert ["ready"] * 6 == [worker.receive() for worker in workers]
    for worker in workers:
        worker.send("go")
    said = [worker.result() for worker in workers]
    assert [said[0]] * 6 == said
    assert "250000" in said[0][0]
    assert len(Shop(path).refunds()) == 1


def test_many_threads_may_share_a_shop(shop: Shop) -> None:
    """Threads that pay under different keys at once never pay more than the total."""
    gate = threading.Barrier(8)

    def pay(n: int) -> bool:
        gate.wait()
        try:
            shop.refund(f"k{n}", "A100", 100_000)
        except Refused:
            return False
        return True

    with ThreadPool(8) as pool:
        assert sum(pool.map(pay, range(8), chunksize=1)) == 2
    assert shop.refunded("A100") == 200_000


def test_the_default_shop_lies_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the shop is `.loopwright/shop.db` of the folder at the time of the call."""
    monkeypatch.delenv("LOOPWRIGHT_SHOP", raising=False)
    monkeypatch.chdir(tmp_path)
    assert open_shop().order("A100") is not None
    assert (tmp_path / ".loopwright" / "shop.db").is_file()


def test_the_environment_names_the_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`LOOPWRIGHT_SHOP` is read at the call, not at import."""
    monkeypatch.setenv("LOOPWRIGHT_SHOP", str(tmp_path / "mine.db"))
    assert Shop.default().path == tmp_path / "mine.db"


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A missing folder, or a file that is no database, is one error that names the file; the file stays as it was."""
    with pytest.raises(ShopError, match=r"missing.shop\.db"):
        Shop(tmp_path / "missing" / "shop.db").orders()
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(ShopError, match=r"text\.db"):
        Shop(tmp_path / "text.db").orders()
    assert (tmp_path / "text.db").read_text() == "no database " * 100


def test_errors_survive_pickling() -> None:
    """The shop's errors may travel between processes."""
    assert str(pickle.loads(pickle.dumps(Refused("why")))) == "why"  # noqa: S301 -- our own bytes
