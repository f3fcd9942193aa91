# SPDX-License-Identifier: Apache-2.0
"""``/v2/plans/ID/actions``: actions, their attempts and output, and why they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.operations import explanation, hidden_values, lookup
from applier.store import Attempt
from planner.errors import InvalidInput, Mistake

_WITH_ATTEMPTS = {
    "allOf": [schemas.ACTION],
    "properties": {
        "output": schemas.TEXT_OR_NONE,
        "attempts_made": {"type": "array", "items": schemas.ATTEMPT},
        "damaged": schemas.LINES,
    },
}


class ActionsV2(Resource):
    """The actions of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="List the actions of a plan in schedule order.",
            query={
                "state": schemas.ACTION_STATE,
                "action_type": schemas.TEXT,
                "limit": schemas.LIMIT,
                "after": schemas.TEXT,
            },
            answer=schemas.list_of("actions", schemas.ACTION),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """List actions; ``after`` is the uuid of the last one of the page before."""
        query = self.query(request)
        found = lookup.find_plan(self._parts.assembly.store, plan)
        members = list(found.actions)
        if "after" in query:
            places = [i for i, a in enumerate(members) if a.uuid == query["after"]]
            if not places:
                text = f"plan {found.uuid[:8]} has no action {query['after']!r}"
                raise InvalidInput([Mistake(text, place="query after")])
            members = members[places[0] + 1 :]
        wanted = [
            action
            for action in members
            if query.get("state") in (None, str(action.state))
            and query.get("action_type") in (None, action.action_type)
        ]
        page = wanted[: query.get("limit", 1000)]
        types = self._parts.assembly.action_types
        answer: dict[str, Any] = {
            "actions": [hidden_values.action_without(a, types).to_dict() for a in page]
        }
        if len(page) < len(wanted):
            parameters = {**query, "after": page[-1].uuid}
            answer["next"] = request.prefix + request.path + falcon.to_query_str(parameters)
        response.media = answer


class ActionV2(Resource):
    """One action."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Show an action with its output and every attempt.",
            answer=_WITH_ATTEMPTS,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(
        self, request: falcon.Request, response: falcon.Response, plan: str, action: str
    ) -> None:
        """Show an action."""
        self.query(request)
        store = self._parts.assembly.store
        found = lookup.find_plan(store, plan)
        one = lookup.find_action(found, action)
        shown = hidden_values.action_without(one, self._parts.assembly.action_types)
        attempts, damaged = schemas.readable(lambda: store.attempts(found.uuid, one.uuid))
        response.media = {
            **shown.to_dict(),
            "output": None if damaged else store.output(found.uuid, one.uuid),
            "attempts_made": [attempt_of(attempt) for attempt in attempts],
            **damaged,
        }


class OutputV2(Resource):
    """The output of an action."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Return the output of the last attempt, or the last 64 KiB of it.",
            media="text/plain",
            answer=schemas.TEXT,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(
        self, request: falcon.Request, response: falcon.Response, plan: str, action: str
    ) -> None:
        """Return the output."""
        self.query(request)
        store = self._parts.assembly.store
        found = lookup.find_plan(store, plan)
        one = lookup.find_action(found, action)
        response.content_type = "text/plain; charset=utf-8"
        response.text = store.output(found.uuid, one.uuid) or ""


class WhyV2(Resource):
    """The reason why an action waits, or did not run."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Explain when an action starts, what it waits for, or why it did not run.",
            query={"max_workers": schemas.WHOLE},
            answer=schemas.mapping({"lines": schemas.LINES}),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(
        self, request: falcon.Request, response: falcon.Response, plan: str, action: str
    ) -> None:
        """Explain an action."""
        query = self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        one = lookup.find_action(found, action)
        workers = query.get("max_workers") or assembly.max_workers
        window = assembly.waits_for(found)(one)
        lines = explanation.explained(assembly, found, one, workers, window)
        response.media = {"lines": lines}


def attempt_of(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as JSON types."""
    return {
        "number": attempt.number,
        "state": str(attempt.state) if attempt.state else None,
        "outcome": str(attempt.outcome) if attempt.outcome else None,
        "started_at": attempt.started_at.isoformat(),
        "ended_at": attempt.ended_at.isoformat() if attempt.ended_at else None,
        "message": attempt.message,
        "output": attempt.output,
    }
