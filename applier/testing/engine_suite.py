# SPDX-License-Identifier: Apache-2.0
"""The contract of workflow engines, as tests that any project can run on its own engine.

In a test module, with pytest::

    from applier.testing.engine_suite import EngineContract

    class TestMyEngine(EngineContract):
        def make_engine(self, max_workers):
            return MyEngine(max_workers=max_workers)
"""

from __future__ import annotations

from applier.testing.engine_checks.concurrency_checks import EngineConcurrencyChecks
from applier.testing.engine_checks.failure_checks import FailureChecks
from applier.testing.engine_checks.operator_request_checks import OperatorRequestChecks


class EngineContract(EngineConcurrencyChecks, FailureChecks, OperatorRequestChecks):
    """Tests of the engine that ``make_engine`` returns."""
