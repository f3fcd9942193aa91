# SPDX-License-Identifier: Apache-2.0
"""The record as a whole: exports, imports, durations, purge."""

from __future__ import annotations

from typing import Any

from applier.api.endpoints import Call
from applier.api.v2 import schemas
from applier.api.v2.answers import show_new
from applier.api.v2.operation import Operation, moment
from applier.api.v2.plans import require_allowed
from applier.operations import export_import, removal
from applier.operations import measured_durations as recorded

_RULE = "record:administer"


#: The number of deleted plans after which a purge begins no further transaction, and answers.
PURGED = 1000


@Operation("GET /v2/plans/{plan}/export", _RULE, "plans.export", {"type": "object"})
def exported_plan(call: Call) -> Any:
    """Return a plan that nobody runs with its attempts, requests, history and all parameters, for
    POST /v2/imports elsewhere.
    """
    return export_import.exported(call.assembly, call.names["plan"])


@Operation(
    "POST /v2/imports", _RULE, "plans.import", takes_document=True, status=201, answer=schemas.PLAN
)
def imported_plan(call: Call) -> None:
    """Import a plan that was exported, with its attempts, requests and history."""
    made = export_import.import_from(
        call.assembly, call.operator, call.document, lambda plan: require_allowed(call, plan)
    )
    show_new(call, made)


@Operation("GET /v2/durations", "plan:read", "durations.list", schemas.list_of(schemas.DURATION))
def durations(call: Call) -> dict[str, Any]:
    """List how long actions took, by type, size and node: what forecasts expect."""
    return {"items": [known._asdict() for known in recorded.listed(call.assembly)]}


@Operation(
    "POST /v2/durations",
    _RULE,
    "durations.import",
    takes_document=True,
    answer=schemas.TOLD,
)
def imported_durations(call: Call) -> dict[str, Any]:
    """Let forecasts use durations of another record. They replace those imported before for the
    same action types.
    """
    recorded.import_from(call.assembly, call.operator, call.document)
    return {"messages": call.told}


@Operation("GET /v2/durations/export", "plan:read", "durations.export", recorded.SCHEMA)
def exported_durations(call: Call) -> Any:
    """Return the durations that were measured here, for POST /v2/durations elsewhere."""
    return recorded.exported(call.assembly)


@Operation(
    "POST /v2/purge",
    _RULE,
    "plans.purge",
    body=schemas.record("purge_before", before=schemas.TIME),
    answer=schemas.record("purged", more=bool, messages=[str]),
)
def purge(call: Call) -> dict[str, Any]:
    """Delete for good the plans that ended or were removed before a time, oldest first. After about
    1000 plans it answers that there are more.
    """
    before = moment(call.body, "before")
    done = removal.purge(call.assembly, call.operator, before, most=PURGED)
    return {"more": not done, "messages": call.told}
