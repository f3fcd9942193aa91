# SPDX-License-Identifier: Apache-2.0
"""The differences of two plans: as values, as lines of text, and in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from applier.assembly import Assembly
from applier.errors import DamagedRecord, PlanNotFound
from applier.operations import hidden_parameters
from applier.operations.predictions import makespan_s, past_durations
from applier.operations.timelines import from_the_beginning
from applier.wording import count, duration, one_line, some
from planner.differences.comparison import (
    ChangedAction,
    MovedAction,
    PlanDifference,
    action_fields,
    at,
    difference,
    has,
    label,
    plan_fields,
    wave_numbers,
)
from planner.differences.links import LinkSet
from planner.errors import MOST_SHOWN, Path, path_text
from planner.guards import NO_GUARDS
from planner.making.guarding import with_facts_of
from planner.making.registry import ActionTypes
from planner.plan.model import JOIN, Action, ActionPlan
from planner.schemas.hidden_values import labelled

#: A new plan is compared in detail with the last one if neither has more actions than this.
MOST_COMPARED = 500
#: The maximum number of kinds of differences that are counted then.
_SAID = 3


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two plans, their difference, and the forecast makespan of each if all its actions ran."""

    old: ActionPlan
    new: ActionPlan
    found: PlanDifference
    old_s: float
    new_s: float


def compared(assembly: Assembly, old: ActionPlan, new: ActionPlan, max_workers: int) -> Comparison:
    """Compare two plans, and forecast both with the same durations."""
    known, seconds = past_durations(assembly), []
    for plan in (old, new):
        whole = from_the_beginning(plan)
        seconds.append(makespan_s(assembly, whole, known.of(whole), max_workers))
    found = difference(old, new)
    return Comparison(old=old, new=new, found=found, old_s=seconds[0], new_s=seconds[1])


def counted(found: PlanDifference) -> list[str]:
    """Return a phrase with the number of differences for each kind that there is.

    >>> one = Action(uuid="u", action_type="nop")
    >>> counted(PlanDifference(removed=(one, one), paths=(("limits", "node:*"),)))
    ['2 removed', '1 field of the plan changed']
    """
    numbers = {
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": len(found.changed),
        "moved": len(found.moved),
    }
    words = [f"{number} {word}" for word, number in numbers.items() if number]
    for word, links in (("new link", found.new_links), ("lost link", found.lost_links)):
        words += [count(sum(map(_size, links)), word)] if links else []
    fields = len(found.paths)
    words += [f"{count(fields, 'field')} of the plan changed"] if fields else []
    return words


def _size(links: LinkSet) -> int:
    members = 1 if links.kind == "needs_any" else len(links.before)
    return members * len(links.after)


