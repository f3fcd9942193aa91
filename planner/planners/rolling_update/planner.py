# SPDX-License-Identifier: Apache-2.0
"""Rolling update planner: turns two versions of a template into batches that replace members.

Source: Heat's blueprint as-update-policy, and Heat itself. ``batches`` computes the batches,
``roll`` decides how a group is updated, ``plan_actions`` makes the actions and their links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planner.contract import Options, Planner
from planner.errors import InvalidInput, Mistake, UnknownPlugin, accepted
from planner.plan.model import ActionPlan, ProposedAction
from planner.planners.rolling_update import (
    group_change,
    hidden_parameters,
    members,
    summary,
    template,
)
from planner.planners.rolling_update.functions import Resolver
from planner.planners.rolling_update.members import Member
from planner.planners.rolling_update.plan_actions import RollBuilder
from planner.planners.rolling_update.roll import (
    IN_PLACE,
    Roll,
    RollSettings,
    RollStep,
    decide_roll,
    peak,
    side_by_side,
)
from planner.planners.rolling_update.schema import SCHEMA
from planner.planners.rolling_update.template import Group
from planner.planners.solution import read_actions


@dataclass(frozen=True, kw_only=True, slots=True)
class RollingUpdateProblem:
    """Two versions of the groups by name, their members, and the limits of the update.

    ``gates`` are the actions that are run after each batch. ``durations`` maps action types to
    seconds. ``deadline`` is a time, or a number of seconds from the start of the plan. ``quota`` is
    the maximum number of instances of all groups. None is no deadline, or no quota.
    """

    name: str | None
    old: Mapping[str, Group]
    new: Mapping[str, Group]
    members: Mapping[str, Sequence[Member]]
    settings: RollSettings
    gates: Sequence[ProposedAction] = ()
    durations: Mapping[str, float] = field(default_factory=dict)
    deadline: datetime | float | None = None
    quota: int | None = None
    warnings: tuple[str, ...] = ()


class RollingUpdatePlanner(Planner[RollingUpdateProblem]):
    """Replaces the members of groups whose definition changed, batch by batch.

    The update policy of the new template says how many members are replaced at once, how many stay
    in service, and how long to wait between batches. A failure pauses the plan, and no further
    members are replaced.
    """

    NAME = "rolling_update"
    KIND = "rolling_update"
    SCHEMA = SCHEMA
    FILES = {"old_file": "old", "new_file": "new"}

    def parse(self, document: Mapping[str, Any]) -> RollingUpdateProblem:
        """Read both templates, or a group and its change; raises InvalidInput with all mistakes."""
        if "group" in document:
            mistakes: list[Mistake] = []
            short = group_change.read(document, mistakes)
            name = short.new.name
            return self._problem(
                document, {name: short.old}, {name: short.new}, {name: short.members}, mistakes
            )
        return self._of_templates(document)

    def _of_templates(self, document: Mapping[str, Any]) -> RollingUpdateProblem:
        given = document.get("parameters") or {}
        before = {**given, **(document.get("old_parameters") or {})}
        old_template, new_template = document.get("old") or {}, document.get("new") or {}
        secret = hidden_parameters.names(old_template, new_template)
        old_reader = Resolver(old_template, before, ("old",), secret)
        new_reader = Resolver(new_template, given, ("new",), secret)
        old = template.groups(old_template, old_reader, with_policies=False)
        new = template.groups(new_template, new_reader, with_policies=True)
        mistakes = [*old_reader.mistakes, *new_reader.mistakes]
        known: dict[str, Sequence[Member]] = {}
        for name, entry in (document.get("groups") or {}).items():
            path = ("groups", name)
            known[name] = members.read(entry["members"], (*path, "members"), mistakes)
            if name not in new and not mistakes:
                text = f"no group {name!r} in the new template; {accepted(name, new)}"
                mistakes.append(Mistake(text, path))
        declared = old_reader.known_parameters | new_reader.known_parameters
        unknown = [
            f"{field}: no parameter {name!r} in the templates; {accepted(name, declared)}"
            for field in ("parameters", "old_parameters")
            for name in document.get(field) or {}
            if name not in declared
        ]
        return self._problem(document, old, new, known, mistakes, unknown)

    def _problem(
        self,
        document: Mapping[str, Any],
        old: Mapping[str, Group],
        new: Mapping[str, Group],
        known: Mapping[str, Sequence[Member]],
        mistakes: list[Mistake],
        more: Sequence[str] = (),
    ) -> RollingUpdateProblem:
        """Read what both forms have: gates, bounds and settings; ``more`` are warnings."""
        gates, warnings = self._gates(document, mistakes)
        deadline = _deadline(document.get("deadline"), mistakes)
        if mistakes:
            raise InvalidInput(dict.fromkeys(mistakes))
        quota, durations = document.get("quota"), document.get("durations") or {}
        return RollingUpdateProblem(
            name=document.get("name"),
            old=old,
            new=new,
            members=known,
            settings=_settings(document),
            gates=gates,
            durations=durations,
            deadline=deadline,
            quota=quota["instances"] if isinstance(quota, Mapping) else quota,
            warnings=(*warnings, *more, *self._unknown(durations)),
        )

    def _unknown(self, types: Iterable[str]) -> Iterator[str]:
        """Yield warnings for durations of unknown action types."""
        for name in types:
            try:
                self.surroundings.action_type(name)
            except UnknownPlugin as unknown:
                yield f"durations: {unknown}"

    def _gates(
        self, document: Mapping[str, Any], mistakes: list[Mistake]
    ) -> tuple[Sequence[ProposedAction], tuple[str, ...]]:
        try:
            return read_actions(self, {"actions": document.get("gates") or []})
        except InvalidInput as wrong:
            mistakes += [Mistake(m.text, ("gates", *m.path[1:]), m.place) for m in wrong.mistakes]
            return (), ()

    def plan(self, problem: RollingUpdateProblem, options: Options) -> ActionPlan:  # noqa: ARG002
        """Plan the batches of each group.

        Raises InvalidInput if they exceed the deadline or the quota.
        """
        rolls, warnings = _rolls(problem)
        builder = RollBuilder(self.surroundings, problem.gates, problem.durations)
        taken = list(side_by_side(rolls, problem.settings.max_unavailable_total))
        after: tuple[str, ...] = ()
        ends: dict[str, float] = {}
        for number, turn in enumerate(taken, 1):
            last: list[str] = []
            for roll in turn:
                end = builder.roll(roll, after)
                ends[roll.group.name] = max((builder.ends[u] for u in end), default=0.0)
                last += end if end != after else ()
            if number < len(taken) and last:
                after = builder.join(f"turn-{number}", tuple(last))
        total_s = max(builder.ends.values(), default=0.0)
        most = peak(taken)
        self._require_bounds(problem, most, total_s)
        timed = not builder.untimed
        return self.surroundings.new_plan(
            self.NAME,
            builder.actions,
            name=problem.name,
            efficacy_indicators=tuple(
                summary.of_group(roll, ends[roll.group.name], timed=timed) for roll in rolls
            ),
            global_efficacy=(summary.of_all(rolls, most, total_s, builder.untimed),),
            on_failure="pause",
            warnings=(*problem.warnings, *warnings),
        )

    def _require_bounds(self, problem: RollingUpdateProblem, peak: int, total_s: float) -> None:
        mistakes = []
        if problem.quota is not None and peak > problem.quota:
            text = f"there are {peak} instances at the peak, and the quota is {problem.quota}"
            mistakes.append(Mistake(text, ("quota",)))
        within, by = problem.deadline, ""
        if isinstance(within, datetime):
            by = f", by {within.isoformat()}"
            within = max(0.0, (within - self.surroundings.now()).total_seconds())
        if within is not None and total_s > within:
            text = f"it takes {total_s:g} s or more, and has to end within {within:g} s{by}"
            mistakes.append(Mistake(text, ("deadline",)))
        if mistakes:
            raise InvalidInput(mistakes)


def _settings(document: Mapping[str, Any]) -> RollSettings:
    return RollSettings(
        mode=document.get("mode", "create_first"),
        pause_first=document.get("pause_first", False),
        steps=tuple(
            RollStep(int(step.rstrip("%")), percent=True)
            if isinstance(step, str)
            else RollStep(step)
            for step in document.get("steps") or ()
        ),
        max_unavailable_total=document.get("max_unavailable_total"),
    )


def _deadline(written: Any, mistakes: list[Mistake]) -> datetime | float | None:
    if not isinstance(written, str):
        return None if written is None else float(written)
    try:
        return members.parse_time(written)
    except ValueError:
        text = f"{written!r} is neither a time, such as 2026-01-31T06:00:00Z, nor seconds"
        mistakes.append(Mistake(text, ("deadline",)))
        return None


def _rolls(problem: RollingUpdateProblem) -> tuple[list[Roll], list[str]]:
    rolls, warnings = [], []
    for name, new in problem.new.items():
        old = problem.old.get(name)
        known = problem.members.get(name)
        if known is None and old is not None:
            known = members.unlisted(name, old.size(None))
        found = decide_roll(new, old, known or [], problem.settings)
        rolls.append(found)
        gone = [m for phase in found.phases for m in phase.terminate]
        if gone and name not in problem.members:
            text = f"its members are not listed: {name}-1 to {name}-{len(known or [])} are"
            warnings.append(f"{name}: {text} assumed; list them in 'groups'")
        warnings += found.warnings
    for name in problem.old:
        if name not in problem.new:
            warnings.append(f"{name} is not in the new template: its members are not changed")
    if not problem.new:
        types = ", ".join(template.TYPES)
        warnings.append(f"there is no group in the new template: only {types} are groups")
    if problem.settings.max_unavailable_total is not None and problem.settings.mode != IN_PLACE:
        warnings.append("max_unavailable_total has no effect: new members are created first")
    return rolls, warnings
