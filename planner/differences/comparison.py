# SPDX-License-Identifier: Apache-2.0
"""Compares two plans, without their uuids and their order, in time linear in actions and links.

Actions match by name, else by type, resource and parameters.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from planner.differences.links import LinkReader, LinkSet, LinkSets, Members, gained, is_join
from planner.errors import Path
from planner.plan import digest, graph, place_rules
from planner.plan.model import Action, ActionPlan
from planner.safe_text import sorted_json
from planner.schemas import hidden_values


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedAction:
    """An action of both plans, and the paths of the fields and parameters that differ."""

    old: Action
    new: Action
    paths: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedAction:
    """An action of both plans that is in another wave; waves are counted from 1."""

    new: Action
    old_wave: int
    new_wave: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDifference:
    """The differences between two plans in all that a digest covers.

    Left out are the order of the actions, and the time and the extent of the facts. ``paths`` are
    those of the fields of the plan that differ. All links of an added action are new,
    and all of a removed one lost.
    """

    added: tuple[Action, ...] = ()
    removed: tuple[Action, ...] = ()
    changed: tuple[ChangedAction, ...] = ()
    moved: tuple[MovedAction, ...] = ()
    new_links: tuple[LinkSet, ...] = ()
    lost_links: tuple[LinkSet, ...] = ()
    paths: tuple[Path, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if the plans are the same."""
        actions = self.added or self.removed or self.changed or self.moved
        return not (actions or self.new_links or self.lost_links or self.paths)


class _Known(NamedTuple):
    """An action with the values that are compared; ``text`` is its fields as JSON."""

    action: Action
    number: int
    place: int
    wave: int
    links: LinkSets
    fields: Mapping[str, Any]
    text: str


def difference(old: ActionPlan, new: ActionPlan) -> PlanDifference:
    """Compare two valid plans.

    >>> one = Action(uuid="u", action_type="nop", name="a")
    >>> two = Action(uuid="v", action_type="nop", name="a", retries=2)
    >>> plans = [ActionPlan(uuid=a.uuid, planner="weight", actions=(a,)) for a in (one, two)]
    >>> difference(*plans).changed[0].paths, difference(plans[0], plans[0]).is_empty
    ((('retries',),), True)
    """
    shared: dict[Members, Members] = {}
    plans = (old, new)
    numbers = numbers_of(*([a for a in plan.actions if not is_join(a)] for plan in plans))
    known = [_known(plan, by_uuid, shared) for plan, by_uuid in zip(plans, numbers, strict=True)]
    both, removed, added = _paired(*known)
    labels = {k.number: label(k.action) for side in known for k in side}
    new_links = [(other, one.links) for one, other in both] + [(k, LinkSets()) for k in added]
    lost_links = [(one, other.links) for one, other in both] + [(k, LinkSets()) for k in removed]
    return PlanDifference(
        added=tuple(k.action for k in added),
        removed=tuple(k.action for k in removed),
        changed=tuple(
            ChangedAction(
                old=one.action,
                new=other.action,
                paths=tuple(different(one.fields, other.fields)),
            )
            for one, other in both
            if one.text != other.text
        ),
        moved=tuple(
            MovedAction(new=other.action, old_wave=one.wave, new_wave=other.wave)
            for one, other in both
            if one.wave != other.wave
        ),
        new_links=gained([(k.place, k.number, k.links, links) for k, links in new_links], labels),
        lost_links=gained([(k.place, k.number, k.links, links) for k, links in lost_links], labels),
        paths=tuple(different(plan_fields(old), plan_fields(new))),
    )


def label(action: Action) -> str:
    """Return the name of an action; of one without a name its type and resource.

    >>> label(Action(uuid="6a1f", action_type="stop", resource_id="web"))
    'stop web'
    """
    return action.name or " ".join(filter(None, (action.action_type, action.resource_id)))


def wave_numbers(plan: ActionPlan) -> dict[str, int]:
    """Return the wave of each action by uuid, counted from 1; joins are in none."""
    waves = enumerate(graph.waves(plan.actions), 1)
    return {action.uuid: number for number, wave in waves for action in wave}


def _known(
    plan: ActionPlan, numbers: Mapping[str, int], shared: dict[Members, Members]
) -> list[_Known]:
    reader, waves = LinkReader(plan.actions, numbers, shared), wave_numbers(plan)
    return [
        _Known(a, numbers[a.uuid], i, waves.get(a.uuid, 0), reader.links(a), own, sorted_json(own))
        for i, a in enumerate(plan.actions)
        if a.uuid in numbers
        for own in (action_fields(a),)
    ]


def _paired(
    old: Sequence[_Known], new: Sequence[_Known]
) -> tuple[list[tuple[_Known, _Known]], Sequence[_Known], Sequence[_Known]]:
    """Return the pairs of matching actions in the order of the new plan, the removed, the added.

    Actions have equal numbers to match. Of several, those that are alike in most are paired first.
    """
    both: list[tuple[_Known, _Known]] = []
    for alike in _ALIKE:
        waiting: dict[Hashable, deque[_Known]] = defaultdict(deque)
        for known in new:
            waiting[alike(known)].append(known)
        left, taken = [], set()
        for known in old:
            if same := waiting[alike(known)]:
                taken.add(same[0].place)
                both.append((known, same.popleft()))
            else:
                left.append(known)
        old, new = left, [known for known in new if known.place not in taken]
    return sorted(both, key=lambda pair: pair[1].place), old, new


