# SPDX-License-Identifier: Apache-2.0
"""Watcher's plans for the views: found by a beginning of their uuid, and only read."""

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
    """Watcher's plans, also where no plan has been run by our engine, whose tables are missing."""

    def __init__(self, types: Mapping[str, type[ActionPlugin]], limits: Mapping[str, int]) -> None:
        super().__init__(types, limits)
        self._is_ours = _has_our_tables()

    @database.translated
    def find_plan(self, reference: str) -> str:
        """Return the uuid of a plan, given that, a beginning of it, or ``last``.

        Raises PlanNotFound if several match, ApplierError if none does.
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
        """Return a plan, with what our tables tell of its run.

        Its actions are named by the beginnings of their uuids.
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
        """Return who runs a plan, None if that is Watcher's own engine, or nobody."""
        return super().claimant(uuid) if self._is_ours else None

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """Return the durations of earlier runs by our engine."""
        return super().durations(action_types, before=before, most=most) if self._is_ours else {}


@database.translated
def _has_our_tables() -> bool:
    with database.reading() as connection:
        return bool(sa.inspect(connection).has_table(VERSION_TABLE))
