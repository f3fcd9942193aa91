# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans as lines of text: one for each action, one for each field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from applier.operations import difference_values
from applier.operations.difference_values import FieldChange
from applier.operations.differences import Comparison, counted
from applier.wording import count, duration, one_line, some
from planner.differences.link_changes import LinkSet
from planner.differences.plans import ChangedAction, MovedAction, label, wave_numbers
from planner.errors import MOST_SHOWN, path_text
from planner.model import JOIN, Action, ActionPlan
from planner.registry import ActionTypes
from planner.secret_references import labelled

#: The maximum number of actions that a line names, and of characters that it shows of a value.
_MOST, _LONGEST = 6, 60
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
    yield from _section(
        "Plan:", [[f"  ~ {_field(one)}"] for one in difference_values.of_plan(made)]
    )
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
    found = difference_values.of_action(changed, types)
    return [f"  ~ {one_line(label(changed.new))}", *(f"      {_field(one)}" for one in found)]


def _moved(moved: Iterable[MovedAction]) -> list[list[str]]:
    """Return one line for each pair of old and new wave, since actions often move in groups."""
    found: dict[tuple[int, int], list[str]] = {}
    for one in moved:
        names = found.setdefault((one.old_wave, one.new_wave), [])
        names.append(one_line(label(one.new)))
    return [
        [f"  ~ wave {old} -> {new}: {some(found[old, new], _MOST, ', ')}"]
        for old, new in sorted(found)
    ]


def _link(sign: str, links: LinkSet) -> str:
    after, before = (
        some(map(one_line, labels), _MOST, ", ") for labels in (links.after, links.before)
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
    return " -> ".join(one_line(some(side, _MOST)) if side else _NONE for side in sides)


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
