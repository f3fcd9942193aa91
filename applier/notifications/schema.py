# SPDX-License-Identifier: Apache-2.0
"""The events of plans: their JSON Schema, how they are made, and how they are written as lines.

Fields may be added within a version; readers ignore those that they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TextIO

from applier.contracts import Approval, HistoryEntry, Report
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, StateReason

VERSION = "1.0"
#: The types of events: a plan, or an action of it, has entered a state; an entry was written into
#: the history of a plan, because somebody changed it or made a request; somebody approved it.
PLAN_STATE, ACTION_STATE, PLAN_HISTORY = "plan.state", "action.state", "plan.history"
PLAN_APPROVED = "plan.approved"

Event = Mapping[str, Any]


def _words(words: Any, *, none: bool = False) -> dict[str, Any]:
    return {"enum": [*map(str, words), *([None] if none else [])]}


def _mapping(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT, _TEXT_OR_NONE = {"type": "string"}, {"type": ["string", "null"]}
_HEAD: dict[str, Any] = {
    "version": {"const": VERSION},
    # Events have numbers from 1 on; 0 is that of a state that was entered before any event.
    "number": {"type": "integer", "minimum": 0},
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
        _mapping(
            **_HEAD,
            type={"const": PLAN_HISTORY},
            data=_mapping(
                verb=_TEXT,
                who=_TEXT,
                project=_TEXT_OR_NONE,
                action=_TEXT_OR_NONE,
                why=_TEXT_OR_NONE,
            ),
        ),
        _mapping(
            **_HEAD,
            type={"const": PLAN_APPROVED},
            data=_mapping(who=_TEXT, project=_TEXT_OR_NONE, why=_TEXT_OR_NONE, content=_TEXT),
        ),
    ],
}


#: The schemas of the fields of ``data``, by type of event.
_DATA: Mapping[str, Mapping[str, Any]] = {
    one["properties"]["type"]["const"]: one["properties"]["data"]["properties"]
    for one in SCHEMA["oneOf"]
}


def require_form(event: Any) -> None:
    """Raise ValueError for an event that has not the form of its type.

    Additional fields, unknown types, and missing fields that may be null are accepted.

    >>> require_form({"number": 1, "at": "", "plan": "p", "type": "plan.state", "data": {}})
    Traceback (most recent call last):
    ValueError: its state None has another form than expected
    """
    if not isinstance(event, Mapping) or type(event.get("number")) is not int:
        raise ValueError("it is not an event with a number")
    for name in ("at", "plan", "type"):
        if not isinstance(event.get(name), str):
            raise ValueError(f"its {name} is not a text")
    data = event.get("data")
    if not isinstance(data, Mapping):
        raise ValueError("its data are not a mapping")
    for name, form in _DATA.get(event["type"], {}).items():
        value = data.get(name)
        accepted = form.get("enum", [value] if isinstance(value, str) else [])
        if value not in accepted and not (value is None and "null" in form.get("type", ())):
            raise ValueError(f"its {name} {value!r:.60} has another form than expected")


def of_plan(
    plan: str, state: PlanState, message: str | None, *, number: int, at: datetime
) -> Event:
    """Return the event of a plan that has entered a state."""
    return event(PLAN_STATE, plan, number=number, at=at, data=plan_data(state, message))


def of_report(plan: str, action: Action, report: Report, *, number: int, at: datetime) -> Event:
    """Return the event of an action that has entered a state. Its output is not in it."""
    data = {"name": action.label, "action_type": action.action_type, "old": str(report.old)}
    data |= report_data(report)
    return event(ACTION_STATE, plan, number=number, at=at, data=data, action=action.uuid)


def event(
    kind: str,
    plan: str,
    *,
    number: int,
    at: datetime,
    data: Mapping[str, Any],
    action: str | None = None,
) -> Event:
    """Return an event of a type with its data; ``action`` is the uuid of the action it is about."""
    head: dict[str, Any] = {"version": VERSION, "type": kind, "number": number}
    head |= {"at": at.isoformat(), "plan": plan}
    return {**head, **({"action": action} if action else {}), "data": data}


def plan_data(state: PlanState, message: str | None) -> dict[str, Any]:
    """Return the data of the event of a plan."""
    return {"state": str(state), "message": message}


def report_data(report: Report) -> dict[str, Any]:
    """Return the data of the event of an action, without the fields that come from the plan."""
    return {
        "state": str(report.state),
        "outcome": None if report.outcome is None else str(report.outcome),
        "reason": None if report.state_reason is None else str(report.state_reason),
        "message": report.message,
    }


def data_of(kind: str, told: Approval | HistoryEntry) -> dict[str, Any]:
    """Return the data of the event of an approval, or of an entry in the history."""
    return {name: getattr(told, name) for name in _DATA[kind]}


class EventLines:
    """A listener of a run that writes a line for each event, once its change is committed.

    Joins do nothing, and have no events. If the stream fails, ``tell`` is called once with the
    reason, nothing more is written, and the run continues.
    """

    def __init__(
        self,
        plan: ActionPlan,
        stream: TextIO,
        *,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
    ) -> None:
        self._plan = plan.uuid
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._stream, self._clock, self._tell = stream, clock, tell
        self._number, self._works = 0, True

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Write a line for each report."""
        at = self._clock()
        known = ((self._actions[r.uuid], r) for r in reports if r.uuid in self._actions)
        self._write(
            of_report(self._plan, action, report, number=self._next(), at=at)
            for action, report in known
        )

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Write a line for the new state of the plan."""
        at = self._clock()
        self._write([of_plan(self._plan, state, message, number=self._next(), at=at)])

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _write(self, events: Iterable[Event]) -> None:
        if not self._works:
            return
        try:
            self._stream.writelines(f"{line(event)}\n" for event in events)
            self._stream.flush()
        except (OSError, ValueError) as reason:
            self._works = False
            why = reason.strerror if isinstance(reason, OSError) else reason
            self._tell(f"No more events are written: {why}")


def line(event: Event) -> str:
    r"""Return an event as a line of ASCII without control characters.

    >>> line({"message": "caf\u00e9\x7f"})
    '{"message":"caf\\u00e9\\u007f"}'
    """
    return json.dumps(event, separators=(",", ":")).replace("\x7f", "\\u007f")
