# SPDX-License-Identifier: Apache-2.0
"""Tools to test planners: fixed surroundings, cases as data, and checks for every planner.

A case is a document together with the expected plan, as YAML or a mapping::

    title: the second resize waits for the first
    options: {weights: {sleep: 70, resize: 50}}
    actions: [sleep-1, resize-1, resize-2]       # type: the name without its number
    parents: {resize-1: [sleep-1], resize-2: [resize-1]}         # all others have none

Instead of ``parents``, ``error`` is a text that the error message has to contain. More fields are
compared if a case has them: ``needs``, ``needs_any``, ``triggers`` and ``blocked_by`` (lists of
``NAME OUTCOME|OUTCOME``), ``warnings``, ``order``, ``state``, ``plan_limits``, ``plan_tolerances``
(name: how many nodes may fail), ``plan_places`` (the rules by token), ``says`` (for each efficacy
indicator, texts in its description), ``types``, ``reasons`` and ``action_parameters`` (by the names
of some actions). :func:`check_case` checks a case, :func:`check_planner` any documents.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from planner.contract import ActionType, Planner, Surroundings
from planner.documents import Document, as_document, named_files
from planner.errors import InvalidInput, PlannerError
from planner.making import options as planning_options
from planner.making.planning import ParameterCheck, parse
from planner.making.registry import ActionTypes
from planner.plan import place_rules
from planner.plan.graph import validate
from planner.plan.model import JOIN, Action, ActionPlan, Touch
from planner.plan.states import ActionState, PlanState

#: The time of planning in every test.
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
#: The fields of a case that do not belong to its document.
EXPECTED = (
    *("parents", "needs", "needs_any", "triggers", "blocked_by", "types", "reasons"),
    *("action_parameters", "action_places"),
    *("warnings", "state", "plan_limits", "plan_places", "plan_tolerances", "order", "says"),
    "error",
)
#: The warning about an action type whose parameters are not checked.
_UNCHECKED = re.compile(
    r"action type (['\"]).*\1: (no plugin offers it, and )?its parameters were not checked"
)


def action_type(
    name: str,
    *,
    touches: Sequence[Touch] = (),
    schema: Mapping[str, Any] | None = None,
    estimate_s: float | None = None,
) -> type[ActionType]:
    """Return an action type that touches the same resources for any parameters.

    >>> action_type("drain", touches=[Touch("node:c1")]).touches({})
    (Touch(resource='node:c1', effect=<Effect.USES: 'uses'>),)
    """
    said: dict[str, Any] = {
        "TYPE": name,
        "SCHEMA": schema or {"type": "object"},
        "touches": classmethod(lambda _, __: tuple(touches)),
        "estimate": classmethod(lambda _, __: estimate_s),
        "describe": classmethod(lambda cls, _: cls.TYPE),
    }
    return type(name, (), said)


def surroundings(*types: type[ActionType], check_types: bool = True) -> Surroundings:
    """Make surroundings with a fixed time and consecutive ids.

    ``types`` are added to the installed action types, and replace those of the same name.
    """
    known = ChainMap[str, type[ActionType]]({t.TYPE: t for t in types}, ActionTypes())  # type: ignore[arg-type]
    numbers = count(1)
    return Surroundings(
        now=lambda: NOW,
        new_id=lambda: f"00000000-0000-4000-8000-{next(numbers):012x}",
        action_type=known.__getitem__,
        check=ParameterCheck(known),
        check_types=check_types,
    )


def options(planner: type[Planner[Any]], **values: Any) -> Any:
    """Return a planner's options: its defaults, replaced by ``values``; raises InvalidInput."""
    wrong: list[Any] = []
    layer = planning_options.given(values, lambda name: f"option {name}")
    found = planning_options.resolve(planner, [layer], wrong)
    if wrong:
        raise InvalidInput(wrong)
    return found