#: The keys by which actions are paired: all values, all but the wave, the number alone.
_ALIKE: Sequence[Callable[[_Known], Hashable]] = (
    lambda known: (known.number, known.text, known.links, known.wave),
    lambda known: (known.number, known.text, known.links),
    lambda known: known.number,
)


def numbers_of(
    old: Collection[Action], new: Collection[Action]
) -> tuple[dict[str, int], dict[str, int]]:
    """Number the actions of two plans by uuid, so that those that match have equal numbers.

    Actions match if their names are equal and unique in both plans, else if their types, resources
    and parameters are equal. All actions that are equal in these share a number if both plans have
    such actions. A name such as ``nop-3``, a type and a number, was made by a planner, and changes
    when an action is inserted before: actions with such names match by name only if they do not
    match otherwise. Actions with a name, but no resource and no parameters, match by name only.

    >>> old = [Action(uuid="1", action_type="nop", name="a"), Action(uuid="2", action_type="stop")]
    >>> new = [Action(uuid="3", action_type="stop"), Action(uuid="4", action_type="stop", name="a")]
    >>> numbers_of(old, new)
    ({'1': 0, '2': 1}, {'3': 1, '4': 0})
    """
    contents = {
        id(action): sorted_json([action.action_type, action.resource_id, action.input_parameters])
        for action in (*old, *new)
    }
    named, others = _by_name(old), _by_name(new)
    both = named.keys() & others.keys()
    # The names by which actions match before any other match is tried.
    first = {
        name
        for name in both
        if contents[id(named[name])] == contents[id(others[name])]
        or not (_is_numbered(named[name]) or _is_numbered(others[name]))
    }
    left = [{contents[id(a)] for a in plan if a.name not in first} for plan in (old, new)]
    shared = left[0] & left[1]
    found: dict[tuple[str, str | None, int], int] = {}

    def number(action: Action, place: int) -> int:
        content = contents[id(action)]
        by_name = action.name in first or (action.name in both and content not in shared)
        is_bare = action.name and not (action.resource_id or action.input_parameters)
        if by_name or is_bare:
            key = ("name", action.name, 0)
        elif content in shared:
            key = ("content", content, 0)
        else:
            key = ("in one plan", action.uuid, place)
        return found.setdefault(key, len(found))

    return {a.uuid: number(a, 0) for a in old}, {a.uuid: number(a, 1) for a in new}


def _by_name(actions: Collection[Action]) -> dict[str, Action]:
    """Return the actions whose names are unique, by name."""
    times = Counter(action.name for action in actions)
    return {a.name: a for a in actions if a.name is not None and times[a.name] == 1}


def _is_numbered(action: Action) -> bool:
    return re.fullmatch(re.escape(action.action_type) + "-[0-9]+", action.name or "") is not None


def action_fields(action: Action) -> dict[str, Any]:
    """Return the fields of an action that a run uses, without its links."""
    places = {"places": [list(place) for place in action.places]} if action.places else {}
    return digest.covered(action) | places


def plan_fields(plan: ActionPlan) -> dict[str, Any]:
    """Return the fields of a plan that a run uses, with the tolerances by name.

    A name that was there before gets a number: ``racks (2)``.
    """
    times = Counter[str]()
    tolerances = {}
    for tolerance in plan.tolerances:
        name = str(tolerance.get("name"))
        times[name] += 1
        tolerances[name if times[name] == 1 else f"{name} ({times[name]})"] = tolerance
    return {
        "planner": plan.planner,
        "cloud": plan.cloud,
        "on_failure": plan.on_failure,
        "limits": plan.limits,
        "tolerances": tolerances,
        **({"places": place_rules.to_dict(plan.places)} if plan.places else {}),
        "guards": plan.guards.demands(),
    }


def different(old: Any, new: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value that differs; mappings are compared key by key.

    A key that only one of them has is one difference. Lists and secret references are compared as a
    whole; 1, 1.0 and true are different.

    >>> list(different({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 4}, "e": 3}))
    [('a', 'c'), ('d',), ('e',)]
    """
    if _is_compared_by_key(old) and _is_compared_by_key(new):
        for key in dict.fromkeys([*old, *new]):
            if key in old and key in new:
                yield from different(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif old is not new and sorted_json(old) != sorted_json(new):
        yield path


def has(value: Any, path: Path) -> bool:
    """Return whether there is a value at a path that :func:`different` yielded."""
    return path[-1] in at(value, path[:-1])


def at(value: Any, path: Path) -> Any:
    """Return the value at a path that :func:`different` yielded, None if there is none.

    >>> limits = {"limits": {"node:*": 2}}
    >>> at(limits, ("limits", "node:*")), at(limits, ("limits", "rack:*"))
    (2, None)
    """
    for key in path:
        value = value.get(key)
    return value


def _is_compared_by_key(value: Any) -> bool:
    return isinstance(value, Mapping) and hidden_values.reference(value) is None
