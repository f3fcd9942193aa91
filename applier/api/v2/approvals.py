# SPDX-License-Identifier: Apache-2.0
"""``/v2/plans/ID/approvals``: which approvals a plan needs and has."""

from __future__ import annotations

from collections.abc import Mapping

import falcon

from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.api.words_of_requests import of_api
from applier.operations import approving, lookup

_APPROVAL = schemas.mapping(
    {
        "who": schemas.TEXT,
        "at": schemas.TIME,
        "why": schemas.TEXT_OR_NONE,
        "project": schemas.TEXT_OR_NONE,
        "counts": schemas.FLAG,
    }
)
_APPROVALS = schemas.mapping(
    {
        "needed": {"type": "integer", "minimum": 0},
        "by_another": schemas.FLAG,
        "max_age_s": {"type": ["number", "null"]},
        "missing": schemas.TEXT_OR_NONE,
        "approvals": {"type": "array", "items": _APPROVAL},
    },
    damaged=schemas.LINES,
)


class ApprovalsV2(Resource):
    """The approvals of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Show which approvals a plan needs, who approved it, and what is missing.",
            answer=_APPROVALS,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Show the approvals."""
        self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        shown = approving.as_dict(assembly, found)
        missing = shown["missing"]
        response.media = {**shown, "missing": missing and of_api(missing)}