def plan(
    planner: type[Planner[Any]],
    document: Mapping[str, Any] | Document,
    *types: type[ActionType],
    check_types: bool = True,
) -> ActionPlan:
    """Make a plan as :func:`planner.make_plan`, but with :func:`surroundings` and any class.

    The class of the planner need not be installed as a plugin.
    """
    conf = planning_options.configuration(None)
    around = surroundings(*types, check_types=check_types)
    read = named_files.completed(as_document(document), planner)
    return parse(planner, read, conf, around).plan({})


def applied(plan: ActionPlan) -> ActionPlan:
    """Return a plan as it is when each of its actions has succeeded."""
    done = [replace(action, state=ActionState.SUCCEEDED) for action in plan.actions]
    return replace(plan, actions=tuple(done), state=PlanState.SUCCEEDED)


def edges(plan: ActionPlan) -> dict[str, list[str]]:
    """Map the name of each action to the names of its parents, in their order."""
    return _names(plan, "parents")


def needs(plan: ActionPlan) -> dict[str, list[str]]:
    """Map the name of each action to the names of its needs, in their order."""
    return _names(plan, "needs")


def _names(plan: ActionPlan, field: str) -> dict[str, list[str]]:
    label = {action.uuid: action.label for action in plan.actions}
    return {a.label: [label[u] for u in getattr(a, field)] for a in plan.actions}


def check_case(
    planner: type[Planner[Any]], document: Mapping[str, Any] | Document, *types: type[ActionType]
) -> None:
    """Make the plan of a case and compare it; raises AssertionError with the differences.

    Types and parameters are checked only if the case has ``check_types: true``. A case that was
    read from a file may name other files.
    """
    read = as_document(document)
    case: Mapping[str, Any] = read.value
    value = {k: v for k, v in case.items() if k not in (*EXPECTED, "title", "check_types")}
    if isinstance(value.get("actions"), list):
        value["actions"] = [_whole(action) for action in value["actions"]]
    try:
        whole = replace(read, value=value)
        made = plan(planner, whole, *types, check_types=case.get("check_types", False))
    except PlannerError as refused:
        expected = _texts(case["error"]) if "error" in case else None
        if expected is None or not all(text in str(refused) for text in expected):
            wanted = "a plan" if expected is None else f"a refusal with {expected}"
            raise AssertionError(f"expected {wanted}, got: {refused}") from refused
        return
    if "error" in case:
        raise AssertionError(f"expected a refusal with {case['error']!r}, got {edges(made)}")
    wrong = list(_differences(case, made))
    if wrong:
        raise AssertionError("\n".join([f"{case.get('title', 'case')}:", *wrong]))


def _whole(action: Any) -> Any:
    if not isinstance(action, str):
        return action
    return {"name": action, "action_type": action.rpartition("-")[0] or action}


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _differences(case: Mapping[str, Any], plan: ActionPlan) -> Iterator[str]:
    for field in ("parents", "needs"):
        if field in case:
            yield from _differing_edges(field, case[field] or {}, _names(plan, field))
    label = {action.uuid: action.label for action in plan.actions}
    asked = case.get("action_parameters", ())
    found = {
        "state": str(plan.state),
        "plan_limits": dict(plan.limits),
        "plan_places": place_rules.to_dict(plan.places),
        "action_parameters": {
            a.label: dict(a.input_parameters) for a in plan.actions if a.label in asked
        },
        "action_places": {a.label: [list(p) for p in a.places] for a in plan.actions if a.places},
        "plan_tolerances": {t["name"]: t["failed_nodes"] for t in plan.tolerances},
        "order": [action.label for action in plan.actions],
        "needs_any": {
            a.label: [[label[u] for u in group] for group in a.needs_any]
            for a in plan.actions
            if a.needs_any
        },
        **{
            field: {
                a.label: [f"{label[u]} {'|'.join(outcomes)}" for u, outcomes in getattr(a, field)]
                for a in plan.actions
                if getattr(a, field)
            }
            for field in ("triggers", "blocked_by")
        },
        "types": {a.label: a.action_type for a in plan.actions if a.label in case.get("types", ())},
        "reasons": {a.label: a.reason for a in plan.actions if a.label in case.get("reasons", ())},
    }
    for field, value in found.items():
        if field in case and case[field] != value:
            yield f"  {field}: expected {case[field]}, got {value}"
    if "says" in case:
        said = [
            str(i.get("description")) for i in (*plan.efficacy_indicators, *plan.global_efficacy)
        ]
        wanted = [_texts(texts) for texts in case["says"]]
        if len(said) != len(wanted) or not all(
            text in line for texts, line in zip(wanted, said, strict=True) for text in texts
        ):
            yield f"  says: expected {wanted}, got {said}"
    if "warnings" in case:
        yield from _differing_warnings(case["warnings"] or [], plan.warnings)


