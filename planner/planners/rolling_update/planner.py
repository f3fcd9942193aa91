# SPDX-License-Identifier: Apache-2.0
"""Rolling update planner: turns two versions of a template into batches that replace members.

Source: Heat's blueprint as-update-policy, and Heat itself. ``decide`` decides how a group is
updated, ``batches`` computes the batches, ``plan_actions`` makes the actions and their links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planner.contract import Options, Planner
from planner.errors import InvalidInput, Mistake, UnknownPlugin, accepted
from planner.plan.model import ActionPlan, ProposedAction
from planner.planners.rolling_update import group_change, members, summary, template
from planner.planners.rolling_update.batches import (
    CREATE_FIRST,
    Roll,
    RollSettings,
    peak,
    side_by_side,
)
from planner.planners.rolling_update.conditions import hidden_parameters
from planner.planners.rolling_update.decide import Groups, decide
from planner.planners.rolling_update.functions import Resolver
from planner.planners.rolling_update.members import Member
from planner.planners.rolling_update.plan_actions import RollBuilder
from planner.planners.rolling_update.schema import SCHEMA
from planner.planners.solution import read_actions
from planner.schemas import ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class RollingUpdateProblem:
    """The updates of groups, and their limits.

    ``gates`` are the actions that are run after each batch. ``durations`` maps action types to
    seconds. ``deadline`` is a time, or a number of seconds from the start of the plan. ``quota`` is
    the maximum number of instances of all groups. None is no deadline, or no quota.
    """

    name: str | None
    rolls: Sequence[Roll]
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
            groups = group_change.read(document, mistakes)
            return self._problem(document, groups, mistakes)
        return self._of_templates(document)

    def _of_templates(self, document: Mapping[str, Any]) -> RollingUpdateProblem:
        given = document.get("parameters") or {}
        before = {**given, **(document.get("old_parameters") or {})}
        old_template, new_template = document.get("old") or {}, document.get("new") or {}
        secret = hidden_parameters(old_template, new_template)
        files = document.get("files") or {}
        earlier = {**files, **(document.get("old_files") or {})}
        old_reader = Resolver(old_template, before, ("old",), secret, earlier)
        new_reader = Resolver(new_template, given, ("new",), secret, files)
        old = template.groups(old_template, old_reader, with_policies=False)
        new = template.groups(new_template, new_reader, with_policies=True)
        mistakes: list[Mistake] = []
        known: dict[str, Sequence[Member]] = {}
        for name, entry in (document.get("groups") or {}).items():
            path = ("groups", name)
            known[name] = members.read(entry["members"], (*path, "members"), mistakes)
            if name not in new and not new_reader.mistakes:
                text = f"no group {name!r} in the new template; {accepted(name, new)}"
                mistakes.append(Mistake(text, path))
        declared = old_reader.known_parameters | new_reader.known_parameters
        unknown = [
            f"{field}: no parameter {name!r} in the templates; {accepted(name, declared)}"
            for field in ("parameters", "old_parameters")
            for name in document.get(field) or {}
            if name not in declared
        ]
        unknown += template.left_out(new_template)
        groups = Groups(old, new, known)
        return self._problem(document, groups, mistakes, unknown, (old_reader, new_reader))

    def _problem(
        self,
        document: Mapping[str, Any],
        groups: Groups,
        mistakes: list[Mistake],
        more: Sequence[str] = (),
        readers: Sequence[Resolver] = (),
    ) -> RollingUpdateProblem:
        """Read what both forms have: gates, bounds and settings; ``more`` are warnings.

        Definitions that depend on the index of a member are evaluated here, by the ``readers``.
        """
        settings = _settings(document)
        told = [mistake for reader in readers for mistake in reader.mistakes]
        rolls, warned = ([], []) if told else decide(groups, settings, mistakes)
        for roll in rolls:
            for key in roll.keys:  # what cannot be evaluated for a new member is a mistake
                roll.group.configuration.of(key)
        for name in sorted({name for reader in readers for name in reader.unknown_files}):
            warned.append(
                f"get_file: {name} is not in 'files': a change of its content is not seen"
            )
        mistakes[:0] = told or [mistake for reader in readers for mistake in reader.mistakes]
        gates, warnings = self._gates(document, mistakes)
        deadline = _deadline(document.get("deadline"), mistakes)
        if mistakes:
            raise InvalidInput(dict.fromkeys(mistakes))
        quota, durations = document.get("quota"), document.get("durations") or {}
        return RollingUpdateProblem(
            name=document.get("name"),
            rolls=rolls,
            settings=settings,
            gates=gates,
            durations=durations,
            deadline=deadline,
            quota=quota["instances"] if isinstance(quota, Mapping) else quota,
            warnings=(*warnings, *more, *self._unknown(durations), *warned),
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
        rolls = problem.rolls
        builder = RollBuilder(self.surroundings, problem.gates, problem.durations)
        taken = list(side_by_side(rolls, problem.settings.max_unavailable_total))
        after: tuple[str, ...] = ()
        ends: dict[str, float] = {}
        lasts: dict[str, tuple[str, ...]] = {}
        #: The groups that change and end last of each group and those that it depends on.
        ending: dict[str, Sequence[str]] = {}
        for number, turn in enumerate(taken, 1):
            last: list[str] = []
            for roll in turn:
                name, earlier = roll.group.name, roll.group.depends_on
                others = list(dict.fromkeys(o for n in earlier for o in ending.get(n, ())))
                before = (*after, *(uuid for other in others for uuid in lasts[other]))
                end = builder.roll(roll, before, others)
                ends[name] = max((builder.ends[u] for u in end), default=0.0)
                lasts[name] = end if end != before else ()
                ending[name] = [name] if lasts[name] else others
                last += lasts[name]
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
            warnings=(
                *problem.warnings,
                *(
                    f"{name}: its new instances are made without {', '.join(sorted(fields))}"
                    for name, fields in builder.unused.items()
                    if fields
                ),
            ),
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
        mode=document.get("mode", CREATE_FIRST),
        surge=document.get("surge") == "allowed",
        pause_first=document.get("pause_first", False),
        steps=document.get("steps") or (),
        max_unavailable_total=document.get("max_unavailable_total"),
    )


def _deadline(written: Any, mistakes: list[Mistake]) -> datetime | float | None:
    if not isinstance(written, str):
        return None if written is None else float(written)
    try:
        return ranges.moment(written)
    except ValueError:
        text = f"{written!r} is neither a time, such as 2026-01-31T06:00:00Z, nor seconds"
        mistakes.append(Mistake(text, ("deadline",)))
        return None
