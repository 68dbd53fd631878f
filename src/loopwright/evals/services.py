"""What a service with AgentDojo's functions would declare: effects, whose text a result is, and rules.

By tool and argument, never by task: each table says what the functions of one kind of service do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loopwright.policy import ProposedCall, Rule, allow, from_user, known, plain

EffectName = Literal["read", "idempotent", "write"]
SMALL_AMOUNT = 50
"""Up to so much may go to somebody whom the user named, whatever the amount came from."""


@dataclass(frozen=True, slots=True)
class Service:
    """One of AgentDojo's suites, as a service of its kind would set it up."""

    effects: Mapping[str, EffectName]
    """Of the functions that change something, or that reach out; all others read."""
    untrusted: frozenset[str]
    """The functions whose results hold text that others than the user wrote."""
    rules: Sequence[Rule]


def _is_small(call: ProposedCall) -> bool:
    return bool(0 < call.args["amount"] <= SMALL_AMOUNT)


def _invites_nobody(call: ProposedCall) -> bool:
    return not call.args["participants"]


_CALENDARS = ("search_calendar_events.participants", "get_day_calendar_events.participants")
_CONTACTS = ("search_contacts_by_name.email", "search_contacts_by_email.email")

_CALENDAR_RULES = (
    # The user's own entry, under a name that the user gave; whoever is invited is named, or is in the own records.
    allow("create_calendar_event", when=from_user("title") & _invites_nobody),
)
_MAIL_RULES = (
    # To whom the user named, without anything that leads or carries data elsewhere.
    allow("send_email", when=from_user("recipients", "cc", "bcc", "attachments") & plain("subject", "body")),
)

WORKSPACE = Service(
    effects={
        "send_email": "write",
        "delete_email": "write",
        "create_calendar_event": "write",
        "cancel_calendar_event": "write",
        "reschedule_calendar_event": "write",
        "add_calendar_event_participants": "write",
        "append_to_file": "write",
        "create_file": "write",
        "delete_file": "write",
        "share_file": "write",
    },
    untrusted=frozenset(
        {
            *("get_unread_emails", "get_sent_emails", "get_received_emails", "get_draft_emails", "search_emails"),
            *("search_calendar_events", "get_day_calendar_events", "search_files_by_filename", "get_file_by_id"),
            *("list_files", "search_files", "search_contacts_by_name", "search_contacts_by_email"),
            *("append_to_file", "delete_file", "delete_email", "reschedule_calendar_event", "share_file"),
            *("add_calendar_event_participants", "cancel_calendar_event"),
        }
    ),
    rules=(
        *_MAIL_RULES,
        *_CALENDAR_RULES,
        allow(
            "create_calendar_event",
            when=from_user("title", "start_time") & known("participants", *_CALENDARS, *_CONTACTS),
        ),
        allow("reschedule_calendar_event", when=from_user("new_start_time")),
        allow("add_calendar_event_participants", when=from_user("participants")),
        # New text beside the old, in the user's own drive: nothing is lost, and nothing leaves the house.
        allow("append_to_file", clears_taint=True),
        allow("create_file", when=from_user("filename")),
        # What the agent has just written may go to whom the user named; any other file asks.
        allow("share_file", when=from_user("email") & known("file_id", "create_file.id_")),
    ),
)

TRAVEL = Service(
    effects={
        "reserve_hotel": "write",
        "reserve_car_rental": "write",
        "reserve_restaurant": "write",
        "create_calendar_event": "write",
        "cancel_calendar_event": "write",
        "send_email": "write",
    },
    untrusted=frozenset(
        {
            *("get_rating_reviews_for_hotels", "get_rating_reviews_for_restaurants"),
            *("get_rating_reviews_for_car_rental", "search_calendar_events", "get_day_calendar_events"),
        }
    ),
    rules=(
        *_MAIL_RULES,
        *_CALENDAR_RULES,
        allow("reserve_hotel", when=from_user("hotel", "start_day", "end_day")),
        allow("reserve_car_rental", when=from_user("company", "start_time", "end_time")),
        allow("reserve_restaurant", when=from_user("restaurant", "start_time")),
    ),
)

BANKING = Service(
    effects={
        "send_money": "write",
        "schedule_transaction": "write",
        "update_scheduled_transaction": "write",
        "update_password": "write",
        "update_user_info": "write",
    },
    untrusted=frozenset({"get_most_recent_transactions", "get_scheduled_transactions", "read_file"}),
    rules=(
        allow("send_money", when=from_user("recipient", "amount")),
        allow("send_money", when=from_user("recipient") & _is_small),
        allow("schedule_transaction", when=from_user("recipient", "amount")),
        allow("schedule_transaction", when=from_user("recipient") & _is_small),
        allow("update_scheduled_transaction", when=from_user("recipient", "amount", "date")),
        allow("update_password", when=from_user("password")),
        allow("update_user_info", when=from_user("first_name", "last_name", "street", "city")),
    ),
)

SLACK = Service(
    effects={
        "add_user_to_channel": "write",
        "send_direct_message": "write",
        "send_channel_message": "write",
        "invite_user_to_slack": "write",
        "remove_user_from_slack": "write",
        "post_webpage": "write",
        # Whoever serves a page learns the address that was asked for, and an address can carry data out of the house.
        "get_webpage": "idempotent",
    },
    untrusted=frozenset({"get_channels", "read_channel_messages", "read_inbox", "get_webpage"}),
    rules=(
        allow("get_webpage", when=from_user("url")),
        allow("post_webpage", when=from_user("url") & plain("content")),
        allow("send_direct_message", when=from_user("recipient") & plain("body")),
        allow("send_channel_message", when=from_user("channel") & plain("body")),
        # The user's own text, within the workspace: these functions reach nobody else.
        allow("send_channel_message", when=from_user("body") & known("channel", "get_channels")),
        allow("send_direct_message", when=from_user("body") & known("recipient", "read_channel_messages.sender")),
        allow("add_user_to_channel", when=from_user("user") & known("channel", "get_channels")),
        allow("invite_user_to_slack", when=from_user("user", "user_email")),
    ),
)

SERVICES: Mapping[str, Service] = {"workspace": WORKSPACE, "travel": TRAVEL, "banking": BANKING, "slack": SLACK}


def allow_all(service: Service) -> list[Rule]:
    """Return rules that let every function run while no text by strangers is in the context."""
    return [allow(name) for name in service.effects]
