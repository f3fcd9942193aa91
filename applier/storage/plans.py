# SPDX-License-Identifier: Apache-2.0
"""Saves, finds and lists plans in a database, also those of other records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Unpack

from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord, PlanConflict, PlanNotFound
from applier.storage import damaged_plans, list_statements, rows, schema, statements
from applier.storage.database import PartOfStore, plan_row, require_claim, require_listed
from applier.storage.database_errors import Duplicate
from applier.storage.event_rows import Entered
from applier.storage.state_changes import note, write_history
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Transaction
from applier.store import PlanFilters, PlanSummary, RunStore, given
from applier.store.entries import PlanArchive
from applier.store.plans import LONG, OverviewOf, before_last, choose
from planner.errors import InvalidPlan, Mistake
from planner.plan.model import JOIN, ActionPlan
from planner.safe_text import TOO_DEEP, compact_json, is_too_deep

#: How many actions are inserted by one call while a plan is saved.
_AT_ONCE = 1000


class Plans(PartOfStore, RunStore):
    """The methods of the store that save, find and list plans."""

    _overview_of: OverviewOf | None

    def save_plan(self, plan: ActionPlan, *, history: HistoryEntry | None = None) -> None:
        """Save a new plan; after a crash, either the whole plan is saved or nothing.

        Raises PlanConflict if a plan of this uuid is saved already, InvalidPlan if two of its
        actions have the same uuid.
        """
        creator = history.who if history else None
        entered = Entered(plan.state, plan.status_message)
        at = history.at if history else plan.created_at or datetime.now(UTC)

        def add(transaction: Transaction) -> None:
            note(transaction, plan.uuid, history, entered, at=at)

        self._insert_plan(plan, creator, add)

    def import_plan(self, archive: PlanArchive, *, history: HistoryEntry) -> None:
        """Save a plan of another record with its attempts, history and requests, all or nothing.

        ``history`` is the entry of the import, which follows those of the archive. ``durations``
        never returns the durations of imported attempts. Raises PlanConflict if a plan of this uuid
        is saved already, InvalidPlan if two of its actions have the same uuid.
        """
        plan = archive.plan
        creator = next((one.who for one in archive.history), history.who)
        asked = [
            rows.request_row(plan.uuid, number, request, request.created_at or history.at)
            for number, request in enumerate(archive.requests, 1)
        ]

        def add(transaction: Transaction) -> None:
            _insert_many(transaction, _attempt_rows(archive), "actionplan_attempt")
            for row in asked:
                transaction.insert("actionplan_request", row)
            for entry in archive.history:
                write_history(transaction, plan.uuid, entry)
            note(transaction, plan.uuid, history, at=history.at)

        self._insert_plan(plan, creator, add, requests=len(asked))

    def _insert_plan(
        self,
        plan: ActionPlan,
        creator: str | None,
        add: Callable[[Transaction], None],
        requests: int = 0,
    ) -> None:
        """Insert a plan that has a number of requests, and what ``add`` writes with it.

        Raises PlanConflict if a plan of this uuid is saved already, InvalidPlan if two of its
        actions have the same uuid.
        """
        _require_distinct(plan)
        overview, waves = self._overview_of_new(plan)
        head = {**rows.plan_row(plan, creator=creator), "overview": overview, "requests": requests}

        def insert() -> None:
            members = rows.action_rows(plan, waves)
            try:
                with self._database.write() as transaction:
                    transaction.insert("actionplan_plan", head)
                    _insert_many(
                        transaction, members, "actionplan_action", "actionplan_action_state"
                    )
                    add(transaction)
            except Duplicate:
                state = self._database.head(plan.uuid)["state"]
                text = f"plan {plan.uuid} is already in the record, {state}"
                raise PlanConflict(plan.uuid, state, text) from None

        self._database.tried(insert, lost_too=False)

    def load_plan(self, uuid: str) -> ActionPlan:
        def load(transaction: Transaction) -> ActionPlan:
            head, where = plan_row(transaction, uuid), {"plan_uuid": uuid}
            members = transaction.read(statements.MEMBERS, where, table="actionplan_action")
            plan = rows.plan_of(head, members)
            _require_usable(plan)
            return plan

        return self._database.reading_plan(uuid, load)

    def load_part(self, uuid: str, reference: str) -> ActionPlan:
        """Load a plan with few of its actions: as many as are needed to explain one of them.

        These are the actions whose uuid begins with ``reference`` or whose name it is, those before
        them, through joins, and all that run. The digest is not compared. Raises PlanNotFound.
        """
        part = partial(_part, uuid=uuid, reference=reference)
        return self._database.reading_plan(uuid, part)

    def _overview_of_new(self, plan: ActionPlan) -> tuple[str | None, Mapping[str, int]]:
        """Return what is kept of a long plan: its overview as JSON, and the waves of its actions.

        None and no waves for any other plan.
        """
        if self._overview_of is None or len(plan.actions) <= LONG:
            return None, {}
        overview, waves = self._overview_of(plan)
        return compact_json(overview._asdict()), waves

    def find_plan(self, reference: str) -> str:
        """Return the uuid of the one plan that a reference matches; raises PlanNotFound.

        A reference is a uuid, a unique beginning of one with at least four characters, a unique
        name, or ``last`` for the plan saved last, ``last~1`` for the one before, and so on. Removed
        plans are found by whole uuids only.
        """
        earlier = before_last(reference)

        def find(transaction: Transaction) -> str:
            if earlier is not None:
                found = transaction.read(statements.LAST, {"earlier": earlier})
                if not found:
                    raise PlanNotFound(reference)
                return str(found[0]["uuid"])
            pattern = statements.beginning(reference)
            asked = {"reference": reference, "beginning": pattern}
            found = transaction.read(statements.FIND, asked)
            return choose(reference, [(row["uuid"], row["name"]) for row in found])

        return self._database.reading(find)

    def list_plans(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        **filters: Unpack[PlanFilters],
    ) -> list[PlanSummary]:
        """List plans, the latest saved first; removed ones only if ``state`` is DELETED.

        ``after`` is the uuid of the last plan of the page before. Raises PlanNotFound if no plan
        has it; one that was removed after it was listed has it still.

        With ``since`` or ``until``, the plans with the latest ``created_at`` come first. Damaged
        plans are listed with ``damage``. A damaged plan whose field cannot be read passes no filter
        on that field.
        """
        wanted = given(filters)
        chosen, is_rest = tuple(wanted), after is not None
        most = statements.ALL if limit is None else limit
        asked = {**_searched(wanted), "after": after, "most": most}

        def listed(transaction: Transaction) -> list[PlanSummary]:
            if after is not None:
                require_listed(transaction, after)
            statement = list_statements.newest(chosen, is_rest=is_rest)
            heads = transaction.read(statement, asked, table="actionplan_plan")
            counts = transaction.read(list_statements.counts(chosen, is_rest=is_rest), asked)
            for head in heads:
                require_claim(head)
            actions = rows.counts_of(counts)
            return [rows.summary(head, actions.get(head["uuid"], {})) for head in heads]

        try:
            return self._database.reading(listed)
        except DamagedRecord:
            one_by_one = partial(damaged_plans.listed, self._database, wanted, asked, limit, after)
            return self._database.tried(one_by_one)

    def count_plans(self, *, most: int | None = None, **filters: Unpack[PlanFilters]) -> int:
        """Return how many plans :meth:`list_plans` lists without a limit; at most ``most``."""
        wanted = given(filters)
        asked = {**_searched(wanted), "most": statements.ALL if most is None else most}

        def count(transaction: Transaction) -> int:
            found = transaction.read(list_statements.number(tuple(wanted)), asked)
            return int(found[0]["number"])

        return self._database.reading(count)

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans that may start now, the longest wait first."""
        return self._database.reading(
            lambda transaction: [row["uuid"] for row in transaction.read(statements.PENDING_PLANS)]
        )


