# SPDX-License-Identifier: Apache-2.0
"""The events of a run: their version, their JSON Schema, and how they are made.

Fields may be added within a version; readers ignore those that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from applier.contracts import Report
from planner.model import Action
from planner.states import ActionState, Outcome, PlanState, StateReason

VERSION = "1.0"
#: The types of events: a plan, or an action of it, has entered a state.
PLAN_STATE, ACTION_STATE = "plan.state", "action.state"

Event = Mapping[str, Any]


def _words(words: Any, *, none: bool = False) -> dict[str, Any]:
    return {"enum": [*map(str, words), *([None] if none else [])]}


def _mapping(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT, _TEXT_OR_NONE = {"type": "string"}, {"type": ["string", "null"]}
_HEAD: dict[str, Any] = {
    "version": {"const": VERSION},
    "number": {"type": "integer", "minimum": 1},
    "at": {"type": "string", "format": "date-time"},
    "plan": _TEXT,
}
#: The schema of an event, by JSON Schema 2020-12.
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An event of a plan",
    "oneOf": [
        _mapping(
            **_HEAD,
            type={"const": PLAN_STATE},
            data=_mapping(state=_words(PlanState), message=_TEXT_OR_NONE),
        ),
        _mapping(
            **_HEAD,
            type={"const": ACTION_STATE},
            action=_TEXT,
            data=_mapping(
                name=_TEXT,
                action_type=_TEXT,
                old=_words(ActionState),
                state=_words(ActionState),
                outcome=_words(Outcome, none=True),
                reason=_words(StateReason, none=True),
                message=_TEXT_OR_NONE,
            ),
        ),
    ],
}


def of_plan(
    plan: str, state: PlanState, message: str | None, *, number: int, at: datetime
) -> Event:
    """Return the event of a plan that has entered a state."""
    data = {"state": str(state), "message": message}
    return {**_head(PLAN_STATE, plan, number, at), "data": data}


def of_report(plan: str, action: Action, report: Report, *, number: int, at: datetime) -> Event:
    """Return the event of an action that has entered a state. Its output is not in it."""
    data = {
        "name": action.label,
        "action_type": action.action_type,
        "old": str(report.old),
        "state": str(report.state),
        "outcome": None if report.outcome is None else str(report.outcome),
        "reason": None if report.state_reason is None else str(report.state_reason),
        "message": report.message,
    }
    return {**_head(ACTION_STATE, plan, number, at), "action": action.uuid, "data": data}


def _head(kind: str, plan: str, number: int, at: datetime) -> dict[str, Any]:
    return {
        "version": VERSION,
        "type": kind,
        "number": number,
        "at": at.isoformat(),
        "plan": plan,
    }
