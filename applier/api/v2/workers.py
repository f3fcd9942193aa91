# SPDX-License-Identifier: Apache-2.0
"""``/v2/workers``: the workers on other machines, and how one is drained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v2 import schemas
from applier.api.v2.idempotency import once
from applier.api.v2.operation import Operation, Resource
from applier.operations import workers
from applier.store.worker_jobs import Worker

_COUNT: schemas.Schema = {"type": "integer", "minimum": 0}
WORKER = schemas.mapping(
    {
        "name": schemas.TEXT,
        "host": schemas.TEXT,
        "pid": {"type": "integer"},
        "user": schemas.TEXT,
        "version": schemas.TEXT,
        "cloud": schemas.TEXT_OR_NONE,
        "queues": schemas.LINES,
        "types": schemas.LINES,
        "places": _COUNT,
        "running": _COUNT,
        "draining": schemas.FLAG,
        "started_at": schemas.MOMENT,
        "silent_s": schemas.NUMBER,
    }
)


class RegisteredWorkersV2(Resource):
    """The workers that are registered in the database."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="service:read",
            summary="List the workers that use this record, by name; silent_s is how many seconds "
            "ago each was heard of.",
            answer=schemas.list_of("workers", WORKER),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List workers."""
        self.query(request)
        found, damaged = schemas.readable(self._parts.assembly.store.workers)
        response.media = {"workers": [_of(worker) for worker in found], **damaged}


class DrainedWorkerV2(Resource):
    """A worker that is to take no more jobs."""

    OPERATIONS: Mapping[str, Operation] = {
        "POST": Operation(
            rule="worker:drain",
            summary="Tell a worker to take no more jobs; it ends when it has none. A repeated "
            "request changes nothing.",
            body=schemas.mapping({}),
            idempotency_key=True,
            answer=schemas.mapping({"worker": WORKER, "messages": schemas.LINES}),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response, worker: str) -> None:
        """Set the worker to take no more jobs, and return at once; raises WorkerNotFound."""
        self.query(request)
        self.body(request)
        told, store = list[str](), self._parts.assembly.store
        found = workers.drain(store, operator_of(request, told), worker)
        response.media = {"worker": _of(found), "messages": told}


def _of(worker: Worker) -> dict[str, Any]:
    started_at = worker.started_at
    return {
        **worker._asdict(),
        "started_at": None if started_at is None else started_at.isoformat(),
    }
