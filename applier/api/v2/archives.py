# SPDX-License-Identifier: Apache-2.0
"""Export and import of plans and durations for other databases, and deletion of old plans."""

from __future__ import annotations

from collections.abc import Mapping

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v2 import schemas
from applier.api.v2.idempotency import once
from applier.api.v2.operation import Operation, Resource, document_in
from applier.api.v2.plans import require_allowed
from applier.api.v2.request_times import moment
from applier.api.v2.shown_plan import show_new
from applier.operations import archiving, durations, removal
from planner.errors import InvalidInput, Mistake
from planner.model import ActionPlan

_RULE = "record:administer"
_COUNT: schemas.Schema = {"type": "integer", "minimum": 0}
_DURATION = schemas.mapping(
    {
        "action_type": schemas.TEXT,
        "size": schemas.TEXT_OR_NONE,
        "node": schemas.TEXT_OR_NONE,
        "samples": _COUNT,
        "imported": _COUNT,
        "median_s": schemas.NUMBER,
        "nine_in_ten_s": schemas.NUMBER,
    }
)
#: The number of deleted plans after which a purge begins no further transaction, and answers.
PURGED = 1000


class ExportV2(Resource):
    """A plan with its attempts, requests and history, as a document."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule=_RULE,
            summary="Return a plan that nobody runs with its attempts, requests, history and all "
            "parameters, for POST /v2/imports elsewhere.",
            answer={"type": "object"},
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Export a plan."""
        self.query(request)
        store = self._parts.assembly.store
        response.media = archiving.exported(store, store.find_plan(plan))


class ImportsV2(Resource):
    """The plans that are imported from other databases."""

    OPERATIONS: Mapping[str, Operation] = {
        "POST": Operation(
            rule=_RULE,
            summary="Import a plan that was exported, with its attempts, requests and history.",
            takes_document=True,
            idempotency_key=True,
            status=201,
            answer=schemas.PLAN,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Import a plan."""
        self.query(request)

        def require(plan: ActionPlan) -> None:
            require_allowed(self._parts, request, plan)

        store, document = self._parts.assembly.store, document_in(request)
        made = archiving.import_from(store, document, operator_of(request, []), require)
        show_new(self._parts, request, response, made)


class DurationsV2(Resource):
    """How long actions took."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="List how long actions took, by type, size and node: what forecasts expect.",
            answer=schemas.list_of("durations", _DURATION),
        ),
        "POST": Operation(
            rule=_RULE,
            summary="Let forecasts use durations of another record. They replace those imported "
            "before for the same action types.",
            takes_document=True,
            idempotency_key=True,
            answer=schemas.mapping({"messages": schemas.LINES}),
        ),
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List durations."""
        self.query(request)
        assembly = self._parts.assembly
        found = durations.listed(assembly.store, list(assembly.action_types))
        response.media = {"durations": [known._asdict() for known in found]}

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Import durations."""
        self.query(request)
        told, document = list[str](), document_in(request)
        store = self._parts.assembly.store
        durations.import_from(store, document, operator_of(request, told))
        response.media = {"messages": told}


class DurationsExportV2(Resource):
    """The durations that were measured in this database, without imported ones."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Return the durations that were measured here, for POST /v2/durations "
            "elsewhere.",
            answer=durations.SCHEMA,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Export durations."""
        self.query(request)
        assembly = self._parts.assembly
        response.media = durations.exported(assembly.store, list(assembly.action_types))


class PurgeV2(Resource):
    """The removal of old plans for good."""

    OPERATIONS: Mapping[str, Operation] = {
        "POST": Operation(
            rule=_RULE,
            summary="Delete for good the plans that ended or were removed before a time, oldest "
            f"first. After about {PURGED} plans it answers that there are more.",
            body=schemas.mapping({"before": schemas.TIME}),
            idempotency_key=True,
            answer=schemas.mapping({"more": schemas.FLAG, "messages": schemas.LINES}),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Delete plans; raises InvalidInput for a time without an offset."""
        self.query(request)
        told = list[str]()
        try:
            before = moment(self.body(request)["before"])
        except ValueError as reason:
            raise InvalidInput([Mistake(str(reason), ("before",))]) from reason
        assembly = self._parts.assembly
        more = not removal.purge(assembly, operator_of(request, told), before, most=PURGED)
        response.media = {"more": more, "messages": told}
