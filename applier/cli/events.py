# SPDX-License-Identifier: Apache-2.0
"""``actionplan event list``: the events of plans, recorded while somebody subscribes to them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from applier.assembly import now
from applier.cli.arguments import PLAN_HELP, positive
from applier.cli.damaged_cells import cells
from applier.cli.verb import ListVerb
from applier.errors import DamagedRow, sound_part
from applier.notifications import lines, schema
from applier.store.subscriptions import DeadEvent
from planner.errors import short, shortened

#: Printed if there are no subscriptions: how to subscribe, so that events are recorded.
TO_SUBSCRIBE = (
    "To subscribe: name webhooks or a file in the section [events] and start\n"
    "actionplan-applier, or ask for GET /v2/events, or follow a plan:\n"
    "actionplan watch PLAN -f json"
)
#: The default number of listed events.
_LIMIT = 50
#: The format for people, and those in which every value is text.
_TABLE, _TEXT = "table", ("csv", "value")
#: The fields of an event.
_EVENT = ("version", "type", "number", "at", "plan", "action", "data")
#: The fields of these columns of a damaged event; None: the column stays empty.
_EVENT_FIELDS = (None, "type", "number", "at", "plan", "action", None)


class EventList(ListVerb):
    """List the events of a plan, or of any plan, latest last

    Events are recorded while somebody subscribes, and kept for some time ([events] keep_s). With
    --after, the first events that follow the number are listed, otherwise the latest ones.
    """

    EXAMPLES = (
        "event list",
        "event list last -f json",
        "event list --after 4711 --limit 1000",
        "event list --dead",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, which events, and a limit."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="PLAN", nargs="?", help=f"{PLAN_HELP}; default: all")
        which = parser.add_mutually_exclusive_group()
        text = "list the events that follow this one"
        which.add_argument("--after", metavar="NUMBER", type=_event_number, help=text)
        text = "list the events that could not be delivered to a receiver and were given up"
        which.add_argument("--dead", action="store_true", help=text)
        parser.add_argument(
            "--limit",
            metavar="NUMBER",
            type=positive,
            default=_LIMIT,
            help=f"list at most so many (default: {_LIMIT})",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each event; raises PlanNotFound."""
        plan = self.session.store.find_plan(parsed_args.plan) if parsed_args.plan else None
        form, whole = parsed_args.formatter, parsed_args.formatter != _TABLE
        if parsed_args.dead:
            dead, damaged = self._dead(plan, parsed_args.limit)
            fields: tuple[str | None, ...] = ("at", "number", None, None, "subscription", "why")
            columns, rows = _dead_rows(dead, form)
            fields = (*fields, *((None,) if whole else ()))
            return columns, chain(rows, (cells(row, fields, whole=whole) for row in damaged))
        events, damaged = self.readable(lambda: self._events(plan, parsed_args))
        columns, rows = _rows(events, plan, form)
        fields = _EVENT_FIELDS if whole else ("number", "at", *(() if plan else ("plan",)), "type")
        fields = fields if whole else (*fields, "data", None)
        numbered = [
            *zip((event["number"] for event in events), rows, strict=True),
            *((row.values.get("number", 0), cells(row, fields, whole=whole)) for row in damaged),
        ]
        return columns, (row for _, row in sorted(numbered, key=lambda one: one[0]))

    def nothing(self, parsed_args: argparse.Namespace) -> str:
        """Return why there are no events, and how to have some."""
        of_plan = " of this plan" if parsed_args.plan else ""
        if parsed_args.dead:
            return f"No events{of_plan} were given up."
        at = now()
        subscriptions, _ = sound_part(self.session.store.subscriptions)
        if not any(s.until is None or s.until > at for s in subscriptions):
            return f"No events{of_plan} are kept: nobody subscribes to them.\n{TO_SUBSCRIBE}"
        if parsed_args.after is not None:
            return f"No events{of_plan} follow number {parsed_args.after}."
        return f"No events{of_plan} are kept: nothing has happened, or they were deleted."

    def _events(self, plan: str | None, args: argparse.Namespace) -> Sequence[schema.Event]:
        store = self.session.store
        if args.after is None:
            return store.latest_events(limit=args.limit, plan=plan)
        return store.events(args.after, limit=args.limit, plan=plan).events

    def _dead(
        self, plan: str | None, limit: int
    ) -> tuple[Sequence[DeadEvent], Sequence[DamagedRow]]:
        store = self.session.store
        if plan is None:
            return self.readable(lambda: store.dead_events(limit=limit))
        dead, damaged = self.readable(store.dead_events)
        return [d for d in dead if d.event["plan"] == plan][-limit:], damaged


def change_and_message(event: schema.Event) -> tuple[str, str]:
    """Return the change that an event is about, as a short text, and its message or reason.

    >>> data = {"state": "FAILED", "message": "1 failed"}
    >>> change_and_message({"type": "plan.state", "data": data})
    ('FAILED', '1 failed')
    """
    data = event["data"]
    message = data.get("message") or data.get("why") or ""
    if event["type"] == schema.PLAN_STATE:
        return data["state"], message
    if event["type"] == schema.ACTION_STATE:
        return f"{data['name']} {data['old']} -> {data['state']}", message
    if event["type"] == schema.PLAN_APPROVED:
        return f"approved by {data['who']}", message
    return f"{data['verb']} by {data['who']}" if "verb" in data else "", message


def _rows(
    events: Iterable[schema.Event], plan: str | None, form: str
) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
    if form != _TABLE:
        return _EVENT, ([_whole(event.get(name), form) for name in _EVENT] for event in events)
    columns = ("number", "at", *(() if plan else ("plan",)), "type", "what", "message")
    return columns, (
        (
            event["number"],
            _time(datetime.fromisoformat(event["at"])),
            *(() if plan else (short(event["plan"]),)),
            event["type"],
            *change_and_message(event),
        )
        for event in events
    )


def _dead_rows(
    dead: Iterable[DeadEvent], form: str
) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
    is_whole = form != _TABLE
    columns = ("at", "number", "plan", "type", "subscription", "why")
    return (*columns, *(("event",) if is_whole else ())), (
        (
            d.at.isoformat() if is_whole else _time(d.at),
            d.event["number"],
            d.event["plan"] if is_whole else short(d.event["plan"]),
            d.event["type"],
            d.subscription,
            d.why,
            *((_whole(d.event, form),) if is_whole else ()),
        )
        for d in dead
    )


def _whole(value: Any, form: str) -> Any:
    """Return a value for a format; in formats that have only text, a mapping becomes JSON."""
    return lines.line(value) if isinstance(value, Mapping) and form in _TEXT else value


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _event_number(text: str) -> int:
    """Parse the number of an event, from 0, which precedes all; raises ArgumentTypeError."""
    if not re.fullmatch("[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{shortened(repr(text))} is not the number of an event")
    return int(text)
