# SPDX-License-Identifier: Apache-2.0
"""Applier services, and workers on other machines."""

from __future__ import annotations

from typing import Any

from applier.api.endpoints import Call
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation
from applier.operations import services as registered


@Operation("GET /v2/services", "service:read", "services.list", schemas.list_of(schemas.SERVICE))
def services(call: Call) -> dict[str, Any]:
    """List the applier services that use this record, latest heartbeat first."""
    found = call.store.services()
    return {"items": [schemas.as_json(one) for one in found]}


@Operation("GET /v2/workers", "service:read", "workers.list", schemas.list_of(schemas.WORKER))
def workers(call: Call) -> dict[str, Any]:
    """List the workers that use this record, by name; silent_s is how many seconds ago each was
    heard of.
    """
    return {"items": [schemas.as_json(worker) for worker in call.store.workers()]}


@Operation(
    "POST /v2/workers/{worker}/drain",
    "worker:drain",
    "workers.drain",
    body=schemas.mapping({}),
    answer=schemas.record("drained_worker", worker=schemas.WORKER, messages=[str]),
)
def drain(call: Call) -> dict[str, Any]:
    """Tell a worker to take no more jobs; it ends when it has none. A repeated request changes
    nothing.
    """
    found = registered.drain(call.assembly, call.operator, call.names["worker"])
    return {"worker": schemas.as_json(found), "messages": call.told}
