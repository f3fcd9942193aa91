# SPDX-License-Identifier: Apache-2.0
"""Decides how groups are updated: the cause, the mode, which members go, in which batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from planner.errors import Mistake
from planner.plan.graph_algorithms import CycleError, topological_order
from planner.planners.rolling_update import causes, definitions
from planner.planners.rolling_update.batches import (
    CREATE_FIRST,
    IN_PLACE,
    RESIZE,
    Batch,
    Phase,
    Roll,
    RollSettings,
    create_first,
    in_place,
    step_of,
)
from planner.planners.rolling_update.members import (
    Member,
    members_of,
    not_there,
    termination_order,
    wanted_keys,
    with_servers,
)
from planner.planners.rolling_update.template import TYPES, Group
from planner.planners.rolling_update.update_policy import AT_ONCE, UpdatePolicy
from planner.schemas import ranges


class Groups(NamedTuple):
    """Two versions of the groups by name, and the members that are listed."""

    old: Mapping[str, Group]
    new: Mapping[str, Group]
    members: Mapping[str, Sequence[Member]]


class NoRoom(ValueError):
    """A group cannot keep both its minimum in service and its maximum."""


def decide(
    groups: Groups, settings: RollSettings, mistakes: list[Mistake]
) -> tuple[list[Roll], list[str]]:
    """Return the update of each group, and warnings; append mistakes."""
    rolls: list[Roll] = []
    warnings: list[str] = []
    for name, new in groups.new.items():
        try:
            rolls.append(_roll_of(new, groups, settings, mistakes, warnings))
        except NoRoom as reason:
            mistakes.append(Mistake(f"{name}: {reason}", ("new",)))
    rolls = _after_others(rolls, mistakes)
    for name in groups.old:
        if name not in groups.new:
            warnings.append(f"{name} is not in the new template: its members are not changed")
    if not groups.new:
        types = ", ".join(TYPES)
        none = "there is no group in the new template, or none whose condition holds"
        warnings.append(f"{none}: only {types} are groups")
    if settings.max_unavailable_total is not None and settings.mode != IN_PLACE:
        warnings.append("max_unavailable_total has no effect: new members are created first")
    return rolls, warnings


def _after_others(rolls: list[Roll], mistakes: list[Mistake]) -> list[Roll]:
    """Return the updates in an order in which each follows those that its group depends on."""
    at = {roll.group.name: i for i, roll in enumerate(rolls)}
    try:
        order = topological_order(
            [[tuple([at[name] for name in roll.group.depends_on if name in at])] for roll in rolls]
        )
    except CycleError as error:
        for cycle in error.cycles():
            names = " -> ".join(rolls[i].group.name for i in (*cycle, cycle[0]))
            mistakes.append(Mistake(f"groups depend on each other: {names}", ("new",)))
        return rolls
    return [rolls[i] for i in order]


def _roll_of(
    new: Group,
    groups: Groups,
    settings: RollSettings,
    mistakes: list[Mistake],
    warnings: list[str],
) -> Roll:
    old, listed = groups.old.get(new.name), groups.members.get(new.name)
    new = with_servers(new, listed, mistakes)
    old = None if old is None else with_servers(old, listed, mistakes)
    warnings += [f"{new.name}: {note}" for note in new.notes]
    members, said = members_of(old, new, listed, mistakes)
    more: list[str] = []
    found = decide_roll(new, old, members, settings, more)
    if said and any(phase.terminate for phase in found.phases):
        warnings.append(f"{new.name}: {said}")
    warnings += more
    if found.phases:
        _require_fit(found, mistakes, warnings)
    return found


def _require_fit(roll: Roll, mistakes: list[Mistake], warnings: list[str]) -> None:
    """Append a mistake if no action can change members of this kind, and warnings."""
    name, policy = roll.group.name, roll.group.policy
    value = roll.group.configuration.of(next(iter(roll.keys), None))
    if roll.group.servers is not None:
        wrong, warning = definitions.not_a_script(value), None
    else:
        wrong, warning = definitions.not_an_instance(value)
    if wrong is not None:
        mistakes.append(Mistake(f"{name} cannot be updated: {wrong}", ("new",)))
    if warning is not None:
        warnings.append(f"{name}: {warning}")
    if policy is not None and policy.signals_s is not None and roll.cause:
        text = f"each batch waits {policy.signals_s:g} s, or for 'gates'"
        warnings.append(f"{name}: no signal of a member reaches this plan: {text}")


def decide_roll(
    new: Group,
    old: Group | None,
    members: Sequence[Member],
    settings: RollSettings,
    warnings: list[str],
) -> Roll:
    """Return the update of a group that has these members; append warnings.

    Without a cause, the update only changes the number of members to the size in the new template,
    and which they are. Raises NoRoom.
    """
    wanted = wanted_keys(new, old or new, members)
    kept = None if wanted is None else set(wanted).intersection(m.key or "" for m in members)
    found = causes.change(new, old, (None,) if kept is None else sorted(kept))
    for name in not_there(new, old or new, members):
        warnings.append(f"{new.name}: it removes {name!r}, which is no member")
    warnings += found.warnings
    if found.cause is not None and kept is not None:
        members = [replace(m, current=m.current or m.key in found.alike) for m in members]
    size = new.size(len(members), old) if wanted is None else len(wanted)
    change = _Members(new, members, size, wanted, settings)
    policy = new.policy
    if found.cause is None or policy is None:
        return Roll(
            group=new,
            old=old,
            members=members,
            phases=list(change.resized()),
            cause=None,
            keys=change.missing,
        )
    if policy.min_in_service > size:
        text = f"a minimum of {policy.min_in_service} is more than its size: {size} is meant"
        warnings.append(f"{new.name}: {text}")
    if policy is AT_ONCE:
        warnings.append(f"{new.name}: it has no rolling_update, so all members change at once")
    phases = list(change.replaced(policy, warnings))
    gone = {member.id for phase in phases for member in phase.terminate}
    for member in members:
        if member.current and member.failed and member.id not in gone:
            warnings.append(f"{new.name}: {member.id} is current and failed: it is left as it is")
    return Roll(
        group=new,
        old=old,
        members=members,
        phases=phases,
        cause=found.cause,
        keys=list(change.keys()),
    )


class _Members:
    """The members of a group, its wanted size, and the keys that are wanted, if it has keys.

    ``missing`` are keys that are wanted and have no member. ``leaving`` are the ids of members that
    do not stay, current or not: those whose keys are not wanted; in a group without keys, failed
    ones of too many. ``turn`` has all members in the order in which they go.
    """

    def __init__(
        self,
        group: Group,
        members: Sequence[Member],
        size: int,
        wanted: Sequence[str] | None,
        settings: RollSettings,
    ) -> None:
        self.group, self.size, self.settings = group, size, settings
        known, stay = {member.key for member in members}, set(wanted or ())
        self.missing = [key for key in wanted or () if key not in known]
        self.surplus = max(0, len(members) - size)
        if wanted is None:
            oldest = termination_order(members, newest_go=group.newest_go)
            stuck = [m.id for m in oldest if m.current and m.failed]
            self.leaving = set(stuck[: self.surplus])
        else:
            self.leaving = {m.id for m in members if m.key not in stay}
            self.surplus = len(self.leaving)
        self.turn = termination_order(members, self.leaving, wanted, newest_go=group.newest_go)
        self.has_keys = wanted is not None

    def keys(self) -> Iterator[str]:
        """Yield the keys of new members in the order of their creation."""
        missing = iter(self.missing)
        for member in self.turn:
            if member.id in self.leaving:
                yield from islice(missing, 1)
            elif self.has_keys and not member.current and member.key is not None:
                yield member.key
        yield from missing

    def resized(self) -> Iterator[Phase]:
        """Yield the phase that brings the group to its size, without a roll."""
        create = self.size - len(self.turn) + self.surplus
        if create or self.surplus:
            gone = tuple(self.turn[: self.surplus])
            first = self.settings.mode == CREATE_FIRST
            yield Phase(name=RESIZE, create=create, terminate=gone, creates_first=first)

    def replaced(self, policy: UpdatePolicy, warnings: list[str]) -> Iterator[Phase]:
        """Yield the batches, and the growth after them."""
        if policy.replaces:
            yield from self._whole()
            return
        target, done = min(self.size, len(self.turn)), 0
        mode, found = self._batches(target, policy, warnings)
        for number, batch in enumerate(found, 1):
            between = policy.pause_s if number < len(found) else 0
            yield Phase(
                name=f"batch-{number}",
                create=batch.create,
                terminate=tuple(self.turn[done : done + batch.terminate]),
                creates_first=mode == CREATE_FIRST,
                pause_before_s=policy.pause_s if self.settings.pause_first else 0,
                pause_after_s=0 if self.settings.pause_first else between,
            )
            done += batch.terminate
        if self.size > target:
            yield Phase(name=RESIZE, create=self.size - target, terminate=())

    def _whole(self) -> Iterator[Phase]:
        """Yield the batches of a new group: it is created whole, then the old one goes."""
        gone = tuple(m for m in self.turn if not m.current)
        create = max(0, self.size - len(self.turn) + len(gone))
        for number, (new, old) in enumerate(((create, ()), (0, gone)), 1):
            if new or old:
                yield Phase(name=f"batch-{number}", create=new, terminate=old)

    def _batches(
        self, target: int, policy: UpdatePolicy, warnings: list[str]
    ) -> tuple[str, list[Batch]]:
        """Return the mode, and its batches: they are cut where the group has a maximum."""
        kept = [m for m in self.turn if m.current and m.id not in self.leaving]
        steps = [step_of(step, target) for step in self.settings.steps]
        largest, there = policy.max_batch_size, len(self.turn)
        bounded = not self.settings.surge and len(kept) < target
        most = self.group.most if bounded and self.group.most is not None else ranges.MOST
        mode = IN_PLACE if self.group.servers is not None else self.settings.mode
        if mode == CREATE_FIRST and there >= most:
            text = f"its maximum of {most} leaves no room for new members: old ones go first"
            warnings.append(f"{self.group.name}: {text}; 'surge: allowed' exceeds it")
            mode = IN_PLACE
        if mode == CREATE_FIRST:
            largest = min(largest, most - there)
            return mode, create_first(target, there, len(kept), largest, steps)
        if self.settings.max_unavailable_total is not None:
            largest = min(largest, self.settings.max_unavailable_total)
        # A failed member that is kept is not in service: the others must meet the minimum.
        least = min(policy.min_in_service + sum(m.failed for m in kept), target)
        if least >= most:
            text = f"a minimum of {policy.min_in_service} in service and a maximum of {most}"
            raise NoRoom(f"{text} leave no room for a batch: 'surge: allowed' exceeds it")
        largest = min(largest, most - least)
        return mode, in_place(target, there, len(kept), largest, least, steps)
