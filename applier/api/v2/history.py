# SPDX-License-Identifier: Apache-2.0
"""``/v2/history``: who changed plans, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.contracts import HistoryEntry

#: How many entries are listed if the query has no ``limit``.
LISTED = 100
ENTRY = schemas.mapping(
    {
        "number": {"type": "integer"},
        "at": schemas.MOMENT,
        "plan": schemas.TEXT,
        "verb": schemas.TEXT,
        "action": schemas.TEXT_OR_NONE,
        "who": schemas.TEXT,
        "project": schemas.TEXT_OR_NONE,
        "address": schemas.TEXT_OR_NONE,
        "request_id": schemas.TEXT_OR_NONE,
        "why": schemas.TEXT_OR_NONE,
    }
)


class HistoryV2(Resource):
    """The changes of all plans, or of one."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="List who changed plans, when and why: the latest changes, oldest first.",
            query={
                "after": {"type": "integer", "minimum": 0, "maximum": schemas.WHOLE["maximum"]},
                "limit": schemas.LIMIT,
            },
            answer=schemas.list_of("history", ENTRY),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(
        self, request: falcon.Request, response: falcon.Response, plan: str | None = None
    ) -> None:
        """List changes."""
        query = self.query(request)
        store = self._parts.assembly.store
        uuid = store.find_plan(plan) if plan else None
        limit = query.get("limit", LISTED)
        found, damaged = schemas.readable(
            lambda: store.history(uuid, after=query.get("after", 0), limit=limit)
        )
        response.media = {"history": [_entry(entry) for entry in found], **damaged}


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in ENTRY["properties"]}
    return {**values, "at": entry.at.isoformat()}
