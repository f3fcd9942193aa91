# SPDX-License-Identifier: Apache-2.0
"""The contract of workflow engines, as tests: classes for the modules ``test_engines.py``."""

from __future__ import annotations

from engine_checks.concurrency_checks import EngineConcurrencyChecks
from engine_checks.failure_checks import FailureChecks
from engine_checks.operator_request_checks import OperatorRequestChecks


class EngineContract(EngineConcurrencyChecks, FailureChecks, OperatorRequestChecks):
    """Tests of the engine that ``make_engine`` returns."""
