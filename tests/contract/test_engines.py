# SPDX-License-Identifier: Apache-2.0
"""Every workflow engine against the contract: what it does to the record, and to actions."""

from __future__ import annotations

from engine_suite import EngineContract

from applier.engines.taskflow_engine import TaskFlowEngine


class TestTaskFlowEngine(EngineContract):
    """The engine named ``taskflow``."""

    def make_engine(self, max_workers: int) -> TaskFlowEngine:
        """Return an engine that runs so many at once."""
        return TaskFlowEngine(max_workers=max_workers)
