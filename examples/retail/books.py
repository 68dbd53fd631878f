"""The shop's books: one SQLite file, which any number of threads and processes may use at once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from .changes import Change, Refused
from .records import Address, Item, Method, Order, Payment, Product, User, Variant

_BUSY_SECONDS = 30.0
_CENTS = 100


class KeyReused(Exception):
    """A key stands for another change already; nothing was changed."""


class Books:
    """Reads what the shop knows, and changes it, each change in one transaction and once a key."""

    def __init__(self, path: str | Path) -> None:
        """Name the file; `Books.load` fills one."""
        self.path = Path(path)

    @classmethod
    def load(cls, path: str | Path, data: str | Path) -> Books:
        """Make the file from the data set's `db.json`, unless it is there already."""
        books = cls(path)
        if not books.path.exists():
            made = books.path.with_name(f"{books.path.name}.new")
            made.unlink(missing_ok=True)
            with closing(sqlite3.connect(made)) as db, db:
                db.executescript(Path(__file__).with_name("shop.sql").read_text(encoding="utf-8"))
                _fill(db, json.loads(Path(data).read_text(encoding="utf-8")))
            made.replace(books.path)
        return books

    def user_by_email(self, email: str) -> str:
        """Find a user's id by e-mail address, in any case of its letters; empty when there is none."""
        return self._one("select user_id from users where email = ?", email)

    def user_by_name(self, first_name: str, last_name: str, zip_code: str) -> str:
        """Find a user's id by name, in any case of its letters, and postal code; empty when there is none."""
        query = (
            "select user_id from users"
            " where first_name = ? and last_name = ? and json_extract(address, '$.zip') = ? order by user_id limit 1"
        )
        return self._one(query, first_name, last_name, zip_code)

    def _one(self, query: str, *values: str) -> str:
        with self._reading() as db:
            found = db.execute(query, values).fetchone()
        return str(found[0]) if found else ""

    def user(self, user_id: str) -> User | None:
        """Find a user."""
        with self._reading() as db:
            return _user(db, user_id)

    def order(self, order_id: str) -> Order | None:
        """Find an order."""
        with self._reading() as db:
            return _order(db, order_id)

    def product(self, product_id: str) -> Product | None:
        """Find a product with its variants."""
        with self._reading() as db:
            row = db.execute("select product_id, name from products where product_id = ?", [product_id]).fetchone()
            found = db.execute("select * from variants where product_id = ? order by item_id", [product_id])
            return Product(row[0], row[1], {one[0]: _variant(one) for one in found}) if row else None

    def item(self, item_id: str) -> Variant | None:
        """Find one variant."""
        with self._reading() as db:
            row = db.execute("select * from variants where item_id = ?", [item_id]).fetchone()
            return _variant(row) if row else None

    def product_ids(self) -> dict[str, str]:
        """List all products: their ids by name."""
        with self._reading() as db:
            return dict(db.execute("select name, product_id from products order by name").fetchall())

    def change_order(
        self, key: str, tool: str, args: Mapping[str, Any], rule: Callable[[Order, User, Mapping[str, Variant]], Change]
    ) -> dict[str, Any]:
        """Do to an order what a rule says, once a key; returns the key and the order's new state.

        Raises:
            Refused: If there is no such order, or the rule does not allow it.
            KeyReused: If the key stands for another change.
        """

        def work(db: sqlite3.Connection) -> dict[str, Any]:
            order = _order(db, str(args["order_id"]))
            if order is None:
                raise Refused(f"there is no order {args['order_id']}")
            user = _user(db, order.user_id)
            if user is None:
                raise Refused(f"order {order.order_id} is of nobody that the shop knows")
            change = rule(order, user, _variants_of(db, order))
            _write_order(db, change)
            return {"order_id": order.order_id, "status": change.order.status}

        return self._once(key, tool, args, work)

    def change_user_address(self, key: str, tool: str, args: Mapping[str, Any], address: Address) -> dict[str, Any]:
        """Note where a user lives now, once a key.

        Raises:
            Refused: If there is no such user.
            KeyReused: If the key stands for another change.
        """

        def work(db: sqlite3.Connection) -> dict[str, Any]:
            query = "update users set address = ? where user_id = ?"
            if not db.execute(query, [json.dumps(asdict(address)), args["user_id"]]).rowcount:
                raise Refused(f"there is no user {args['user_id']}")
            return {"user_id": args["user_id"], "address": asdict(address)}

        return self._once(key, tool, args, work)

    def hand_over(self, key: str, summary: str) -> None:
        """Note that a person takes over, once a key."""
        with self._writing() as db:
            db.execute("insert or ignore into handovers values (?, ?)", [key, summary])

    def change(self, key: str) -> dict[str, Any] | None:
        """Find what was changed under a key: `tool`, `args` and `result`."""
        with self._reading() as db:
            row = db.execute("select tool, args, result from changes where key = ?", [key]).fetchone()
        return {"tool": row[0], "args": json.loads(row[1]), "result": json.loads(row[2])} if row else None

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all that the shop holds and what was changed, save under which keys: to compare two shops."""
        tables = ("users", "payment_methods", "products", "variants", "orders", "order_items", "payments")
        with self._reading() as db:
            held = {table: db.execute(f"select * from {table} order by 1, 2").fetchall() for table in tables}  # noqa: S608 -- names of our own
            held["changes"] = db.execute("select tool, args, result from changes order by 1, 2").fetchall()
        return held

    def _once(
        self, key: str, tool: str, args: Mapping[str, Any], work: Callable[[sqlite3.Connection], dict[str, Any]]
    ) -> dict[str, Any]:
        said = json.dumps(dict(args), sort_keys=True)
        with self._writing() as db:
            known = db.execute("select tool, args, result from changes where key = ?", [key]).fetchone()
            if known and known[:2] != (tool, said):
                raise KeyReused(f"{key} stands for another change")
            if known:
                return dict(json.loads(known[2]))
            result = work(db)
            db.execute("insert into changes values (?, ?, ?, ?)", [key, tool, said, json.dumps(result)])
            return result

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
            yield db

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("begin immediate")
            yield db
            db.execute("commit")  # on an error the connection closes without it, and nothing was written


def _user(db: sqlite3.Connection, user_id: str) -> User | None:
    row = db.execute("select * from users where user_id = ?", [user_id]).fetchone()
    if row is None:
        return None
    query = "select method_id, source, brand, last_four, balance from payment_methods where user_id = ? order by 1"
    methods = {one[0]: Method(*one) for one in db.execute(query, [user_id])}
    orders = db.execute("select order_id from orders where user_id = ? order by rowid", [user_id]).fetchall()
    address = Address(**json.loads(row[4]))
    return User(row[0], row[1], row[2], row[3], address, methods, tuple(one[0] for one in orders))


def _order(db: sqlite3.Connection, order_id: str) -> Order | None:
    row = db.execute("select * from orders where order_id = ?", [order_id]).fetchone()
    if row is None:
        return None
    query = "select item_id, product_id, name, options, price from order_items where order_id = ? order by position"
    items = [Item(one[0], one[1], one[2], json.loads(one[3]), one[4]) for one in db.execute(query, [order_id])]
    query = "select kind, amount, method_id from payments where order_id = ? order by position"
    payments = [Payment(*one) for one in db.execute(query, [order_id])]
    address, fulfillments, notes = (json.loads(part) for part in row[3:])
    return Order(
        order_id=row[0],
        user_id=row[1],
        status=row[2],
        address=Address(**address),
        items=tuple(items),
        payments=tuple(payments),
        fulfillments=tuple(fulfillments),
        notes=notes,
    )


def _variant(row: tuple[Any, ...]) -> Variant:
    return Variant(row[0], row[1], json.loads(row[2]), bool(row[3]), row[4])


def _variants_of(db: sqlite3.Connection, order: Order) -> dict[str, Variant]:
    """Return the variants of the products that an order has."""
    products = [*{item.product_id for item in order.items}]
    query = f"select * from variants where product_id in ({', '.join('?' * len(products))})"  # noqa: S608 -- only marks
    return {row[0]: _variant(row) for row in db.execute(query, products)}


def _write_order(db: sqlite3.Connection, change: Change) -> None:
    order = change.order
    query = "update orders set status = ?, address = ?, notes = ? where order_id = ?"
    notes = json.dumps(dict(order.notes), sort_keys=True)
    db.execute(query, [order.status, json.dumps(asdict(order.address)), notes, order.order_id])
    for table in ("order_items", "payments"):
        db.execute(f"delete from {table} where order_id = ?", [order.order_id])  # noqa: S608 -- names of our own
    _insert_parts(db, order.order_id, order.items, order.payments)
    query = "update payment_methods set balance = balance + ? where method_id = ? and user_id = ?"
    db.executemany(query, [(amount, method_id, order.user_id) for method_id, amount in change.balances.items()])


def _insert_parts(db: sqlite3.Connection, order_id: str, items: Iterable[Item], payments: Iterable[Payment]) -> None:
    rows = [
        (order_id, number, item.item_id, item.product_id, item.name, json.dumps(dict(item.options)), item.price)
        for number, item in enumerate(items)
    ]
    db.executemany("insert into order_items values (?, ?, ?, ?, ?, ?, ?)", rows)
    paid = [(order_id, number, one.kind, one.amount, one.method_id) for number, one in enumerate(payments)]
    db.executemany("insert into payments values (?, ?, ?, ?, ?)", paid)


def _fill(db: sqlite3.Connection, data: Mapping[str, Mapping[str, Any]]) -> None:
    for product in data["products"].values():
        db.execute("insert into products values (?, ?)", [product["product_id"], product["name"]])
        for one in product["variants"].values():
            row = [one["item_id"], product["product_id"], json.dumps(one["options"]), one["available"]]
            db.execute("insert into variants values (?, ?, ?, ?, ?)", [*row, _cents(one["price"])])
    for user in data["users"].values():
        name = user["name"]
        row = [user["user_id"], name["first_name"], name["last_name"], user["email"], json.dumps(user["address"])]
        db.execute("insert into users values (?, ?, ?, ?, ?)", row)
        for method in user["payment_methods"].values():
            balance = _cents(method["balance"]) if "balance" in method else None
            row = [method["id"], user["user_id"], method["source"], method.get("brand"), method.get("last_four")]
            db.execute("insert into payment_methods values (?, ?, ?, ?, ?, ?)", [*row, balance])
    for order in data["orders"].values():
        row = [order["order_id"], order["user_id"], order["status"], json.dumps(order["address"])]
        db.execute("insert into orders values (?, ?, ?, ?, ?, '{}')", [*row, json.dumps(order["fulfillments"])])
        items = [
            Item(one["item_id"], one["product_id"], one["name"], one["options"], _cents(one["price"]))
            for one in order["items"]
        ]
        paid = [
            Payment(one["transaction_type"], _cents(one["amount"]), one["payment_method_id"])
            for one in order["payment_history"]
        ]
        _insert_parts(db, order["order_id"], items, paid)


def _cents(dollars: float) -> int:
    return round(Decimal(str(dollars)) * _CENTS)
