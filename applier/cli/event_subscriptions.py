# SPDX-License-Identifier: Apache-2.0
"""``actionplan event subscription list | remove``: who subscribes to events."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from applier.assembly import now
from applier.cli.damaged_cells import cells
from applier.cli.events import TO_SUBSCRIBE
from applier.cli.verb import ListVerb, Verb
from applier.errors import sound_part
from applier.store.subscriptions import Subscription, Trouble
from applier.wording import ago


class SubscriptionList(ListVerb):
    """List who subscribes to events, and what each receiver has not got

    Readers subscribe until a time, which is prolonged while they read; receivers until they are
    removed. A plan is held back for a receiver that refuses an event of it.
    """

    EXAMPLES = ("event subscription list", "event subscription list -f json")
    NOTHING = f"Nobody subscribes to events.\n{TO_SUBSCRIBE}"

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each subscription."""
        store, whole, at = self.session.store, parsed_args.formatter != "table", now()
        subscriptions, damaged = self.readable(store.subscriptions)
        newest = sound_part(lambda: store.events(limit=1))[0].newest if subscriptions else 0
        columns = ("name", "kind", "until", "waiting", "held back", "why", "since")
        empty = None if whole else ""
        rows = (
            tuple(empty if value is None else value for value in _row(s, newest, whole, at))
            for s in subscriptions
        )
        return columns, chain(rows, (cells(row, _FIELDS, whole=whole) for row in damaged))


#: The fields of the columns of a damaged subscription; None: the column stays empty.
_FIELDS = ("name", None, "until", None, "held_back", None, None)


class SubscriptionRemove(Verb):
    """Remove a subscription, with the events that were given up for it

    Nothing more is delivered to it. A receiver that is still configured subscribes again as soon
    as actionplan-applier runs, and gets the events from then on: remove it from [events] first.
    """

    EXAMPLES = (
        "event subscription remove 'webhook ops'",
        "event subscription remove readers",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a name."""
        parser = super().get_parser(prog_name)
        text = "name of a subscription (event subscription list shows them)"
        parser.add_argument("name", metavar="NAME", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Remove the subscription; raises InvalidInput for an unknown name."""
        from planner.errors import InvalidInput, Mistake, accepted

        store, name = self.session.store, parsed_args.name
        history = self.operator.entry("event subscription remove", name)
        if not store.unsubscribe(name, history=history):
            known = [subscription.name for subscription in sound_part(store.subscriptions)[0]]
            raise InvalidInput(
                [Mistake(f"no such subscription; {accepted(name, known)}", (), name)]
            )
        self.say(f"The subscription {name!r} is removed.")
        return 0


def _row(of: Subscription, newest: int, whole: bool, at: datetime) -> tuple[Any, ...]:
    is_receiver, trouble = of.until is None, _trouble(of)
    return (
        of.name,
        "receiver" if is_receiver else "reader",
        _time(of.until, whole=whole),
        newest - of.delivered if is_receiver else None,
        len(of.held_back) if is_receiver else None,
        trouble.why if trouble else None,
        (trouble.since.isoformat() if whole else ago((at - trouble.since).total_seconds()))
        if trouble
        else None,
    )


def _trouble(of: Subscription) -> Trouble | None:
    """Return why nothing is delivered to a receiver; else, why its first event is held back.

    None if neither is the case.
    """
    held = sorted(of.held_back.values(), key=lambda trouble: trouble.number)
    return of.away or next((trouble for trouble in held if trouble.why), None)


def _time(at: datetime | None, *, whole: bool) -> str | None:
    if at is None:
        return None
    return at.isoformat() if whole else f"{at:%Y-%m-%d %H:%M:%S}"