def _differing_edges(
    field: str, expected: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for name in dict.fromkeys([*found, *expected]):
        if name not in found:
            yield f"  {field}: there is no {name} in the plan"
            continue
        wanted, got = expected.get(name, []), found[name]
        yield from (f"  {field}: - {a} -> {name} is missing" for a in wanted if a not in got)
        yield from (f"  {field}: + {a} -> {name} is too much" for a in got if a not in wanted)
        if sorted(wanted) == sorted(got) and list(wanted) != list(got):
            yield f"  {field}: of {name} in the order {list(got)}, expected {list(wanted)}"


def _differing_warnings(expected: Sequence[Any], warnings: Iterable[str]) -> Iterator[str]:
    """Compare warnings one by one, except those on unchecked types and parameters."""
    found = [text for text in warnings if not _UNCHECKED.fullmatch(text)]
    if len(found) != len(expected) or not all(
        text in warning
        for wanted, warning in zip(expected, found, strict=True)
        for text in _texts(wanted)
    ):
        yield f"  warnings: expected {list(expected)}, got {found}"


def check_planner(
    planner: type[Planner[Any]],
    documents: Iterable[Mapping[str, Any]],
    *types: type[ActionType],
    check_types: bool = True,
) -> None:
    """Check the rules for every planner; raises AssertionError with the rule that is broken.

    Equal documents give equal plans. Planning does not change the document. The links are acyclic,
    and the actions are in an order that follows them. Each proposed action is in the plan exactly
    once. A plan that is written as JSON and read again is equal to the first.
    """
    for document in documents:
        before = json.dumps(document)
        first, second = (plan(planner, document, *types, check_types=check_types) for _ in range(2))
        text = json.dumps(first.to_dict())
        _require(text == json.dumps(second.to_dict()), "equal documents give different plans")
        _require(before == json.dumps(document), "planning changed the document")
        validate(first.actions)
        _require(_in_order(first.actions), "the actions are not in schedule order")
        _require(_complete(first, document), "proposed actions are missing or duplicate")
        back = ActionPlan.from_dict(json.loads(text))
        _require(back == first, "read back from JSON, the plan is not equal")
        _require(back.digest == first.digest, "read back from JSON, the plan has another digest")


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise AssertionError(otherwise)


def _in_order(actions: Iterable[Action]) -> bool:
    seen: set[str] = set()
    for action in actions:
        if not seen.issuperset(action.before()):
            return False
        seen.add(action.uuid)
    return True


def _complete(plan: ActionPlan, document: Mapping[str, Any]) -> bool:
    """Return whether all actions of a solution are in its plan; True for other kinds."""
    proposed = document.get("actions")
    if not isinstance(proposed, list):
        return True
    types = sorted(action["action_type"] for action in proposed)
    names = {action["name"] for action in proposed if action.get("name")}
    made = [action for action in plan.actions if action.action_type != JOIN]
    return types == sorted(a.action_type for a in made) and names <= {a.name for a in made}