def _insert_many(transaction: Transaction, members: Iterator[Row], *tables: str) -> None:
    """Insert rows into a table, or their parts into several, by many at once."""
    while some := tuple(islice(members, _AT_ONCE)):
        for table in tables:
            transaction.insert(table, *some)


def _searched(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return filters with the LIKE pattern of all names that have the text ``search`` in them."""
    if "search" not in wanted:
        return {**wanted}
    return {**wanted, "search": f"%{statements.exactly(wanted['search'])}%"}


def _require_distinct(plan: ActionPlan) -> None:
    """Raise InvalidPlan if two actions of a plan have the same uuid, which is their key."""
    counts = Counter(action.uuid for action in plan.actions)
    if len(counts) != len(plan.actions):
        twice = (uuid for uuid, number in counts.items() if number > 1)
        raise InvalidPlan(
            Mistake(f"two actions of plan {plan.uuid} have the uuid {u}") for u in twice
        )


def _part(transaction: Transaction, uuid: str, reference: str) -> ActionPlan:
    beginning = statements.beginning(reference) if reference else ""
    asked = {"plan_uuid": uuid, "reference": reference, "beginning": beginning}
    head = plan_row(transaction, uuid)
    found = transaction.read(statements.MATCHES, asked)
    members = {row["uuid"]: row for row in found}
    while missing := _links(head, found) - members.keys():
        found = [_member(transaction, uuid, one) for one in missing]
        members |= {row["uuid"]: row for row in found}
        found = [row for row in found if row["action_type"] == JOIN]
    running = transaction.read(statements.RUNNING, {"plan_uuid": uuid})
    members |= {row["uuid"]: row for row in running}
    return rows.part_of(head, sorted(members.values(), key=itemgetter("position")))


def _links(head: Row, members: list[Row]) -> set[str]:
    """Return the uuids of all actions that are directly before these."""
    actions = rows.part_of(head, members).actions
    return {uuid for a in actions for uuid in chain(a.before(), *a.needs_any)}


def _member(transaction: Transaction, plan: str, action: str) -> Row:
    """Return the row of an action that others name; raises UnreadableValue without one."""
    found = transaction.read(statements.MEMBER, {"plan_uuid": plan, "action_uuid": action})
    if not found:
        raise UnreadableValue(f"a link to {action}, which is no action of the plan")
    return found[0]


def _require_usable(plan: ActionPlan) -> None:
    """Raise UnreadableValue for values that rows are converted with, but that no plan may have.

    Functions that show or run a plan would fail with them.
    """
    if not (schema.is_texts(list(plan.warnings)) and schema.is_tolerances(list(plan.tolerances))):
        raise UnreadableValue("its warnings or tolerances have another form")
    if any(is_too_deep(a.input_parameters) for a in plan.actions):
        raise UnreadableValue(TOO_DEEP)


def _attempt_rows(archive: PlanArchive) -> Iterator[dict[str, Any]]:
    """Yield the rows of all attempts, in the order in which they ended."""
    known = [(uuid, one) for uuid, tried in archive.attempts.items() for one in tried]
    for uuid, one in sorted(known, key=lambda pair: pair[1].ended_at or pair[1].started_at):
        yield {
            **one._asdict(),
            "plan": archive.plan.uuid,
            "action": uuid,
            "ended_at": one.ended_at or one.started_at,
            "state": str(one.state),
            "outcome": None if one.outcome is None else str(one.outcome),
            "message": rows.storable(one.message),
            "output": rows.storable(one.output),
            "measures": None,
        }
