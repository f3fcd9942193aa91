# SPDX-License-Identifier: Apache-2.0
"""Selects a part of a deployment: the chosen tasks and, if requested, their dependencies.

A task that is left out, but is on a path between two chosen ones, is replaced by a join, which
keeps the order and the need between them. A task depends on all its direct and indirect
predecessors, also through anchors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.graph_algorithms import reachable
from planner.plan.model import ANCHOR, Action, ActionPlan
from planner.plan.states import ActionState, StateReason
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.problem import MASTER, SYNC, Deployment
from planner.planners.deployment.steps import (
    DeploymentBuilder,
    DeploymentStep,
    groups_not_implied,
)

#: Parameters that only a simulated node reads.
_SIMULATION_ONLY = frozenset({"duration_s"})


class _Dependents(NamedTuple):
    """The first task that depends on an omitted one, and the number of all such tasks."""

    first: str
    number: int

    def and_more(self, number: int) -> _Dependents:
        return _Dependents(self.first, self.number + number)

    @property
    def text(self) -> str:
        if self.number == 1:
            return f"{self.first} depends"
        return f"{self.first} and {self.number - 1} more depend"


class Selection:
    """The chosen steps by position, each with the reason why it was chosen."""

    def __init__(self, deployment: Deployment, steps: Sequence[DeploymentStep]) -> None:
        self._deployment, self._part = deployment, deployment.part
        self._steps = steps
        self.reasons: dict[int, str | None] = {}
        self.notes: list[str] = []

    def steps(self, builder: DeploymentBuilder) -> list[DeploymentStep]:
        """Return the selected steps, with links among them, and append warnings to ``notes``.

        There are warnings for dependencies that are left out, and for tasks that are only in the
        earlier plan. Raises InvalidInput for unknown names.
        """
        part = self._part
        if part.nodes is None and part.tasks is None and part.changed_since is None:
            return list(self._steps)
        self.reasons = dict.fromkeys(self._named())
        if part.changed_since is not None:
            changed = self._changed(part.changed_since, builder)
            self.reasons = {i: changed[i] for i in self.reasons if i in changed}
        if part.fetch:
            self._fetch()
        elif part.changed_since is None:
            self._note_missing()
        return self._remaining()

    def _named(self) -> list[int]:
        """Return the positions of the steps of the requested nodes and tasks.

        Raises InvalidInput for unknown names.
        """
        part, deployment = self._part, self._deployment
        mistakes: list[Mistake] = []
        uids = {SYNC, MASTER, *(node.name for node in deployment.nodes)}
        for k, uid in enumerate(part.nodes or ()):
            if uid not in uids:
                text = f"no node {uid!r}; {accepted(uid, uids, mistakes)}"
                mistakes.append(Mistake(text, ("only", "nodes", k)))
        asked = frozenset(part.nodes or ())
        names = {task.id: None for task in deployment.runnable}
        index, ids = deployment.patterns.index(names), set[str]()
        for k, name in enumerate(part.tasks or ()):
            if not index(name):
                text = f"no task is called {name!r}{near(name, names, mistakes)}"
                mistakes.append(Mistake(text, ("only", "tasks", k)))
            ids.update(index(name))
        if mistakes:
            raise InvalidInput(mistakes)
        return [
            i
            for i, step in enumerate(self._steps)
            if step.task is not None
            and (part.nodes is None or step.uid in asked)
            and (part.tasks is None or step.task.id in ids)
        ]

    def _changed(self, earlier: ActionPlan, builder: DeploymentBuilder) -> dict[int, str]:
        """Return the reason for each step that differs from an earlier plan.

        A step that depends on such a step is included. Notes are appended for tasks that are only
        in the earlier plan, and if nothing differs.
        """
        known = {action.name: action for action in earlier.actions}
        short = earlier.uuid[:8]
        found: dict[int, str] = {}
        causes: dict[int, str] = {}
        for i, step in enumerate(self._steps):
            if step.task is not None:
                why = _difference(known.pop(step.name, None), builder.about(step), short)
                if why:
                    found[i], causes[i] = why, step.name
                    continue
            cause = next((causes[p] for p in _before(step) if p in causes), None)
            if cause is not None:
                causes[i] = cause
                if step.task is not None:
                    found[i] = f"depends on {cause}, which changed"
        gone = [a.label for a in known.values() if a.name and a.action_type != "join"]
        if gone:
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
            self.notes.append(f"no longer there since plan {short}: {', '.join(gone[:5])}{more}")
        if not found:
            self.notes.append(f"nothing changed since plan {short}")
        return found

    def _fetch(self) -> None:
        # The name of the task for which a step was added.
        added: dict[int, str] = {}
        for i in range(len(self._steps) - 1, -1, -1):
            if i in self.reasons:
                name = self._steps[i].name if self._steps[i].task is not None else added[i]
                for p in _before(self._steps[i]):
                    if p not in self.reasons:
                        added[p], self.reasons[p] = name, f"{name} depends on it"

    def _note_missing(self) -> None:
        """Add a note for each dependency that is left out, with the tasks that depend on it."""
        wanting: dict[int, _Dependents] = {}
        through: dict[int, _Dependents] = {}
        for i in sorted(self.reasons):
            step = self._steps[i]
            loose = [g for g in step.any_of if not any(self._chosen(p) for p in g)]
            for p in (*step.before, *(p for group in loose for p in group)):
                who = through if self._steps[p].task is None else wanting
                who[p] = who[p].and_more(1) if p in who else _Dependents(step.name, 1)
        for join, users in through.items():
            for p in _before(self._steps[join]):
                wanting[p] = wanting[p].and_more(users.number) if p in wanting else users
        for p, users in sorted(wanting.items()):
            if p not in self.reasons:
                self.notes.append(f"{self._steps[p].name} is left out; {users.text} on it")

    def _chosen(self, i: int) -> bool:
        if i in self.reasons:
            return True
        step = self._steps[i]
        return step.task is None and any(p in self.reasons for p in _before(step))

    def _remaining(self) -> list[DeploymentStep]:
        """Return the chosen steps, and joins in place of the omitted steps between them."""
        leading = reachable(self.reasons, lambda i: _before(self._steps[i]))
        rest = _Remaining(self._steps)
        for i in sorted(leading):
            if i in self.reasons and self._steps[i].task is not None:
                rest.keep(i, self.reasons[i])
            else:
                rest.pass_through(i)
        return rest.made


class _Remaining:
    """The steps of the selection; omitted steps with the same predecessors share one join."""

    def __init__(self, steps: Sequence[DeploymentStep]) -> None:
        self._steps = steps
        self.made: list[DeploymentStep] = []
        #: The old positions of the chosen steps, and of joins with a chosen predecessor.
        self._kept: set[int] = set()
        #: Maps the old position of a step to the new positions that its successors wait for
        #: instead.
        self._instead: dict[int, tuple[int, ...]] = {}
        self._joins: dict[object, int] = {}

    def keep(self, i: int, reason: str | None) -> None:
        """Copy a step, and remap its links to the steps that are kept."""
        step = self._steps[i]
        before, groups = self._links(step)
        self._instead[i] = (len(self.made),)
        self._kept.add(i)
        self.made.append(step._replace(before=before, any_of=groups, reason=reason or step.reason))

    def pass_through(self, i: int) -> None:
        """Omit a step; its successors inherit its predecessors, if several through a join."""
        step = self._steps[i]
        before, groups = self._links(step)
        if step.task is None and not self._kept.isdisjoint(_before(step)):
            self._kept.add(i)
        plain = not groups and not step.order_only
        if not (before or groups) or (plain and len(before) == 1):
            self._instead[i] = before
            return
        key = (before, groups, step.order_only)
        if key not in self._joins:
            self._joins[key] = len(self.made)
            name = step.name if step.task is None else f"join/{step.name}"
            why = "replaces steps that are left out"
            join = DeploymentStep(name, "", None, before, groups, step.order_only, why)
            self.made.append(join)
        self._instead[i] = (self._joins[key],)

    def _links(self, step: DeploymentStep) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        before = {now for p in step.before for now in self._instead.get(p, ())}
        groups = []
        for group in step.any_of:
            # One of the chosen members must succeed. If none is chosen, the predecessors of all
            # must.
            chosen = [p for p in group if p in self._kept]
            members = [self._instead.get(p, ()) for p in chosen or group]
            if all(members):
                groups.append(tuple(sorted({now for found in members for now in found})))
        return tuple(sorted(before)), groups_not_implied(before, groups)


def _before(step: DeploymentStep) -> Iterable[int]:
    yield from step.before
    for group in step.any_of:
        yield from group


def _difference(earlier: Action | None, now: Mapping[str, Any], plan: str) -> str | None:
    """Return how an action differs from that of an earlier plan; None if it does not differ.

    ``earlier`` is the action of the same name in that plan, None if there is none. ``now`` are the
    fields of the action. An anchor, and a task that is skipped now and was not there or skipped
    then, count as equal, because they do nothing. What was not done in the earlier plan differs.
    """
    if now["action_type"] == ANCHOR:
        return None
    if now["action_type"] == "skipped":
        is_same = earlier is None or earlier.action_type == "skipped"
        return None if is_same else "its condition is false now"
    if earlier is None:
        return f"it is not in plan {plan}"
    if earlier.action_type != now["action_type"]:
        if earlier.action_type == "skipped":
            return "its condition is true now"
        return f"it was of type {earlier.action_type}"
    old, new = earlier.input_parameters, now.get("input_parameters", {})
    nothing = object()
    differ = [
        key
        for key in sorted({*old, *new} - _SIMULATION_ONLY)
        if old.get(key, nothing) != new.get(key, nothing)
    ]
    if differ:
        return f"its {', '.join(differ)} changed"
    done = (
        earlier.state is ActionState.SUCCEEDED or earlier.state_reason is StateReason.ALREADY_DONE
    )
    return None if done else f"it is {earlier.state} in plan {plan}"
