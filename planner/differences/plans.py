# SPDX-License-Identifier: Apache-2.0
"""Compares two plans, without their uuids and their order, in time linear in actions and links."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner import graph
from planner.differences import fields, matching
from planner.differences.link_changes import LinkChanges, LinkSet
from planner.differences.links import LinkReader, LinkSets, Members, is_join
from planner.errors import Path
from planner.model import Action, ActionPlan


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
    numbers = matching.numbers(_without_joins(old), _without_joins(new))
    known = [_known(p, n, shared) for p, n in zip((old, new), numbers, strict=True)]
    both, removed, added = _paired(*known)
    labels = {k.number: label(k.action) for side in known for k in side}
    changes = LinkChanges(labels)
    new_links = [(other, one.links) for one, other in both] + [(k, LinkSets()) for k in added]
    lost_links = [(one, other.links) for one, other in both] + [(k, LinkSets()) for k in removed]
    return PlanDifference(
        added=tuple(k.action for k in added),
        removed=tuple(k.action for k in removed),
        changed=tuple(
            ChangedAction(old=one.action, new=other.action, paths=_paths(one.action, other.action))
            for one, other in both
            if one.text != other.text
        ),
        moved=tuple(
            MovedAction(new=other.action, old_wave=one.wave, new_wave=other.wave)
            for one, other in both
            if one.wave != other.wave
        ),
        new_links=changes.grouped(_in_order(new_links)),
        lost_links=changes.grouped(_in_order(lost_links)),
        paths=tuple(fields.different(fields.of_plan(old), fields.of_plan(new))),
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


def _without_joins(plan: ActionPlan) -> list[Action]:
    return [action for action in plan.actions if not is_join(action)]


def _known(
    plan: ActionPlan, numbers: Mapping[str, int], shared: dict[Members, Members]
) -> list[_Known]:
    reader, waves = LinkReader(plan.actions, numbers, shared), wave_numbers(plan)
    return [
        _Known(
            a,
            numbers[a.uuid],
            i,
            waves.get(a.uuid, 0),
            reader.links(a),
            fields.encoded(fields.of_action(a)),
        )
        for i, a in enumerate(plan.actions)
        if a.uuid in numbers
    ]


def _paired(
    old: Iterable[_Known], new: Iterable[_Known]
) -> tuple[list[tuple[_Known, _Known]], list[_Known], list[_Known]]:
    """Return the pairs of matching actions in the order of the new plan, the removed, the added."""
    sides: dict[int, tuple[list[_Known], list[_Known]]] = {}
    for i, side in enumerate((old, new)):
        for known in side:
            sides.setdefault(known.number, ([], []))[i].append(known)
    both: list[tuple[_Known, _Known]] = []
    removed: list[_Known] = []
    added: list[_Known] = []
    for members in sides.values():
        pairs, only_old, only_new = matching.pairs(*members, _ALIKE)
        both += pairs
        removed += only_old
        added += only_new
    both.sort(key=lambda pair: pair[1].place)
    return both, sorted(removed, key=_place), sorted(added, key=_place)


#: The keys by which actions with equal numbers are paired: all values, then all but the wave.
_ALIKE: Sequence[Callable[[_Known], Hashable]] = (
    lambda known: (known.text, known.links, known.wave),
    lambda known: (known.text, known.links),
)


def _place(known: _Known) -> int:
    return known.place


def _in_order(
    compared: Sequence[tuple[_Known, LinkSets]],
) -> Iterator[tuple[int, LinkSets, LinkSets]]:
    """Yield, in plan order, the number of each action, its links, and those in the other plan."""
    for known, others in sorted(compared, key=lambda pair: pair[0].place):
        yield known.number, known.links, others


def _paths(old: Action, new: Action) -> tuple[Path, ...]:
    return tuple(fields.different(fields.of_action(old), fields.of_action(new)))
