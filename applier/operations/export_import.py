# SPDX-License-Identifier: Apache-2.0
"""Exports and imports a plan as a document, with its attempts, history and requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from applier.assembly import Assembly
from applier.contracts import HistoryEntry, Request
from applier.errors import PlanConflict, sound_part
from applier.operations import Operator
from applier.store import Attempt
from applier.store.entries import PlanArchive
from applier.wording import count, one_line
from planner.documents import Document
from planner.errors import InvalidInput, Mistake, Path
from planner.making import saved
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState
from planner.schemas import checking, ranges
from planner.schemas.ranges import COUNT_OF_ONE_OR_MORE, NAME, TIME, UUID

#: The version of the format.
VERSION = "1"
#: The maximum number of characters of an output in an export: all that the store keeps.
_OUTPUT = 64 * 1024
#: A plan in one of these states is neither exported nor imported: it may run, or was removed.
_UNDER_WAY = frozenset(
    {PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.DELETED}
)
_TEXT = {"type": ["string", "null"]}


def _entry(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "required": list(required),
            "additionalProperties": False,
            "properties": {**required, **optional},
        },
    }


#: The format of a document.
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "exported plan",
    "type": "object",
    "required": ["version", "plan", "attempts", "history", "requests"],
    "additionalProperties": False,
    "properties": {
        "version": {"enum": [VERSION]},
        "damaged": {"type": "array", "items": {"type": "string"}},
        "plan": {key: value for key, value in saved.SCHEMA.items() if key != "$schema"},
        "attempts": _entry(
            {
                "action": UUID,
                "number": COUNT_OF_ONE_OR_MORE,
                "started_at": TIME,
                "ended_at": TIME,
                "state": {"enum": [str(state) for state in ActionState]},
            },
            outcome={"enum": [None, *(str(outcome) for outcome in Outcome)]},
            message=_TEXT,
            output=_TEXT,
            worker=_TEXT,
        ),
        "history": _entry(
            {"verb": NAME, "who": NAME, "at": TIME},
            why=_TEXT,
            action={"anyOf": [UUID, {"type": "null"}]},
            project=_TEXT,
            address=_TEXT,
            request_id=_TEXT,
        ),
        "requests": _entry(
            {"verb": NAME, "who": NAME, "created_at": TIME},
            why=_TEXT,
            action={"anyOf": [UUID, {"type": "null"}]},
            limits={"type": "object", "additionalProperties": COUNT_OF_ONE_OR_MORE},
        ),
    },
}


def exported(assembly: Assembly, reference: str) -> dict[str, Any]:
    """Return a plan with its attempts, history and requests, as JSON types.

    No parameter value is hidden. If attempts, entries or requests are damaged, they are left out,
    and ``damaged`` has a sentence about each. Raises PlanConflict for a plan that runs, is PENDING
    or DELETED.
    """
    store = assembly.store
    uuid = store.find_plan(reference)
    plan = store.load_plan(uuid)
    if plan.state in _UNDER_WAY:
        text = f"plan {uuid[:8]} is {plan.state}: only one that nobody runs can be exported"
        raise PlanConflict(uuid, plan.state, text)
    tried, damaged = sound_part(lambda: store.all_attempts(uuid, most=_OUTPUT))
    entries, damaged_entries = sound_part(lambda: store.history(uuid))
    requests, damaged_requests = sound_part(lambda: store.requests(uuid))
    left_out = [str(row) for row in (*damaged, *damaged_entries, *damaged_requests)]
    return {
        "version": VERSION,
        **({"damaged": left_out} if left_out else {}),
        "plan": plan.to_dict(),
        "attempts": [
            {"action": action, **_plain(attempt._asdict())}
            for action, attempts in tried.items()
            for attempt in attempts
        ],
        "history": [
            _plain(entry._asdict(), without=("number", "plan", "once")) for entry in entries
        ],
        "requests": [_plain(request._asdict(), without=("number",)) for request in requests],
    }


def import_from(
    assembly: Assembly,
    operator: Operator,
    document: Document,
    require_allowed: Callable[[ActionPlan], None] = lambda _: None,
) -> ActionPlan:
    """Save the plan of a document, and return it; raises InvalidInput with every mistake.

    ``require_allowed`` is called with the plan before it is saved; it raises errors to refuse it.
    Raises PlanConflict if a plan of this uuid is saved already.
    """
    archive = _read(document)
    require_allowed(archive.plan)
    number = sum(map(len, archive.attempts.values()))
    what = f"{count(number, 'attempt')} and {count(len(archive.history), 'line')} of history"
    entry = operator.entry("import", f"from {document.source}: {what}")
    assembly.store.import_plan(archive, history=entry)
    plan = archive.plan
    name = f" ({one_line(plan.name)})" if plan.name else ""
    operator.say(f"Imported plan {plan.uuid[:8]}{name}, {plan.state}, with {what}.")
    for left_out in document.value.get("damaged", ()):
        operator.note(f"Not in the file, because it was damaged: {one_line(left_out)}")
    return plan


def _read(document: Document) -> PlanArchive:
    value = document.value
    mistakes = checking.compiled(SCHEMA)(value) or list(_wrong_times(value))
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)
    try:
        plan = saved.read_plan(value["plan"])
    except InvalidInput as wrong:
        inside = [m._replace(path=("plan", *m.path), place=None) for m in wrong.mistakes]
        raise InvalidInput(inside).located(document.locate) from wrong
    mistakes = _not_of_an_end(plan)
    actions = {action.uuid for action in plan.actions}
    attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
    seen: set[tuple[str, int]] = set()
    for i, entry in enumerate(value["attempts"]):
        fields = dict(entry)
        action = fields.pop("action")
        if action not in actions:
            mistakes.append(Mistake(f"no action {action} in the plan", ("attempts", i, "action")))
        if (action, entry["number"]) in seen:
            text = f"attempt {entry['number']} of action {action} is there twice"
            mistakes.append(Mistake(text, ("attempts", i, "number")))
        seen.add((action, entry["number"]))
        attempts[action].append(_attempt(fields))
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)
    return PlanArchive(
        plan,
        attempts,
        [HistoryEntry(**_with_times(entry)) for entry in value["history"]],
        [Request(**_with_times(entry)) for entry in value["requests"]],
    )


def _attempt(fields: Mapping[str, Any]) -> Attempt:
    outcome = fields.get("outcome")
    known = _with_times(fields) | {"state": ActionState(fields["state"])}
    return Attempt(**known | {"outcome": None if outcome is None else Outcome(outcome)})


def _not_of_an_end(plan: ActionPlan) -> list[Mistake]:
    """Return a mistake for each state, of the plan or an action, in which it cannot be imported."""
    found = []
    if plan.state in _UNDER_WAY:
        text = f"the plan is {plan.state}: only one that nobody runs is taken in"
        found.append(Mistake(text, ("plan", "state")))
    for i, action in enumerate(plan.actions):
        if action.state is ActionState.ONGOING:
            text = f"{action.label} is {action.state}: only its own record knows how it goes on"
            found.append(Mistake(text, ("plan", "actions", i, "state")))
    return found


_TIMES = ("started_at", "ended_at", "at", "created_at")


def _with_times(fields: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: ranges.moment(fields[name]) for name in _TIMES if fields.get(name)}
    return {**fields, **times}


def _wrong_times(value: Mapping[str, Any]) -> list[Mistake]:
    found = []
    for part in ("attempts", "history", "requests"):
        for i, entry in enumerate(value[part]):
            for name in _TIMES:
                path: Path = (part, i, name)
                if name in entry and entry[name] is None:
                    found.append(Mistake("a time is expected, not null", path))
                    continue
                try:
                    if text := entry.get(name):
                        ranges.moment(text)
                except ValueError as reason:
                    found.append(Mistake(str(reason), path))
    return found


def _plain(fields: Mapping[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return fields as JSON types, but those of ``without``, None values and empty mappings."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else _json(value)
        for name, value in fields.items()
        if name not in without and value is not None and value != {}
    }


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, int | float) else str(value)
