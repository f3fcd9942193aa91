# SPDX-License-Identifier: Apache-2.0
"""Lists plans and actions page by page, and shows long plans without loading their actions."""

from __future__ import annotations

from applier.errors import ActionNotFound, DamagedRecord, PlanNotFound
from applier.storage import list_statements, rows, statements
from applier.storage.database import PartOfStore, plan_row, require_listed
from applier.storage.database_errors import Damaged
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Transaction
from applier.store.plans import (
    ActionKey,
    LongPlan,
    Page,
    PlanHead,
    PlanKey,
    PlannedAction,
    given,
    overview_of,
)
from planner.plan.states import ActionState, PlanState

#: The ``damage`` of a row in a part of a SQLite file that cannot be read.
HIDDEN = "a part of it cannot be read"


class Pages(PartOfStore):
    """The methods of the store that list plans and actions; the database sorts and limits them."""

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
        wanted = given({"audit": audit, "strategy": strategy, "state": state})
        chosen = (PlanKey(page.key), page.descending, page.marker is not None, tuple(wanted))
        asked = {**wanted, "marker": page.marker, "most": page.limit}

        def whole(transaction: Transaction) -> list[PlanHead]:
            if page.marker is not None:
                require_listed(transaction, page.marker)
            statement = list_statements.plans_page(*chosen, keys_only=False)
            return [rows.head_of(row) for row in transaction.read(statement, asked)]

        def one_by_one() -> list[PlanHead]:
            with self._database.read() as transaction:
                statement = list_statements.plans_page(*chosen, keys_only=True)
                keys = transaction.read_unconverted(statement, asked)
            return [self._head(row) for row in keys]

        try:
            return self._database.reading(whole)
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

        def load(transaction: Transaction) -> LongPlan | None:
            head, where = plan_row(transaction, uuid), {"plan_uuid": uuid}
            if head["overview"] is None:
                return None
            states: dict[int, dict[str, int]] = {}
            for row in transaction.read(statements.WAVE_STATES, where):
                states.setdefault(row["wave"], {})[row["state"]] = row["number"]
            plan = rows.part_of(head, transaction.read(statements.REQUESTED, where))
            return LongPlan(plan, rows.reading(overview_of)(head["overview"]), states)

        return self._database.reading_plan(uuid, load)

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
        wanted = given(
            {"plan": plan, "audit": audit, "action_state": state, "action_type": action_type}
        )
        statement = list_statements.actions_page(
            ActionKey(page.key), page.descending, page.marker is not None, tuple(wanted)
        )

        def found(transaction: Transaction) -> list[PlannedAction]:
            marked = _holder(transaction, page.marker, plan) if page.marker else None
            mark = {"marker": page.marker, "marked_plan": marked}
            asked = {**wanted, **mark, "most": page.limit}
            return rows.planned_of(transaction.read(statement, asked))

        return self._database.reading(found)

    def planned_action(self, uuid: str) -> PlannedAction:
        """Return the action of this uuid; of several, that of the plan saved last.

        Raises ActionNotFound.
        """

        def found(transaction: Transaction) -> PlannedAction:
            where = {"action_uuid": uuid, "plan_uuid": _holder(transaction, uuid, None)}
            actions = rows.planned_of(transaction.read(list_statements.ACTION, where))
            if not actions:
                raise UnreadableValue(f"the rows of action {uuid} contradict each other")
            return actions[0]

        return self._database.reading(found)

    def _head(self, keys: Row) -> PlanHead:
        try:
            with self._database.read() as transaction:
                found = transaction.read(statements.LEFT_PLAN, {"plan_uuid": keys["uuid"]})
            if found:
                return rows.head_of(found[0])
            damage = "it was removed meanwhile"
        except UnreadableValue as reason:
            damage = str(reason)
        except Damaged:
            damage = HIDDEN
        state = PlanState(keys["state"]) if keys["state"] in set(map(str, PlanState)) else None
        return PlanHead(uuid=keys["uuid"], state=state, damage=damage)


def _holder(transaction: Transaction, uuid: str, plan: str | None) -> str:
    """Return the plan of an action; of several, that which was saved last.

    Only ``plan`` counts if it is not None. Raises ActionNotFound.
    """
    statement = list_statements.HOLDERS if plan is None else list_statements.HOLDER
    found = transaction.read_unconverted(statement, given({"action_uuid": uuid, "plan_uuid": plan}))
    if not found:
        raise ActionNotFound(plan, uuid)
    holder: str = found[0]["plan"]
    return holder
