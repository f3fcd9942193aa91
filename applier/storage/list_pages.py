# SPDX-License-Identifier: Apache-2.0
"""Lists plans and actions page by page, and shows long plans without loading their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from applier.errors import ActionNotFound, DamagedRecord, PlanNotFound
from applier.storage import damaged_plans, list_statements, rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.database_errors import Damaged
from applier.storage.statements import Row, UnreadableValue
from applier.store.plans import (
    ActionKey,
    LongPlan,
    Page,
    PlanHead,
    PlanKey,
    PlannedAction,
    overview_of,
)
from planner.plan.states import ActionState, PlanState

Listed = TypeVar("Listed")
#: The ``damage`` of a row in a part of a SQLite file that cannot be read.
HIDDEN = "a part of it cannot be read"


class Pages:
    """The methods of the store that list plans and actions; the database sorts and limits them."""

    _database: Database

    def plan_heads(
        self,
        page: Page,
        *,
        audit: str | None = None,
        strategy: str | None = None,
        state: PlanState | None = None,
    ) -> list[PlanHead]:
        """List a page of plans without their actions, including damaged ones.

        Raises PlanNotFound if no plan has the uuid of the marker. The marker may be a plan that was
        removed after it was listed.
        """
        wanted = _given(audit=audit, strategy=strategy, state=state)
        chosen = (PlanKey(page.key), page.descending, page.marker is not None, tuple(wanted))
        asked = {**wanted, "marker": page.marker, "most": page.limit}

        def whole() -> list[PlanHead]:
            self._require_plan(page.marker)
            with self._database.read() as transaction:
                statement = list_statements.plans_page(*chosen, keys_only=False)
                return [rows.head_of(row) for row in transaction.read(statement, asked)]

        def one_by_one() -> list[PlanHead]:
            with self._database.read() as transaction:
                statement = list_statements.plans_page(*chosen, keys_only=True)
                keys = transaction.read_unconverted(statement, asked)
            return [self._head(row) for row in keys]

        try:
            return self._database.tried(whole)
        except DamagedRecord:  # the others can be listed, and the damaged one named
            return self._database.tried(one_by_one)

    def plan_head(self, uuid: str) -> PlanHead:
        """Return a plan without its actions, also if it is damaged.

        Raises PlanNotFound, also for a removed plan.
        """

        def found() -> PlanHead:
            with self._database.read() as transaction:
                where = {"plan_uuid": uuid}
                keys = transaction.read_unconverted(statements.PLAN_KEYS, where)
            if not keys or keys[0]["state"] == PlanState.DELETED:
                raise PlanNotFound(uuid)
            return self._head(keys[0])

        return self._database.tried(found)

    def long_plan(self, uuid: str) -> LongPlan | None:
        """Load the overview of a plan; None if it has none, because it is not long.

        Raises PlanNotFound.
        """

        def load() -> LongPlan | None:
            where = {"plan_uuid": uuid}
            with self._database.read() as transaction:
                head = plan_row(transaction, uuid)
                if head["overview"] is None:
                    return None
                members = transaction.read(statements.REQUESTED, where)
                counts = transaction.read(statements.WAVE_STATES, where)
            states: dict[int, dict[str, int]] = {}
            for row in counts:
                states.setdefault(row["wave"], {})[row["state"]] = row["number"]
            plan = rows.part_of(head, members)
            return LongPlan(plan, rows.reading(overview_of)(head["overview"]), states)

        try:
            return self._database.tried(load)
        except DamagedRecord as damaged:
            raise damaged_plans.explained(self._database, uuid, damaged) from damaged

    def planned_actions(
        self,
        page: Page,
        *,
        plan: str | None = None,
        audit: str | None = None,
        state: ActionState | None = None,
        action_type: str | None = None,
    ) -> list[PlannedAction]:
        """List a page of the actions of all plans, of one plan, or of the plans of an audit.

        With ``state`` or ``action_type``, only those in that state or of that type.

        Raises ActionNotFound if the marker is not the uuid of an action of ``plan``; without
        ``plan``, of any plan.
        """
        wanted = _given(plan=plan, audit=audit, action_state=state, action_type=action_type)
        statement = list_statements.actions_page(
            ActionKey(page.key), page.descending, page.marker is not None, tuple(wanted)
        )

        def asked() -> dict[str, Any]:
            marked = self._holder(page.marker, plan)["plan"] if page.marker else None
            mark = {"marker": page.marker, "marked_plan": marked}
            return {**wanted, **mark, "most": page.limit}

        def found() -> list[PlannedAction]:
            values = asked()
            with self._database.read() as transaction:
                return rows.planned_of(transaction.read(statement, values))

        return self._database.tried(found)

    def planned_action(self, uuid: str) -> PlannedAction:
        """Return the action of this uuid; of several, that of the plan saved last.

        Raises ActionNotFound.
        """

        def found() -> PlannedAction:
            where = {"action_uuid": uuid, "plan_uuid": self._holder(uuid, None)["plan"]}
            with self._database.read() as transaction:
                return _the_only(rows.planned_of(transaction.read(list_statements.ACTION, where)))

        return self._database.tried(found)

    def _require_plan(self, uuid: str | None) -> None:
        if uuid is None:
            return
        with self._database.read() as transaction:
            where = {"plan_uuid": uuid}
            if not transaction.read_unconverted(statements.PLAN_KEYS, where):
                raise PlanNotFound(uuid)

    def _holder(self, uuid: str, plan: str | None) -> Row:
        """Return the row with the plan of an action; of several, that of the plan saved last.

        Only ``plan`` counts if it is not None. Raises ActionNotFound.
        """
        statement = list_statements.HOLDERS if plan is None else list_statements.HOLDER
        where = _given(action_uuid=uuid, plan_uuid=plan)
        with self._database.read() as transaction:
            found = transaction.read_unconverted(statement, where)
        if not found:
            raise ActionNotFound(plan, uuid)
        return found[0]

    def _head(self, keys: Row) -> PlanHead:
        def read() -> PlanHead:
            with self._database.read() as transaction:
                found = transaction.read(statements.LEFT_PLAN, {"plan_uuid": keys["uuid"]})
            return _the_only(list(map(rows.head_of, found)))

        damaged = partial(PlanHead, uuid=keys["uuid"], state=_state(keys["state"]))
        return _read(read, damaged)


def _given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _the_only(found: Sequence[Listed]) -> Listed:
    """Return the only row; raises UnreadableValue if it was removed after its key was read."""
    if not found:
        raise UnreadableValue("it was removed meanwhile")
    return found[0]


def _read(read: Callable[[], Listed], damaged: Callable[..., Listed]) -> Listed:
    """Return the result of ``read``; if the rows are damaged, that of ``damaged``.

    The latter is called with the reason as ``damage``.
    """
    try:
        return read()
    except UnreadableValue as reason:
        return damaged(damage=str(reason))
    except Damaged:
        return damaged(damage=HIDDEN)


def _state(word: object) -> PlanState | None:
    return PlanState(str(word)) if word in set(map(str, PlanState)) else None
