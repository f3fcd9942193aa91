# SPDX-License-Identifier: Apache-2.0
"""A strategy of Watcher with ActionPlan as its planner."""

from watcher.decision_engine.strategy.strategies import host_maintenance


class HostMaintenance(host_maintenance.HostMaintenance):
    """Watcher's strategy, planned by ActionPlan."""

    def __init__(self, config, osc=None):
        super().__init__(config, osc)
        self.planner = "actionplan"

    @classmethod
    def get_name(cls):
        return "planned_host_maintenance"
