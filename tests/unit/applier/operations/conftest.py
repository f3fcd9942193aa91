# SPDX-License-Identifier: Apache-2.0
"""A record, and an operator who remembers what was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from sample_plans import new_plan
from store_checks.running_plans import NOW
from temporary_store import TemporaryStore

from applier.actions.markers import Nop
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import Claimant
from applier.guarding.guard import Guard
from applier.operations import Operator
from applier.run.this_process import this_host
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState


class Site:
    """One record, with what the operations need of an assembly."""

    def __init__(self, store: SqlStore, cloud: SimulatedCloud) -> None:
        self.store, self.told, self.noted = store, [], []
        self.plugins: Mapping[str, Any] = {"nop": Nop}
        self.operator = Operator(name="ada", say=self.told.append, note=self.noted.append)
        self.assembly: Any = SimpleNamespace(
            store=store,
            plugins=self.plugins,
            cloud=lambda: cloud,
            facts=cloud.facts,
            guard=Guard(),
            require_allowed=self._require_allowed,
        )

    def _require_allowed(self, plan: ActionPlan) -> None:
        self.assembly.guard.require(plan, self.store.approvals, datetime.now(UTC))

    def saved(self, *names: str, state: PlanState = PlanState.RECOMMENDED) -> ActionPlan:
        """Save a plan of no-ops in a state."""
        plan = new_plan(*names, state=state)
        self.store.save_plan(plan)
        return self.store.load_plan(plan.uuid)

    def claimed(self, *names: str, pid: int | None = None) -> tuple[ActionPlan, str]:
        """Save a plan that somebody on another host runs, or a process of this host."""
        plan = self.saved(*names, state=PlanState.PENDING)
        host = "elsewhere" if pid is None else this_host()
        claim = self.store.claim_plan(
            plan.uuid, Claimant(host=host, pid=pid or 7, user="eve"), now=NOW
        )
        return self.store.load_plan(plan.uuid), claim

    def now(self, plan: ActionPlan) -> ActionPlan:
        """Return a plan as it is in the record."""
        return self.store.load_plan(plan.uuid)


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    with closing(TemporaryStore()) as store:
        yield Site(store, SimulatedCloud(tmp_path / "cloud.json", speed=1000))
