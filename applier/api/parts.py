# SPDX-License-Identifier: Apache-2.0
"""The parts that the resources of the API share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import falcon

from applier.api.caller import Caller
from applier.api.policies import Policy
from applier.assembly import Assembly
from applier.operations import Operator


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What resources need: the parts of the configuration, and the policy.

    ``ending`` is set when the service ends, so that nobody is waited for any more.
    """

    assembly: Assembly
    policy: Policy
    ending: threading.Event = field(default_factory=threading.Event)


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
