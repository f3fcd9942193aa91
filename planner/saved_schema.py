# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of an action plan, format 2.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner import guards, place_rules
from planner.ranges import (
    BY_COMPOSED_NAME,
    COUNT,
    COUNT_OF_ONE_OR_MORE,
    LONGEST_COMPOSED,
    NAME,
    NAME_OR_NULL,
    SECONDS_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TIME,
    UUID,
)
from planner.states import ActionState, Outcome, PlanState, StateReason

_NAME_OF_ACTION = {"type": ["string", "null"], "maxLength": LONGEST_COMPOSED}
_UUIDS = {"type": "array", "items": UUID}


def _ends(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the schema of a list of actions, each with some of these outcomes."""
    words = {"type": "array", "minItems": 1, "items": {"enum": [str(o) for o in outcomes]}}
    return {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["action", "outcomes"],
            "additionalProperties": False,
            "properties": {"action": UUID, "outcomes": words},
        },
    }


ACTION: dict[str, Any] = {
    "type": "object",
    "required": ["uuid", "action_type"],
    "additionalProperties": False,
    "properties": {
        "uuid": UUID,
        "name": _NAME_OF_ACTION,
        "action_type": NAME,
        "resource_id": _NAME_OF_ACTION,
        "input_parameters": {"type": "object"},
        "description": TEXT_OR_NULL,
        "reason": TEXT_OR_NULL,
        "parents": {**_UUIDS, "description": "Must have ended before it starts."},
        "needs": {**_UUIDS, "description": "Must have ended well."},
        "needs_any": {
            "type": "array",
            "items": {**_UUIDS, "minItems": 1},
            "description": "Of each group one must have ended well.",
        },
        "triggers": {
            **_ends(Outcome),
            "description": "One must have ended with one of its outcomes, else it is not run.",
        },
        "blocked_by": {
            **_ends((Outcome.FAILED, Outcome.ERROR)),
            "description": "Comes before it anyhow, and must not fail in one of these ways.",
        },
        "tokens": {"type": "array", "items": NAME},
        "places": place_rules.PLACES,
        "estimate_s": SECONDS_OR_NULL,
        "timeout_s": SECONDS_OR_NULL,
        "retries": COUNT,
        "state": {"enum": [str(s) for s in ActionState]},
        "outcome": {"enum": [None, *(str(o) for o in Outcome)]},
        "state_reason": {"enum": [None, *(str(r) for r in StateReason)]},
        "status_message": TEXT_OR_NULL,
        "started_at": TIME,
        "ended_at": TIME,
        "attempts": COUNT,
    },
}

TOLERANCE: dict[str, Any] = {
    "description": "Of these nodes so many may fail before nothing new starts.",
    "type": "object",
    "required": ["name", "nodes", "failed_nodes"],
    "additionalProperties": False,
    "properties": {
        "name": TEXT,
        "nodes": {"type": "array", "items": TEXT},
        "failed_nodes": COUNT,
    },
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "action plan",
    "description": "Actions in schedule order, and what each waits for. Format 2.0.",
    "type": "object",
    "required": ["version", "uuid", "planner", "actions"],
    "additionalProperties": False,
    "properties": {
        "version": NAME,
        "uuid": UUID,
        "name": NAME_OR_NULL,
        "planner": NAME,
        "state": {"enum": [str(s) for s in PlanState]},
        "digest": NAME,
        "created_at": TIME,
        "updated_at": TIME,
        "status_message": TEXT_OR_NULL,
        "audit_uuid": NAME_OR_NULL,
        "strategy_name": NAME_OR_NULL,
        "efficacy_indicators": {"type": "array"},
        "global_efficacy": {"type": "array"},
        "limits": {
            "type": "object",
            **BY_COMPOSED_NAME,
            "additionalProperties": COUNT_OF_ONE_OR_MORE,
        },
        "places": place_rules.PLACE_RULES,
        "limits_now": {
            "type": "object",
            "description": "What was set for the run under way when this copy was shown; ignored.",
        },
        "tolerances": {"type": "array", "items": TOLERANCE},
        "on_failure": {"enum": [None, "skip_descendants", "pause", "continue"]},
        "cloud": {**NAME_OR_NULL, "description": "The cloud that it was made for."},
        "facts_at": {**TIME, "description": "When the facts were read that it was made of."},
        "start_at": {**TIME, "description": "When a PENDING plan starts at the earliest."},
        "guards": guards.SCHEMA_OF_A_PLAN,
        "warnings": {"type": "array", "items": TEXT},
        "actions": {"type": "array", "items": ACTION},
    },
}
