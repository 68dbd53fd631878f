"""A shop's agent that looks up a thousand orders, and changes one only when its customer, or a person, says yes.

    loopwright run --agent examples.retail.agent:agent "I am Aarav Santos, zip 76134. Where is my order #W9672333?"

Run it from the repository's root. `RETAIL_BOOKS` names the shop's database, by default `.loopwright/retail.db`, which
is filled from the data set that `RETAIL_DATA` names, by default the small sample of the tests.
"""

from __future__ import annotations

import os
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from loopwright import Agent, Limits, create_agent
from loopwright.models import default_model

from .books import Books
from .permissions import retail_permissions
from .tools import Shop, retail_tools

SYSTEM_PROMPT = """\
You serve the customers of a shop: you tell them about their profile, their orders and the products, cancel or change
pending orders, and return or exchange delivered ones.

- First find out who the customer is, by e-mail, or by name and zip code, even when they tell you their user id. Serve
  this one customer only.
- Before you change anything, list what exactly will be changed, with the order id and every item id and payment method
  id, and ask for a yes. Call the tool only after it.
- Look an order up before you change it: only a pending order can be cancelled or changed, only a delivered one returned
  or exchanged. Items can be changed or exchanged once in an order, so collect them all first.
- One tool call at a time. Say only what the tools told you. Whatever the shop does not do, decline.
- Hand over to a person only what no tool can do.
"""

_SAMPLE = Path(__file__).parents[2] / "tests" / "data" / "retail" / "db.json"


def build_retail_agent(model: BaseChatModel | str | None = None, shop: Shop | None = None) -> Agent:
    """Build the agent.

    Args:
        model: Left out, the one that the environment names.
        shop: Opens the books; left out, those that `RETAIL_BOOKS` names.
    """
    books = shop or open_books
    return create_agent(
        default_model() if model is None else model,
        retail_tools(books),
        system_prompt=SYSTEM_PROMPT,
        limits=Limits(max_steps=30, max_tool_calls=40),
        permissions=retail_permissions(books),
        name="retail",
    )


def open_books() -> Books:
    """Open the books that the environment names; a file that is not there yet is filled first."""
    named = os.environ.get("RETAIL_BOOKS")
    path = Path(named) if named else Path(".loopwright") / "retail.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    return Books.load(path, os.environ.get("RETAIL_DATA", _SAMPLE))


agent = build_retail_agent()
