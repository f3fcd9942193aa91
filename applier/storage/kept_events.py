# SPDX-License-Identifier: Apache-2.0
"""Reads and deletes events in a database; keeps subscriptions and the progress of deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from applier.contracts import HistoryEntry
from applier.notifications.schema import Event
from applier.storage import event_rows, statements
from applier.storage.database import PartOfStore
from applier.storage.state_changes import is_subscribed, write_history
from applier.storage.transactions import Kind, Rows, Transaction
from applier.store.entries import NO_PLAN, DeadEvent, EventPage, Subscription

#: Events, of which a row also has the name and the type of the action.
EVENTS = Kind("actionplan_event", event_rows.event_of, "event {number}")
_SUBSCRIPTIONS = Kind(
    "actionplan_subscription", event_rows.subscription_of, "the subscription {name}"
)
_DEAD = Kind(
    "actionplan_dead_event", event_rows.dead_of, "event {number}, given up for {subscription},"
)


class KeptEvents(PartOfStore):
    """The methods of the store for events and subscriptions."""

    def subscribe(self, name: str, *, now: datetime, until: datetime | None = None) -> None:
        """Subscribe: record all events after this call. An existing subscription is kept.

        ``until`` is for readers: it prolongs their subscription, and never shortens it. A
        subscription that ended before ``now`` is replaced by a new one. If there is no other, all
        earlier events are deleted, because some were not recorded.
        """

        def subscribe(transaction: Transaction) -> None:
            # Rows of plans are locked before the counters, as by every writer.
            transaction.write(statements.PUBLISH, {"new_publishes": 1})
            transaction.write(statements.LOCK_EVENT_NUMBERS, {})
            found = transaction.read(statements.UNTIL, {"named": name})
            if found and found[0]["until"] is not None and found[0]["until"] < now:
                transaction.write(statements.UNSUBSCRIBE, {"named": name})
                found = []
            if not found:
                self._insert(transaction, name, now, until)
            else:
                transaction.write(statements.PROLONG, {"named": name, "new_until": until})

        self._database.writing(subscribe)

    def _insert(
        self, transaction: Transaction, name: str, now: datetime, until: datetime | None
    ) -> None:
        """Insert a subscription to the events after the newest one.

        If it is the only one at ``now``, all earlier events are deleted.
        """
        newest = transaction.read(statements.EVENT_NUMBERS)[0]["events"]
        if not is_subscribed(transaction, now):
            transaction.write(statements.DELETE_EVENTS, {"last": newest})
            transaction.write(statements.EVENTS_DELETED, {"last": newest})
        new = Subscription(name=name, until=until, delivered=newest)
        transaction.insert("actionplan_subscription", event_rows.subscription_row(new))

    def unsubscribe(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """Remove a subscription with its dead events; return False if there is none.

        The history entry has the plan :data:`applier.store.entries.NO_PLAN`.
        """

        def remove(transaction: Transaction) -> bool:
            transaction.write(statements.DELETE_ALL_DEAD, {"named": name})
            was_there = bool(transaction.write(statements.UNSUBSCRIBE, {"named": name}))
            if was_there and history is not None:
                write_history(transaction, NO_PLAN, history)
            return was_there

        return self._database.writing(remove)

    def subscriptions(self) -> list[Subscription]:
        """List the subscriptions by name."""
        return self._database.listed(
            lambda found: found.of(_SUBSCRIPTIONS, statements.SUBSCRIPTIONS, {})
        )

    def events_waiting(self, subscription: Subscription) -> int:
        """Return how many events a receiver has not got yet, with those of plans held back.

        Events of joins, which are never delivered, count as well.
        """
        return self._database.reading(lambda transaction: waiting(transaction, subscription))

    def events(self, after: int = 0, *, limit: int = 100, plan: str | None = None) -> EventPage:
        """List the events with numbers above ``after``, of one plan or of all, oldest first.

        Events of joins are left out.
        """
        statement = statements.EVENTS if plan is None else statements.EVENTS_OF_PLAN
        asked = {"after": after, "most": limit, "plan_uuid": plan}

        def read(found: Rows) -> EventPage:
            [counts] = found.transaction.read(statements.EVENT_NUMBERS)
            there = counts["events"] > max(after, counts["events_deleted"])
            events = found.of(EVENTS, statement, asked) if there else []
            numbers = [event["number"] for event in events]
            numbers += [row.values.get("number", after) for row in found.damaged]
            return EventPage(
                events=events,
                last=max(numbers) if len(numbers) == limit else counts["events"],
                deleted=counts["events_deleted"],
                newest=counts["events"],
            )

        return self._database.listed(read)

    def latest_events(self, *, limit: int, plan: str | None = None) -> list[Event]:
        """List the latest ``limit`` events, of one plan or of all, oldest first, without joins."""
        statement = statements.LATEST_EVENTS if plan is None else statements.LATEST_EVENTS_OF_PLAN
        asked = {"most": limit, "plan_uuid": plan}

        return self._database.listed(lambda found: found.of(EVENTS, statement, asked)[::-1])

    def hold(self, name: str, holder: str, *, seen: Subscription | None) -> Subscription | None:
        """Make ``holder`` the one process that delivers to a receiver, or write its heartbeat.

        Returns the subscription, or None if another process is the holder. ``seen`` is the
        subscription as read earlier, if its holder is presumed dead: the holder is replaced, unless
        it has written a heartbeat since.
        """
        change = {"named": name, "new_holder": holder, "seen": seen.beats if seen else -1}

        def hold(transaction: Transaction) -> Subscription | None:
            if not transaction.write(statements.HOLD_SUBSCRIPTION, change):
                return None
            [held] = transaction.read(statements.SUBSCRIPTION, {"named": name})
            return event_rows.subscription_of(held)

        return self._database.writing(hold)

    def release(self, name: str, holder: str) -> None:
        """End the hold of a process, if it is the holder: another can deliver at once."""
        self._database.writing(
            lambda transaction: transaction.write(
                statements.RELEASE_SUBSCRIPTION, {"named": name, "held_by": holder}
            )
        )

    def record_delivery(self, delivered: Subscription, dead: Sequence[DeadEvent] = ()) -> bool:
        """Write the progress of a delivery, and new dead events; this counts as a heartbeat.

        Returns False, and writes nothing, if another process is the holder now.
        """
        change = event_rows.subscription_row(delivered)

        def write(transaction: Transaction) -> bool:
            if not transaction.write(statements.DELIVERED, change):
                return False
            for event in dead:
                row = event_rows.dead_row(event)
                again = {"named": row["subscription"], "dead_number": row["number"]}
                transaction.write(statements.DELETE_DEAD, again)
                transaction.insert("actionplan_dead_event", row)
            return True

        return self._database.writing(write)

    def dead_events(self, *, limit: int | None = None) -> list[DeadEvent]:
        """List the dead events, latest last; with a limit, only that many of the latest."""
        asked = {"most": statements.ALL if limit is None else limit}

        return self._database.listed(
            lambda found: found.of(_DEAD, statements.DEAD_EVENTS, asked)[::-1]
        )

    def delete_events(self, *, before: datetime, now: datetime) -> int:
        """Delete the events before a time that were delivered to every receiver.

        Returns how many were deleted. If no subscription is left at ``now``, running plans stop
        writing events.
        """

        def delete(transaction: Transaction) -> int:
            if not is_subscribed(transaction, now):
                transaction.write(statements.PUBLISH, {"new_publishes": 0})
            found = map(event_rows.subscription_of, transaction.read(statements.SUBSCRIPTIONS))
            needed = [event_rows.needed_from(s) for s in found if s.until is None]
            [counts] = transaction.read(statements.EVENT_NUMBERS)
            since = transaction.read(statements.FIRST_EVENT_SINCE, {"before": before})
            kept_from = since[0]["number"] if since else counts["events"] + 1
            last = {"last": min([kept_from, *needed]) - 1}
            if last["last"] <= counts["events_deleted"]:
                return 0
            transaction.write(statements.EVENTS_DELETED, last)
            return transaction.write(statements.DELETE_EVENTS, last)

        return self._database.writing(delete)


def waiting(transaction: Transaction, subscription: Subscription) -> int:
    """Return how many events a receiver has not got: new ones, and those of plans held back."""
    [counts] = transaction.read(statements.EVENT_NUMBERS)
    number: int = counts["events"] - subscription.delivered
    for plan, trouble in subscription.held_back.items():
        held = {"plan_uuid": plan, "first": trouble.number, "last": subscription.delivered}
        [of_plan] = transaction.read(statements.EVENTS_BETWEEN, held)
        number += of_plan["number"]
    return number
