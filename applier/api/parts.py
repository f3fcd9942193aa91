# SPDX-License-Identifier: Apache-2.0
"""The parts that the resources of the API share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import falcon

from applier.api.caller import Caller
from applier.api.policies import Policy
from applier.assembly import Assembly
from applier.operations import Operator


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What resources need: the parts of the configuration, and the policy.

    ``of_runs`` returns the metrics of the runs, if their process is at hand.
    """

    assembly: Assembly
    policy: Policy
    of_runs: Callable[[], bytes] | None = None


def caller_of(request: falcon.Request) -> Caller:
    """Return who sends a request."""
    caller: Caller = request.context.caller
    return caller


def operator_of(request: falcon.Request, told: list[str]) -> Operator:
    """Return the operator for whom an operation is done; ``told`` gets what it tells."""
    caller = caller_of(request)
    return Operator(
        name=caller.user,
        say=told.append,
        note=told.append,
        project=caller.project,
        address=caller.address,
        request_id=caller.request_id,
    )
