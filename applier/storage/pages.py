# SPDX-License-Identifier: Apache-2.0
"""Lists plans and actions page by page. The database sorts and limits them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from applier.errors import ActionNotFound, DamagedRecord, PlanNotFound
from applier.storage import page_statements, rows
from applier.storage.compiled import Row, UnreadableValue
from applier.storage.database import Database
from applier.storage.refusals import Damaged
from applier.store.pages import ActionKey, Page, PlanHead, PlanKey, PlannedAction
from planner.states import PlanState

Listed = TypeVar("Listed")
#: The ``damage`` of a row in a part of a SQLite file that cannot be read.
HIDDEN = "a part of it cannot be read"


class Pages:
    """The methods of the store that list plans and actions page by page."""

    _database: Database

    def plan_heads(
        self,
        page: Page,
        *,
        audit: str | None = None,
        strategy: str | None = None,
        state: PlanState | None = None,
    ) -> list[PlanHead]:
        """See :meth:`applier.store.pages.PageStore.plan_heads`."""
        wanted = _given(audit=audit, strategy=strategy, state=state)
        chosen = (PlanKey(page.key), page.descending, page.marker is not None, tuple(wanted))
        asked = {**wanted, "marker": page.marker, "most": page.limit}

        def whole() -> list[PlanHead]:
            self._require_plan(page.marker)
            with self._database.read() as transaction:
                statement = page_statements.plans_page(*chosen, keys_only=False)
                return [rows.head_of(row) for row in transaction.read(statement, asked)]

        def one_by_one() -> list[PlanHead]:
            with self._database.read() as transaction:
                statement = page_statements.plans_page(*chosen, keys_only=True)
                keys = transaction.read_unconverted(statement, asked)
            return [self._head(row) for row in keys]

        return self._listed(whole, one_by_one)

    def plan_head(self, uuid: str) -> PlanHead:
        """See :meth:`applier.store.pages.PageStore.plan_head`."""

        def found() -> PlanHead:
            with self._database.read() as transaction:
                where = {"plan_uuid": uuid}
                keys = transaction.read_unconverted(page_statements.PLAN_KEYS, where)
            if not keys or keys[0]["state"] == PlanState.DELETED:
                raise PlanNotFound(uuid)
            return self._head(keys[0])

        return self._database.tried(found)

    def planned_actions(
        self, page: Page, *, plan: str | None = None, audit: str | None = None
    ) -> list[PlannedAction]:
        """See :meth:`applier.store.pages.PageStore.planned_actions`."""
        wanted = _given(plan=plan, audit=audit)
        chosen = (ActionKey(page.key), page.descending, page.marker is not None, tuple(wanted))

        def asked() -> dict[str, Any]:
            marked = self._holder(page.marker, plan)["plan"] if page.marker else None
            mark = {"marker": page.marker, "marked_plan": marked}
            return {**wanted, **mark, "most": page.limit}

        def whole() -> list[PlannedAction]:
            values = asked()
            with self._database.read() as transaction:
                statement = page_statements.actions_page(*chosen, keys_only=False)
                return rows.planned_of(transaction.read(statement, values))

        def one_by_one() -> list[PlannedAction]:
            values = asked()
            with self._database.read() as transaction:
                statement = page_statements.actions_page(*chosen, keys_only=True)
                keys = transaction.read_unconverted(statement, values)
            return [self._planned(row) for row in keys]

        return self._listed(whole, one_by_one)

    def planned_action(self, uuid: str) -> PlannedAction:
        """See :meth:`applier.store.pages.PageStore.planned_action`."""
        return self._database.tried(lambda: self._planned(self._holder(uuid, None)))

    def _listed(
        self, whole: Callable[[], list[Listed]], one_by_one: Callable[[], list[Listed]]
    ) -> list[Listed]:
        """Return the result of ``whole``, or that of ``one_by_one`` if a row of it is damaged.

        The latter reads row by row, so that the other rows can be listed.
        """
        try:
            return self._database.tried(whole)
        except DamagedRecord:
            return self._database.tried(one_by_one)

    def _require_plan(self, uuid: str | None) -> None:
        if uuid is None:
            return
        with self._database.read() as transaction:
            where = {"plan_uuid": uuid}
            if not transaction.read_unconverted(page_statements.PLAN_KEYS, where):
                raise PlanNotFound(uuid)

    def _holder(self, uuid: str, plan: str | None) -> Row:
        """Return the uuid of an action, the uuid of its plan, and the state of its plan.

        If ``plan`` is None, it is the action in the plan that was saved last. Raises
        ActionNotFound.
        """
        statement = page_statements.HOLDERS if plan is None else page_statements.HOLDER
        where = _given(action_uuid=uuid, plan_uuid=plan)
        with self._database.read() as transaction:
            found = transaction.read_unconverted(statement, where)
        if not found:
            raise ActionNotFound(plan, uuid)
        return found[0]

    def _head(self, keys: Row) -> PlanHead:
        def read() -> PlanHead:
            with self._database.read() as transaction:
                found = transaction.read(page_statements.PLAN, {"plan_uuid": keys["uuid"]})
            return _the_only(list(map(rows.head_of, found)))

        damaged = partial(PlanHead, uuid=keys["uuid"], state=_state(keys["state"]))
        return _read(read, damaged)

    def _planned(self, keys: Row) -> PlannedAction:
        uuid, plan = keys["uuid"], keys["plan"]

        def read() -> PlannedAction:
            where = {"action_uuid": uuid, "plan_uuid": plan}
            with self._database.read() as transaction:
                return _the_only(rows.planned_of(transaction.read(page_statements.ACTION, where)))

        damaged = partial(
            PlannedAction, uuid=uuid, plan=plan, plan_state=_state(keys["plan_state"])
        )
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
