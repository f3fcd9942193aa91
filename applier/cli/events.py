# SPDX-License-Identifier: Apache-2.0
"""What has happened, and who hears of it: ``event ...``, ``history``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from applier.assembly import now
from applier.cli.arguments import PLAN_HELP, argument, one_of, positive, time_or_age
from applier.cli.verb import Columns, ListVerb, Rows, Verb, rows, shown_time
from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord
from applier.notifications import schema
from applier.store.entries import NO_PLAN, DeadEvent, Subscription, Trouble
from applier.wording import ago
from planner.errors import InvalidInput, Mistake, accepted, short, shortened

#: Printed if there are no subscriptions: how to subscribe, so that events are recorded.
TO_SUBSCRIBE = (
    "To subscribe: name webhooks or a file in the section [events] and start\n"
    "actionplan-applier, or ask for GET /v2/events, or follow a plan:\n"
    "actionplan watch PLAN -f json"
)
#: The default number of listed events and changes.
_LIMIT = 50
#: The names of so many plans are shown, those saved last.
_NAMED = 10_000
#: The format for people, and those in which every value is text.
_TABLE, _TEXT = "table", ("csv", "value")
#: The fields of an event.
_EVENT = ("version", "type", "number", "at", "plan", "action", "data")


def _event_number(text: str) -> int:
    """Parse the number of an event, from 0, which precedes all; raises ArgumentTypeError."""
    if not re.fullmatch("[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{shortened(repr(text))} is not the number of an event")
    return int(text)


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
    ARGUMENTS = (
        argument("PLAN", f"{PLAN_HELP}; default: all", nargs="?"),
        one_of(
            argument("--after NUMBER", "list the events that follow this one", type=_event_number),
            argument(
                "--dead",
                "list the events that could not be delivered to a receiver and were given up",
            ),
        ),
        argument(
            "--limit NUMBER",
            f"list at most so many (default: {_LIMIT})",
            type=positive,
            default=_LIMIT,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        plan = self.session.store.find_plan(parsed_args.plan) if parsed_args.plan else None
        if parsed_args.dead:
            found = self._dead(plan, parsed_args.limit)
            return rows(_of_dead_events(parsed_args.formatter), found)
        return rows(_of_events(plan, parsed_args.formatter), self._events(plan, parsed_args))

    def nothing(self, parsed_args: argparse.Namespace) -> str:
        of_plan = " of this plan" if parsed_args.plan else ""
        if parsed_args.dead:
            return f"No events{of_plan} were given up."
        at = now()
        if not any(s.until is None or s.until > at for s in self.session.store.subscriptions()):
            return f"No events{of_plan} are kept: nobody subscribes to them.\n{TO_SUBSCRIBE}"
        if parsed_args.after is not None:
            return f"No events{of_plan} follow number {parsed_args.after}."
        return f"No events{of_plan} are kept: nothing has happened, or they were deleted."

    def _events(self, plan: str | None, args: argparse.Namespace) -> Sequence[schema.Event]:
        store = self.session.store
        if args.after is None:
            return store.latest_events(limit=args.limit, plan=plan)
        return store.events(args.after, limit=args.limit, plan=plan).events

    def _dead(self, plan: str | None, limit: int) -> Sequence[DeadEvent]:
        store = self.session.store
        if plan is None:
            return store.dead_events(limit=limit)
        return [d for d in store.dead_events() if d.event["plan"] == plan][-limit:]


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


def _of_events(plan: str | None, form: str) -> Columns:
    """Return the columns of events of one plan, or of all."""

    def field(name: str) -> Callable[[schema.Event], Any]:
        return lambda event: _whole(event.get(name), form)

    if form != _TABLE:
        return {name: field(name) for name in _EVENT}
    columns: Columns = {
        "number": lambda e: e["number"],
        "at": lambda e: shown_time(datetime.fromisoformat(e["at"]), whole=False),
        "plan": lambda e: short(e["plan"]),
        "type": lambda e: e["type"],
        "what": lambda e: change_and_message(e)[0],
        "message": lambda e: change_and_message(e)[1],
    }
    if plan is not None:
        del columns["plan"]
    return columns


def _of_dead_events(form: str) -> Columns:
    whole = form != _TABLE
    columns: Columns = {
        "at": lambda d: shown_time(d.at, whole=whole),
        "number": lambda d: d.event["number"],
        "plan": lambda d: d.event["plan"] if whole else short(d.event["plan"]),
        "type": lambda d: d.event["type"],
        "subscription": lambda d: d.subscription,
        "why": lambda d: d.why,
    }
    if whole:
        columns["event"] = lambda d: _whole(d.event, form)
    return columns


def _whole(value: Any, form: str) -> Any:
    """Return a value for a format; in formats that have only text, a mapping becomes JSON."""
    return schema.line(value) if isinstance(value, Mapping) and form in _TEXT else value


class SubscriptionList(ListVerb):
    """List who subscribes to events, and what each receiver has not got

    Readers subscribe until a time, which is prolonged while they read; receivers until they are
    removed. A plan is held back for a receiver that refuses an event of it; its events wait too.
    """

    EXAMPLES = ("event subscription list", "event subscription list -f json")
    NOTHING = f"Nobody subscribes to events.\n{TO_SUBSCRIBE}"

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        store, whole, at = self.session.store, parsed_args.formatter != _TABLE, now()

        def since(trouble: Trouble) -> str:
            passed_s = (at - trouble.since).total_seconds()
            return trouble.since.isoformat() if whole else ago(passed_s)

        columns: Columns = {
            "name": lambda s: s.name,
            "kind": lambda s: "reader" if s.until else "receiver",
            "until": lambda s: shown_time(s.until, whole=whole) if s.until else None,
            "waiting": lambda s: None if s.until else store.events_waiting(s),
            "held back": lambda s: None if s.until else len(s.held_back),
            "why": lambda s: (trouble := _trouble(s)) and trouble.why,
            "since": lambda s: (trouble := _trouble(s)) and since(trouble),
        }
        names, listed = rows(columns, store.subscriptions())
        empty = None if whole else ""
        return names, ([empty if value is None else value for value in row] for row in listed)


class SubscriptionRemove(Verb):
    """Remove a subscription, with the events that were given up for it

    Nothing more is delivered to it. A receiver that is still configured subscribes again as soon
    as actionplan-applier runs, and gets the events from then on: remove it from [events] first.
    """

    EXAMPLES = (
        "event subscription remove 'webhook ops'",
        "event subscription remove readers",
    )
    ARGUMENTS = (
        argument(
            "NAME",
            "name of a subscription (event subscription list shows them)",
            dest="subscription",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        store, name = self.session.store, parsed_args.subscription
        history = self.operator.entry("event subscription remove", name)
        if not store.unsubscribe(name, history=history):
            known = [subscription.name for subscription in store.subscriptions()]
            raise InvalidInput(
                [Mistake(f"no such subscription; {accepted(name, known)}", (), name)]
            )
        self.say(f"The subscription {name!r} is removed.")
        return 0


def _trouble(of: Subscription) -> Trouble | None:
    """Return why nothing is delivered to a receiver; else, why its first event is held back.

    None if neither is the case.
    """
    held = sorted(of.held_back.values(), key=lambda trouble: trouble.number)
    return of.away or next((trouble for trouble in held if trouble.why), None)


#: Written in place of the plan for a change that is about no single plan, such as a purge.
_NO_PLAN = "-"


class History(ListVerb):
    """List who changed a plan, or any plan, when and why, latest last

    Each run is an 'apply' by the user who ran it.
    """

    EXAMPLES = (
        "history",
        "history last",
        "history --since 7d --who ada",
        "history 7f3a91 -f json",
        "history --limit 1000",
    )
    NOTHING = "No changes are on record."
    ARGUMENTS = (
        argument("PLAN", f"{PLAN_HELP}; default: all", nargs="?"),
        argument(
            "--limit NUMBER",
            f"list at most so many, the latest (default: {_LIMIT})",
            type=positive,
            default=_LIMIT,
        ),
        argument("--since TIME", "only what was done at TIME or later", type=time_or_age),
        argument("--who USER", "only what USER did"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        store, whole = self.session.store, parsed_args.formatter != "table"
        uuid = store.find_plan(parsed_args.plan) if parsed_args.plan else None
        entries = store.history(
            uuid, limit=parsed_args.limit, since=parsed_args.since, who=parsed_args.who
        )
        if whole:
            return _ENTRY, map(_entry, entries)
        columns = ("at", *(() if uuid else ("plan", "name")), "verb", "action", "who", "why")
        names, plans = self._names(uuid, entries), None if uuid else store.plan_names(_NAMED)
        return columns, (_entry_in_short(entry, names, plans) for entry in entries)

    def _names(self, uuid: str | None, entries: Sequence[HistoryEntry]) -> Mapping[str, str]:
        """Return the names of the actions of a plan by uuid.

        The mapping is empty without a plan, if no entry is about an action, and for a damaged plan.
        """
        if uuid is None or not any(entry.action for entry in entries):
            return {}
        try:
            return {a.uuid: a.label for a in self.session.store.load_plan(uuid).actions}
        except DamagedRecord:
            return {}


_ENTRY = (
    *("number", "at", "plan", "verb", "action", "who"),
    *("project", "address", "request_id", "why"),
)


def _entry(entry: HistoryEntry) -> tuple[Any, ...]:
    values = {name: getattr(entry, name) for name in _ENTRY}
    return tuple({**values, "at": entry.at.isoformat()}.values())


def _entry_in_short(
    entry: HistoryEntry, names: Mapping[str, str], plans: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return the row of an entry; ``plans`` are the names of plans, None for those of one plan."""
    plan = _NO_PLAN if entry.plan == NO_PLAN else entry.plan[:8]
    action = names.get(entry.action, entry.action[:8]) if entry.action else ""
    who = f"{entry.who} ({entry.project})" if entry.project else entry.who
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        *(() if plans is None else (plan, plans.get(entry.plan, ""))),
        entry.verb,
        action,
        who,
        entry.why or "",
    )
