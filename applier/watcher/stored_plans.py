# SPDX-License-Identifier: Apache-2.0
"""Reads Watcher's plans for the verbs of ``actionplan-watcher``, and finds them by references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from applier.contracts import ActionPlugin, Claimant
from applier.errors import ApplierError
from applier.storage import references
from applier.store.samples import MOST, Sample
from applier.watcher import claims, database
from applier.watcher.plans import plan_of
from applier.watcher.record import ACTIONS, PLANS, WatcherRecord
from applier.watcher.tables import VERSION_TABLE
from planner.model import ActionPlan


class StoredPlans(WatcherRecord):
    """Watcher's plans; the tables of ActionPlan may be missing in the database."""

    def __init__(self, types: Mapping[str, type[ActionPlugin]], limits: Mapping[str, int]) -> None:
        super().__init__(types, limits)
        self._is_ours = _has_our_tables()

    @database.translated
    def find_plan(self, reference: str) -> str:
        """Return the uuid of a plan by a reference: a uuid, a beginning of one, or ``last``.

        Raises PlanNotFound if several plans match, ApplierError if none does.
        """
        kept = sa.select(PLANS.c.uuid).where(PLANS.c.deleted_at.is_(None))
        if reference == references.LAST:
            query = kept.order_by(PLANS.c.id.desc()).limit(1)
        else:
            query = kept.where(PLANS.c.uuid.startswith(reference, autoescape=True))
        with database.reading() as connection:
            known = [str(row.uuid) for row in connection.execute(query)]
        if not known:
            raise ApplierError(
                f"no plan {reference!r} in Watcher's database; a plan is named by its uuid, a "
                "unique beginning of it, or 'last' (see: openstack optimize actionplan list)"
            )
        if reference == references.LAST:
            return known[0]
        return references.choose(reference, [(uuid, None) for uuid in known])

    @database.translated
    def load_plan(self, uuid: str) -> ActionPlan:
        """Return a plan, with the attempts of its runs by our engine; raises PlanNotFound.

        The names of its actions are unique beginnings of their uuids. Raises InvalidPlan as well.
        """
        plan = super().load_plan(uuid) if self._is_ours else self._without_our_tables(uuid)
        uuids = sorted(action.uuid for action in plan.actions)
        names = dict(zip(uuids, references.beginnings(uuids), strict=True))
        return replace(plan, actions=tuple(replace(a, name=names[a.uuid]) for a in plan.actions))

    def _without_our_tables(self, uuid: str) -> ActionPlan:
        with database.reading() as connection:
            row = claims.plan_row(connection, uuid)
            mine = (ACTIONS.c.action_plan_id == row.id, ACTIONS.c.deleted_at.is_(None))
            query = sa.select(ACTIONS).where(*mine).order_by(ACTIONS.c.id)
            rows = connection.execute(query).all()
        return plan_of(row, rows, self._types, self._limits, {})

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the process that runs a plan; None if no process of our engine does."""
        return super().claimant(uuid) if self._is_ours else None

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """Return the durations of earlier runs by our engine; nothing without its tables."""
        return super().durations(action_types, before=before, most=most) if self._is_ours else {}


@database.translated
def _has_our_tables() -> bool:
    with database.reading() as connection:
        return bool(sa.inspect(connection).has_table(VERSION_TABLE))
