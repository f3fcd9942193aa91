# SPDX-License-Identifier: Apache-2.0
"""Decides how one group is updated: the cause, the mode, which members go, in which batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.planners.rolling_update import causes, indices
from planner.planners.rolling_update.batches import Batch, create_first, in_place
from planner.planners.rolling_update.members import Member, termination_order
from planner.planners.rolling_update.roll import (
    CREATE_FIRST,
    IN_PLACE,
    RESIZE,
    Phase,
    Roll,
    RollSettings,
)
from planner.planners.rolling_update.template import Group
from planner.planners.rolling_update.update_policy import AT_ONCE, UpdatePolicy


class NoRoom(ValueError):
    """A group cannot keep both its minimum in service and its maximum."""


def decide_roll(
    new: Group, old: Group | None, members: Sequence[Member], settings: RollSettings
) -> Roll:
    """Return the update of a group that has these members.

    Without a cause, the update only changes the number of members to the size in the new template,
    and which they are. Raises NoRoom.
    """
    wanted = indices.names(new, old or new, members)
    size = new.size(len(members), old) if wanted is None else len(wanted)
    stay = [m.key for m in members if wanted is not None and m.key in wanted]
    found = causes.change(new, old, (None,) if wanted is None else stay)
    warnings = [
        f"{new.name}: it removes {name!r}, which is no member"
        for name in indices.not_there(new, old or new, members)
    ]
    warnings += found.warnings
    if found.cause is not None:
        members = [
            replace(m, current=m.current or (wanted is not None and m.key in found.alike))
            for m in members
        ]
    plan = _Members(new, members, size, wanted, settings)
    if found.cause is None or new.policy is None:
        phases = list(plan.resized())
        return Roll(
            group=new,
            old=old,
            members=members,
            phases=phases,
            cause=None,
            keys=plan.missing,
            warnings=tuple(warnings),
        )
    policy = new.policy
    if policy.min_in_service > size:
        text = f"a minimum of {policy.min_in_service} is more than its size: {size} is meant"
        warnings.append(f"{new.name}: {text}")
    if policy is AT_ONCE:
        warnings.append(f"{new.name}: it has no rolling_update, so all members change at once")
    phases = list(plan.replaced(policy, warnings))
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
        keys=plan.keys(),
        warnings=tuple(warnings),
    )


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of a group, its wanted size, and the keys that are wanted, if it has keys."""

    group: Group
    members: Sequence[Member]
    size: int
    wanted: Sequence[str] | None
    settings: RollSettings

    @property
    def missing(self) -> list[str]:
        """The keys that are wanted, and have no member."""
        known = {member.key for member in self.members}
        return [key for key in self.wanted or () if key not in known]

    @property
    def leaving(self) -> set[str]:
        """The ids of members that do not stay, current or not: failed ones of too many, others.

        In a group with keys, those whose keys are not wanted.
        """
        if self.wanted is not None:
            return {m.id for m in self.members if m.key not in self.wanted}
        surplus = max(0, len(self.members) - self.size)
        oldest = termination_order(self.members)
        return {m.id for m in [m for m in oldest if m.current and m.failed][:surplus]}

    def turn(self) -> list[Member]:
        """Return the members in the order in which they go."""
        return termination_order(self.members, self.leaving, self.wanted)

    def keys(self) -> list[str]:
        """Return the keys of new members in the order of their creation."""
        if self.wanted is None:
            return []
        missing, found = iter(self.missing), []
        for member in self.turn():
            if member.id in self.leaving:
                found += [key for key in [next(missing, None)] if key is not None]
            elif not member.current and member.key is not None:
                found.append(member.key)
        return [*found, *missing]

    def resized(self) -> Iterator[Phase]:
        """Yield the phase that brings the group to its size, without a roll."""
        create, gone = max(0, self.size - len(self.members)), tuple(self.turn())
        gone = gone[: max(0, len(self.members) - self.size)]
        if self.wanted is not None:
            create, gone = len(self.missing), tuple(m for m in self.turn() if m.id in self.leaving)
        if create or gone:
            first = self.settings.mode == CREATE_FIRST
            yield Phase(name=RESIZE, create=create, terminate=gone, creates_first=first)

    def replaced(self, policy: UpdatePolicy, warnings: list[str]) -> Iterator[Phase]:
        """Yield the batches, and the growth after them."""
        target = min(self.size, len(self.members))
        turn, done = self.turn(), 0
        if policy.replaces:
            yield from self._whole(turn)
            return
        mode, found = self._batches(target, policy, warnings)
        for number, batch in enumerate(found, 1):
            between = policy.pause_s if number < len(found) else 0
            yield Phase(
                name=f"batch-{number}",
                create=batch.create,
                terminate=tuple(turn[done : done + batch.terminate]),
                creates_first=mode == CREATE_FIRST,
                pause_before_s=policy.pause_s if self.settings.pause_first else 0,
                pause_after_s=0 if self.settings.pause_first else between,
            )
            done += batch.terminate
        if self.size > target:
            yield Phase(name=RESIZE, create=self.size - target, terminate=())

    def _whole(self, turn: Sequence[Member]) -> Iterator[Phase]:
        """Yield the batches of a new group: it is created whole, then the old one goes."""
        gone = tuple(m for m in turn if not m.current)
        create = max(0, self.size - sum(m.current for m in turn))
        for number, (new, old) in enumerate(((create, ()), (0, gone)), 1):
            if new or old:
                yield Phase(name=f"batch-{number}", create=new, terminate=old)

    def _batches(
        self, target: int, policy: UpdatePolicy, warnings: list[str]
    ) -> tuple[str, list[Batch]]:
        leaving, settings = self.leaving, self.settings
        kept = [m for m in self.members if m.current and m.id not in leaving]
        steps = [step.of(target) for step in settings.steps]
        largest, there, most = policy.max_batch_size, len(self.members), self.group.most
        limit = None if settings.surge else most
        mode = IN_PLACE if self.group.servers is not None else settings.mode
        if mode == CREATE_FIRST and limit is not None and there >= limit and len(kept) < target:
            text = f"its maximum of {limit} leaves no room for new members: old ones go first"
            warnings.append(f"{self.group.name}: {text}; 'surge: allowed' exceeds it")
            mode = IN_PLACE
        if mode == CREATE_FIRST:
            room = largest if limit is None or len(kept) >= target else limit - there
            return mode, create_first(target, there, len(kept), min(largest, room), steps)
        if settings.max_unavailable_total is not None:
            largest = min(largest, settings.max_unavailable_total)
        # A failed member that is kept is not in service: the others must meet the minimum.
        least = min(policy.min_in_service + sum(m.failed for m in kept), target)
        if limit is not None and len(kept) < target:
            if least >= limit:
                text = f"a minimum of {policy.min_in_service} in service and a maximum of {limit}"
                raise NoRoom(f"{text} leave no room for a batch: 'surge: allowed' exceeds it")
            largest = min(largest, limit - least)
        return mode, in_place(target, there, len(kept), largest, least, steps)