def from_last_of_its_name(assembly: Assembly, plan: ActionPlan) -> str | None:
    """Return a sentence that compares a plan with the last stored one of its name.

    The plan itself is not stored yet. Of large plans only the digests are compared. Returns None if
    there is no other plan, or if it is damaged.
    """
    store = assembly.store
    found = store.list_plans(name=plan.name, limit=1) if plan.name else []
    if not found or found[0].damage is not None:
        return None
    last = found[0]
    named = f"plan {last.uuid[:8]} of the same name"
    if last.digest == plan.digest:
        return f"Same as {named}."
    is_large = max(sum(last.actions.values()), len(plan.actions)) > MOST_COMPARED
    what = ""
    # A digest that covers the facts of a plan can be compared only with that of a whole plan.
    if not is_large or plan.facts_at or plan.guards != NO_GUARDS:
        try:
            before = store.load_plan(last.uuid)
        except (DamagedRecord, PlanNotFound):
            return None
        if with_facts_of(plan, before).digest == before.digest:
            return f"Same as {named}."
        if not is_large:
            differs = difference(before, plan)
            if differs.is_empty:
                return f"Same as {named}, in another order."
            what = f": {', '.join(counted(differs)[:_SAID])}"
    return f"Differs from {named}{what}; see: actionplan diff {last.uuid[:8]} {plan.uuid[:8]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldChange:
    """A field with its old and its new value, and whether the old and the new plan have it."""

    path: Path
    old: Any
    new: Any
    is_in_old: bool
    is_in_new: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the change as a mapping, without a value that is not there."""
        value = {"field": path_text(self.path)}
        value |= {"old": self.old} if self.is_in_old else {}
        return value | ({"new": self.new} if self.is_in_new else {})


def of_action(changed: ChangedAction, types: ActionTypes) -> list[FieldChange]:
    """Return the fields of an action that differ; values that its type hides are replaced."""
    shown = (
        hidden_parameters.action_without(action, types) for action in (changed.old, changed.new)
    )
    return _changes(changed.paths, *map(action_fields, shown))


def of_plan(made: Comparison) -> list[FieldChange]:
    """Return the fields of the plans that differ."""
    return _changes(made.found.paths, plan_fields(made.old), plan_fields(made.new))


def _changes(paths: Iterable[Path], old: Any, new: Any) -> list[FieldChange]:
    return [
        FieldChange(
            path=path,
            old=at(old, path),
            new=at(new, path),
            is_in_old=has(old, path),
            is_in_new=has(new, path),
        )
        for path in paths
    ]


def as_dict(made: Comparison, types: ActionTypes) -> dict[str, Any]:
    """Return a comparison as a mapping, for JSON."""
    found = made.found
    return {
        "old": _head(made.old),
        "new": _head(made.new),
        "same": found.is_empty,
        "added": _entries(found.added, made.new),
        "removed": _entries(found.removed, made.old),
        "changed": [
            {
                "old": _named(changed.old),
                "new": _named(changed.new),
                "fields": [change.as_dict() for change in of_action(changed, types)],
            }
            for changed in found.changed
        ],
        "moved": [
            {**_named(moved.new), "old_wave": moved.old_wave, "new_wave": moved.new_wave}
            for moved in found.moved
        ],
        "new_links": [_links(links) for links in found.new_links],
        "lost_links": [_links(links) for links in found.lost_links],
        "fields": [change.as_dict() for change in of_plan(made)],
        "makespan_s": {"old": made.old_s, "new": made.new_s},
    }


def _head(plan: ActionPlan) -> dict[str, Any]:
    return {"uuid": plan.uuid, "name": plan.name, "planner": plan.planner}


def _named(action: Action) -> dict[str, Any]:
    return {
        "uuid": action.uuid,
        "name": action.name,
        "action_type": action.action_type,
        "resource_id": action.resource_id,
    }


def _entries(actions: Iterable[Action], plan: ActionPlan) -> list[dict[str, Any]]:
    waves = wave_numbers(plan) if actions else {}
    return [{**_named(action), "wave": waves.get(action.uuid)} for action in actions]


def _links(links: LinkSet) -> dict[str, Any]:
    value = {"kind": links.kind, "before": list(links.before), "after": list(links.after)}
    return value | ({"outcomes": list(links.outcomes)} if links.outcomes else {})


#: The maximum number of actions that a line names, and of characters that it shows of a value.
_MOST_NAMED, _LONGEST = 6, 60
_PARAMETERS = "input_parameters"
_NONE = "(none)"
#: The end of the sentence about a link, by its kind.
_WORDS = {
    "parents": "after",
    "needs": "needs",
    "needs_any": "needs one of",
    "triggers": "triggered by",
    "blocked_by": "blocked by",
}


def lines(made: Comparison, names: Sequence[str], types: ActionTypes) -> Iterator[str]:
    """Yield all lines; at most 20 differences of each kind are listed.

    ``names`` are those by which the user named the plans.
    """
    found = made.found
    yield _title("---", names[0], made.old)
    yield _title("+++", names[1], made.new)
    yield (
        "The plans are the same."
        if found.is_empty
        else f"They differ: {', '.join(counted(found))}."
    )
    yield from _section("Added:", _actions("+", found.added, made.new))
    yield from _section("Removed:", _actions("-", found.removed, made.old))
    yield from _section(
        "Changed:", [_changed(one, types) for one in found.changed[: MOST_SHOWN + 1]]
    )
    yield from _section("Moved to another wave:", _moved(found.moved))
    yield from _section("New links:", [[_link("+", links)] for links in found.new_links])
    yield from _section("Lost links:", [[_link("-", links)] for links in found.lost_links])
    yield from _section("Plan:", [[f"  ~ {_field(one)}"] for one in of_plan(made)])
    before, after = duration(made.old_s), duration(made.new_s)
    yield f"Expected: {before} -> {after}." if before != after else f"Expected: {before}."


def _title(mark: str, name: str, plan: ActionPlan) -> str:
    size = count(sum(a.action_type != JOIN for a in plan.actions), "action")
    waves = count(max(wave_numbers(plan).values(), default=0), "wave")
    named = f" ({one_line(plan.name)})" if plan.name and plan.name != name else ""
    return f"{mark} {one_line(name)}{named}: {size} in {waves}, planner {one_line(plan.planner)}"


def _section(title: str, items: Sequence[Sequence[str]]) -> Iterator[str]:
    if not items:
        return
    yield title
    for item in items[:MOST_SHOWN]:
        yield from item
    more = len(items) - MOST_SHOWN
    if more > 0:
        yield f"  and {more} more; -f json lists all"


def _actions(sign: str, actions: Sequence[Action], plan: ActionPlan) -> list[list[str]]:
    waves = wave_numbers(plan) if actions else {}
    found = []
    for action in actions:
        what = f": {one_line(action.description)}" if action.description else ""
        wave = f" (wave {waves[action.uuid]})" if action.uuid in waves else ""
        found.append([f"  {sign} {one_line(label(action))}{what}{wave}"])
    return found


def _changed(changed: ChangedAction, types: ActionTypes) -> list[str]:
    found = of_action(changed, types)
    return [f"  ~ {one_line(label(changed.new))}", *(f"      {_field(one)}" for one in found)]


def _moved(moved: Iterable[MovedAction]) -> list[list[str]]:
    """Return one line for each pair of old and new wave, since actions often move in groups."""
    found: dict[tuple[int, int], list[str]] = {}
    for one in moved:
        names = found.setdefault((one.old_wave, one.new_wave), [])
        names.append(one_line(label(one.new)))
    return [
        [f"  ~ wave {old} -> {new}: {some(found[old, new], _MOST_NAMED, ', ')}"]
        for old, new in sorted(found)
    ]


def _link(sign: str, links: LinkSet) -> str:
    after, before = (
        some(map(one_line, labels), _MOST_NAMED, ", ") for labels in (links.after, links.before)
    )
    outcomes = f" on {' or '.join(links.outcomes)}" if links.outcomes else ""
    return f"  {sign} {after} {_WORDS[links.kind]} {before}{outcomes}"


def _field(change: FieldChange) -> str:
    """Return a field with its old and new value as text, cut around the difference if long."""
    is_parameter = change.path[0] == _PARAMETERS and len(change.path) > 1
    name = f"parameter {path_text(change.path[1:])}" if is_parameter else path_text(change.path)
    if change.path == ("tokens",):
        return f"tokens: {_tokens(change.old, change.new)}"
    old = _text(change.old) if change.is_in_old else None
    new = _text(change.new) if change.is_in_new else None
    if old is not None and old == new:
        return f"{one_line(name)}: {_excerpt(old, 0)}, changed"
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(old or "", new or "", strict=False))
    begin = sum(1 for _ in alike)
    shown = [_NONE if text is None else _excerpt(text, begin) for text in (old, new)]
    return f"{one_line(name)}: {' -> '.join(shown)}"


def _tokens(old: Sequence[str], new: Sequence[str]) -> str:
    """Return the tokens that are lost and gained; all of them if only their order differs.

    >>> _tokens(["type:a", "node:1"], ["type:a", "node:2"]), _tokens(["a", "b"], ["b", "a"])
    ('node:1 -> node:2', 'a b -> b a')
    """
    lost, gained = [t for t in old if t not in new], [t for t in new if t not in old]
    sides = (lost, gained) if lost or gained else (old, new)
    return " -> ".join(one_line(some(side, _MOST_NAMED)) if side else _NONE for side in sides)


def _text(value: Any) -> str:
    known = labelled(value)
    return one_line(known if isinstance(known, str) else json.dumps(known, ensure_ascii=False))


def _excerpt(text: str, begin: int) -> str:
    """Return the part of a long text around its first difference.

    >>> _excerpt("short", 2), _excerpt("a" * 50 + "b" * 50, 50)
    ('short', '...aaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb')
    """
    if len(text) <= _LONGEST:
        return text
    start = max(0, min(begin, len(text) - _LONGEST + 10) - 10)
    cut = text[start : start + _LONGEST]
    return ("..." if start else "") + cut + ("..." if start + _LONGEST < len(text) else "")
