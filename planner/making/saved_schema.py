# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of an action plan, format 2.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner import guards
from planner.plan import place_rules
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from planner.schemas import ranges

_NAME_OF_ACTION = {"type": ["string", "null"], "maxLength": ranges.LONGEST_COMPOSED}
_UUIDS = {"type": "array", "items": ranges.UUID}


def _ends(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the schema of a list of actions, each with some of these outcomes."""
    words = {"type": "array", "minItems": 1, "items": {"enum": [str(o) for o in outcomes]}}
    return {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["action", "outcomes"],
            "additionalProperties": False,
            "properties": {"action": ranges.UUID, "outcomes": words},
        },
    }


ACTION: dict[str, Any] = {
    "type": "object",
    "required": ["uuid", "action_type"],
    "additionalProperties": False,
    "properties": {
        "uuid": ranges.UUID,
        "name": _NAME_OF_ACTION,
        "action_type": ranges.NAME,
        "resource_id": _NAME_OF_ACTION,
        "input_parameters": {"type": "object"},
        "description": ranges.TEXT_OR_NULL,
        "reason": ranges.TEXT_OR_NULL,
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
        "tokens": {"type": "array", "items": ranges.NAME},
        "places": place_rules.PLACES,
        "estimate_s": ranges.SECONDS_OR_NULL,
        "timeout_s": ranges.SECONDS_OR_NULL,
        "retries": ranges.COUNT,
        "state": {"enum": [str(s) for s in ActionState]},
        "outcome": {"enum": [None, *(str(o) for o in Outcome)]},
        "state_reason": {"enum": [None, *(str(r) for r in StateReason)]},
        "status_message": ranges.TEXT_OR_NULL,
        "started_at": ranges.TIME,
        "ended_at": ranges.TIME,
        "attempts": ranges.COUNT,
    },
}

TOLERANCE: dict[str, Any] = {
    "description": "Of these nodes so many may fail before nothing new starts.",
    "type": "object",
    "required": ["name", "nodes", "failed_nodes"],
    "additionalProperties": False,
    "properties": {
        "name": ranges.TEXT,
        "nodes": {"type": "array", "items": ranges.TEXT},
        "failed_nodes": ranges.COUNT,
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
        "version": ranges.NAME,
        "uuid": ranges.UUID,
        "name": ranges.NAME_OR_NULL,
        "planner": ranges.NAME,
        "state": {"enum": [str(s) for s in PlanState]},
        "digest": ranges.NAME,
        "created_at": ranges.TIME,
        "updated_at": ranges.TIME,
        "status_message": ranges.TEXT_OR_NULL,
        "audit_uuid": ranges.NAME_OR_NULL,
        "strategy_name": ranges.NAME_OR_NULL,
        "efficacy_indicators": {"type": "array"},
        "global_efficacy": {"type": "array"},
        "limits": {
            "type": "object",
            **ranges.BY_COMPOSED_NAME,
            "additionalProperties": ranges.COUNT_OF_ONE_OR_MORE,
        },
        "places": place_rules.PLACE_RULES,
        "limits_now": {
            "type": "object",
            "description": "What was set for the run under way when this copy was shown; ignored.",
        },
        "tolerances": {"type": "array", "items": TOLERANCE},
        "on_failure": {
            "enum": [None, "skip_descendants", "pause", "continue", "only_after_failure"]
        },
        "cloud": {**ranges.NAME_OR_NULL, "description": "The cloud that it was made for."},
        "facts_at": {**ranges.TIME, "description": "When the facts were read that it was made of."},
        "start_at": {**ranges.TIME, "description": "When a PENDING plan starts at the earliest."},
        "guards": guards.SCHEMA_OF_A_PLAN,
        "warnings": {"type": "array", "items": ranges.TEXT},
        "actions": {"type": "array", "items": ACTION},
    },
}
