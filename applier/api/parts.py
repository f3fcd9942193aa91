# SPDX-License-Identifier: Apache-2.0
"""The objects that the resources of the API share, and the caller of a request as an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import falcon

from applier.api.caller import Caller
from applier.api.policies import Policy
from applier.api.words_of_requests import of_api
from applier.assembly import Assembly
from applier.operations import Operator


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The objects that every resource uses: the assembly of the configuration, and the policy.

    ``of_runs`` returns the metrics of the process that runs plans, in the text format of
    Prometheus. It is None unless that process and the API are one service.
    """

    assembly: Assembly
    policy: Policy
    of_runs: Callable[[], bytes] | None = None


def caller_of(request: falcon.Request) -> Caller:
    """Return the authenticated caller of a request; there is none for a public path."""
    caller: Caller = request.context.caller
    return caller


def operator_of(request: falcon.Request, told: list[str]) -> Operator:
    """Return the caller of a request as the operator of an operation.

    Each message of the operation is appended to ``told``. With an idempotency key, its
    change happens once.
    """
    caller = caller_of(request)

    def say(text: str) -> None:
        told.append(of_api(text))

    return Operator(
        name=caller.user,
        say=say,
        note=say,
        project=caller.project,
        address=caller.address,
        request_id=caller.request_id,
        once=getattr(request.context, "once", None),
    )
