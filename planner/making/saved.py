# SPDX-License-Identifier: Apache-2.0
"""Action plans as documents (format 2.0): their JSON Schema, and how they are read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from planner import documents, guards
from planner.contract import ActionType
from planner.documents import Document
from planner.errors import InvalidInput, InvalidPlan, Mistake, Path, UnknownPlugin
from planner.plan import deadlocks, digest, graph, place_rules
from planner.plan.model import JOIN, VERSION, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from planner.schemas import checking, hidden_values, ranges

_NAME_OF_ACTION = {"type": ["string", "null"], "maxLength": ranges.LONGEST_COMPOSED}
_UUIDS = ranges.list_of(ranges.UUID)


def _ends(outcomes: Iterable[Outcome], description: str) -> dict[str, Any]:
    """Return the schema of a list of actions, each with some of these outcomes."""
    words = ranges.list_of({"enum": [str(o) for o in outcomes]}, minItems=1)
    one = ranges.mapping(*("action", "outcomes"), action=ranges.UUID, outcomes=words)
    return ranges.list_of(one, description=description)


ACTION: dict[str, Any] = ranges.mapping(
    *("uuid", "action_type"),
    uuid=ranges.UUID,
    name=_NAME_OF_ACTION,
    action_type=ranges.NAME,
    resource_id=_NAME_OF_ACTION,
    input_parameters={"type": "object"},
    description=ranges.TEXT_OR_NULL,
    reason=ranges.TEXT_OR_NULL,
    parents={**_UUIDS, "description": "Must have ended before it starts."},
    needs={**_UUIDS, "description": "Must have ended well."},
    needs_any=ranges.list_of(
        {**_UUIDS, "minItems": 1}, description="Of each group one must have ended well."
    ),
    triggers=_ends(Outcome, "One must have ended with one of its outcomes, else it is not run."),
    blocked_by=_ends(
        (Outcome.FAILED, Outcome.ERROR),
        "Comes before it anyhow, and must not fail in one of these ways.",
    ),
    tokens=ranges.list_of(ranges.NAME),
    places=place_rules.PLACES,
    estimate_s=ranges.SECONDS_OR_NULL,
    timeout_s=ranges.SECONDS_OR_NULL,
    retries=ranges.COUNT,
    state={"enum": [str(s) for s in ActionState]},
    outcome={"enum": [None, *(str(o) for o in Outcome)]},
    state_reason={"enum": [None, *(str(r) for r in StateReason)]},
    status_message=ranges.TEXT_OR_NULL,
    started_at=ranges.TIME,
    ended_at=ranges.TIME,
    attempts=ranges.COUNT,
)

TOLERANCE: dict[str, Any] = {
    "description": "Of these nodes so many may fail before nothing new starts.",
    **ranges.mapping(
        *("name", "nodes", "failed_nodes"),
        name=ranges.TEXT,
        nodes=ranges.list_of(ranges.TEXT),
        failed_nodes=ranges.COUNT,
    ),
}

SCHEMA: dict[str, Any] = ranges.document(
    "action plan",
    "Actions in schedule order, and what each waits for. Format 2.0.",
    *("version", "uuid", "planner", "actions"),
    version=ranges.NAME,
    uuid=ranges.UUID,
    name=ranges.NAME_OR_NULL,
    planner=ranges.NAME,
    state={"enum": [str(s) for s in PlanState]},
    digest=ranges.NAME,
    created_at=ranges.TIME,
    updated_at=ranges.TIME,
    status_message=ranges.TEXT_OR_NULL,
    audit_uuid=ranges.NAME_OR_NULL,
    strategy_name=ranges.NAME_OR_NULL,
    efficacy_indicators={"type": "array"},
    global_efficacy={"type": "array"},
    limits=ranges.by_token(ranges.COUNT_OF_ONE_OR_MORE),
    places=place_rules.PLACE_RULES,
    limits_now={
        "type": "object",
        "description": "What was set for the run under way when this copy was shown; ignored.",
    },
    tolerances=ranges.list_of(TOLERANCE),
    on_failure={"enum": [None, "skip_descendants", "pause", "continue", "only_after_failure"]},
    cloud={**ranges.NAME_OR_NULL, "description": "The cloud that it was made for."},
    facts_at={**ranges.TIME, "description": "When the facts were read that it was made of."},
    start_at={**ranges.TIME, "description": "When a PENDING plan starts at the earliest."},
    guards=guards.SCHEMA_OF_A_PLAN,
    warnings=ranges.list_of(ranges.TEXT),
    actions=ranges.list_of(ACTION),
)

#: The fields that only a run sets, with their values before it.
_BEFORE_A_RUN = {
    "state": ActionState.PENDING,
    "outcome": None,
    "state_reason": None,
    "started_at": None,
    "ended_at": None,
    "attempts": 0,
}


def read_plan(document: Mapping[str, Any] | str | FilePath | Document) -> ActionPlan:
    """Read and check an action plan; raises InvalidInput with every mistake.

    If the digest does not fit, the plan was changed after it was made, and is refused. A plan
    without a digest is accepted.
    """
    read = documents.as_document(document)
    version = read.value.get("version") if isinstance(read.value, Mapping) else None
    if isinstance(version, str) and version != VERSION:
        text = f"version {version!r} is not supported, only {VERSION!r}"
        found = [Mistake(text, ("version",))]
    else:
        found = checking.compiled(SCHEMA)(read.value)
    found = found or list(_impossible(read.value))
    if found:
        raise InvalidInput(found).located(read.locate)
    plan = ActionPlan.from_dict(read.value)
    try:
        graph.validate(plan.actions)
        deadlocks.require_none(plan)
    except InvalidPlan as wrong:
        raise InvalidInput(wrong.located).located(read.locate) from wrong
    written = read.value.get("digest")
    if written not in (None, plan.digest):
        text = "does not fit the plan: it was changed after it was made; make it again"
        if not written.startswith(digest.PREFIX):
            text = f"is not of the form {digest.PREFIX}...; without this line it is computed anew"
        elif any(hidden_values.has_hidden(action.input_parameters) for action in plan.actions):
            text = "values are hidden in this copy, which was shown; 'create --out' writes all"
        raise InvalidInput([Mistake(text, ("digest",))]).located(read.locate)
    return plan


def require_new(plan: ActionPlan, document: Document) -> None:
    """Raise InvalidInput unless a plan is RECOMMENDED, and no action has results of a run.

    The results of a run are complete only in the store that recorded it.
    """
    mistakes = []
    if plan.state is not PlanState.RECOMMENDED:
        text = f"the plan is {plan.state}: only {PlanState.RECOMMENDED} plans come into a record"
        mistakes.append(Mistake(text, ("state",)))
    for i, action in enumerate(plan.actions):
        for field, before in _BEFORE_A_RUN.items():
            value = getattr(action, field)
            if value != before:
                text = f"{value!s} is what a run writes; a plan that is new here has {before}"
                mistakes.append(Mistake(text, ("actions", i, field)))
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)


def require_known_types(
    plan: ActionPlan,
    document: Document,
    known: Mapping[str, type[ActionType]],
    check: Callable[[str, Mapping[str, Any]], Sequence[Mistake]],
) -> None:
    """Raise InvalidInput for unknown action types, and for parameters that their schemas refuse.

    ``known`` raises UnknownPlugin for an unknown type; ``check`` is a
    :class:`planner.making.planning.ParameterCheck`.
    """
    mistakes: list[Mistake] = []
    for i, action in enumerate(plan.actions):
        if action.action_type == JOIN:
            continue
        path: Path = ("actions", i)
        try:
            schema = known[action.action_type].SCHEMA
        except UnknownPlugin as unknown:
            mistakes.append(Mistake(str(unknown), (*path, "action_type")))
            continue
        parameters = action.input_parameters
        # Planners add the resource_id of an action to its parameters, as Watcher does.
        added = parameters.get("resource_id") == action.resource_id
        if added and "resource_id" not in (schema.get("properties") or {}):
            parameters = {k: v for k, v in parameters.items() if k != "resource_id"}
        for wrong in check(action.action_type, parameters):
            mistakes.append(Mistake(wrong.text, (*path, "input_parameters", *wrong.path)))
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)


def _impossible(value: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield a mistake for each time that fits the schema and does not exist, and wrong guards."""
    places: list[tuple[Path, Mapping[str, Any], tuple[str, ...]]] = [
        ((), value, ("created_at", "updated_at", "facts_at", "start_at"))
    ]
    places += [
        (("actions", i), action, ("started_at", "ended_at"))
        for i, action in enumerate(value["actions"])
    ]
    for path, fields, names in places:
        for name in names:
            try:
                if text := fields.get(name):
                    ranges.moment(text)
            except ValueError as reason:
                yield Mistake(str(reason), (*path, name))
    try:
        guards.of(value.get("guards") or {})
    except ValueError as reason:
        yield Mistake(str(reason), ("guards",))
