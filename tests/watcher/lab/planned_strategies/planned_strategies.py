# SPDX-License-Identifier: Apache-2.0
"""Strategies of Watcher with our planner: the distribution ``planned_strategies``.

Each is called ``planned_NAME``, and writes its solution to NAME.json in the folder that the
environment variable ``LAB_SOLUTIONS`` names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from watcher.decision_engine.strategy.strategies import (
    host_maintenance,
    storage_capacity_balance,
    vm_workload_consolidation,
    zone_migration,
)


class _Planned:
    """What is added to a strategy of Watcher."""

    def __init__(self, config, osc=None):
        super().__init__(config, osc)
        self.planner = "actionplan"

    @classmethod
    def get_name(cls):
        return f"planned_{super().get_name()}"

    def post_execute(self):
        super().post_execute()
        name = self.get_name().removeprefix("planned_")
        path = Path(os.environ["LAB_SOLUTIONS"], f"{name}.json")
        path.write_text(json.dumps(self.solution.actions), encoding="utf-8")


class HostMaintenance(_Planned, host_maintenance.HostMaintenance):
    """Empties a host."""


class StorageCapacityBalance(_Planned, storage_capacity_balance.StorageCapacityBalance):
    """Moves volumes off pools that are full."""


class VMWorkloadConsolidation(_Planned, vm_workload_consolidation.VMWorkloadConsolidation):
    """Moves servers onto few hosts."""


class ZoneMigration(_Planned, zone_migration.ZoneMigration):
    """Moves all servers and volumes of hosts and pools."""
