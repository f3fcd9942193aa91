# SPDX-License-Identifier: Apache-2.0
"""Turns ordered steps into a plan: actions with parameters, tokens and limits.

The values that expressions of tasks have on the node that they run on come before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from planner.contract import Surroundings
from planner.errors import InvalidInput, InvalidPlan, Mistake, cut
from planner.plan import deadlocks
from planner.plan.model import ANCHOR, JOIN, Action, ActionPlan
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.planners.deployment.expressions import Unknown, has_expressions
from planner.planners.deployment.problem import MASTER, Deployment, Task, Told
from planner.planners.deployment.schema import ACTION_TYPES
from planner.planners.deployment.task_fields import THEIRS, ParameterChecker
from planner.planners.solution import about

#: The token that each running task holds. A node runs one task at a time, so a limit of this token
#: limits the number of busy nodes.
BUSY = "busy:nodes"


class DeploymentStep(NamedTuple):
    """A task on a node that becomes an action, or a join if ``task`` is None.

    ``before`` and the sets in ``any_of`` hold indexes in the list of steps. The steps in ``before``
    must have succeeded; with ``order_only`` they need only have ended. One step of each set in
    ``any_of`` must have succeeded.
    """

    name: str
    uid: str = ""
    task: Task | None = None
    before: tuple[int, ...] = ()
    any_of: tuple[tuple[int, ...], ...] = ()
    order_only: bool = False
    reason: str | None = None


class Serial(NamedTuple):
    """The places of each step, and the limit and the rule of each block, by token."""

    places: Sequence[tuple[HeldPlace, ...]]
    limits: Mapping[str, int]
    rules: Mapping[str, PlaceRule]
    warnings: Sequence[Mistake]


def groups_not_implied(
    before: Iterable[int], groups: Iterable[tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    """Return each set once, without the sets that have a member in ``before``.

    >>> groups_not_implied([1, 2], [(3, 4), (2, 3), (3, 4)])
    ((3, 4),)
    """
    needed = frozenset(before)
    return tuple(dict.fromkeys(group for group in groups if needed.isdisjoint(group)))


class DeploymentBuilder:
    """Builds the actions and the plan of one deployment."""

    def __init__(self, deployment: Deployment, planner: str, surroundings: Surroundings) -> None:
        self._deployment, self._planner = deployment, planner
        self._surroundings = surroundings
        self._addresses = {node.name: node.address for node in deployment.nodes}
        self._type = cache(surroundings.type_of)  # the document reader tells of unknown ones

    def plan(
        self,
        steps: Sequence[DeploymentStep],
        *,
        max_nodes: int | None,
        serial: Serial,
        tolerances: Sequence[Mapping[str, Any]],
        warnings: Iterable[str],
    ) -> ActionPlan:
        """Return the plan of these steps, which are in schedule order."""
        limits = {"node:*": 1}
        if max_nodes:
            limits[BUSY] = max_nodes
        for step in steps:
            if step.task and step.task.most:
                limits[f"task:{step.task.id}"] = step.task.most
        limits |= serial.limits
        uuid = self._surroundings.new_id()
        return self._surroundings.new_plan(
            self._planner,
            self._actions(steps, serial),
            uuid,
            name=self._deployment.name,
            limits=limits if steps else {},
            tolerances=tuple(tolerances),
            warnings=tuple(warnings),
            places=serial.rules,
        )

    def _actions(self, steps: Sequence[DeploymentStep], serial: Serial) -> tuple[Action, ...]:
        uuids = self._surroundings.new_ids(len(steps))

        @cache
        def links(positions: tuple[int, ...]) -> tuple[str, ...]:
            return tuple([uuids[p] for p in positions])

        actions = [
            Action(
                uuid=uuid,
                name=step.name,
                parents=links(step.before) if step.order_only else (),
                needs=() if step.order_only else links(step.before),
                needs_any=tuple([links(group) for group in step.any_of]),
                reason=step.reason,
                places=places,
                **self.about(step),
            )
            for uuid, step, places in zip(uuids, steps, serial.places, strict=True)
        ]
        if not serial.rules:
            return tuple(actions)
        try:
            return tuple(deadlocks.linked(actions, self._surroundings.new_id))
        except InvalidPlan as refused:
            raise InvalidInput(Mistake(text, ("serial",)) for text in refused.problems) from refused

    def about(self, step: DeploymentStep) -> dict[str, Any]:
        """Return the fields of the action of a step, except uuid, name, reason and links."""
        task, uid = step.task, step.uid
        if task is None:
            return {"action_type": JOIN}
        if task.skipped is not None:
            what = f"skip {task.id} on {uid}"
            parameters: dict[str, Any] = {"reason": task.skipped}
            return {**_no_operation("skipped", what), "input_parameters": parameters}
        if task.is_anchor:
            return _no_operation(ANCHOR, "synchronization point")
        kind = ACTION_TYPES.get(task.type, task.type)
        machine = MASTER if task.type == "master_shell" else uid
        address, duration = self._addresses.get(machine), self._deployment.durations.get(task.id)
        parameters = {**task.parameters, "node": machine}
        if address:
            parameters["address"] = address
        elif duration is not None:
            parameters["duration_s"] = duration
        known = about(kind, self._type(kind), parameters)
        return {
            "action_type": kind,
            "input_parameters": parameters,
            "description": known.description or f"{task.type} {task.id} on {uid}",
            "tokens": tokens(kind, uid, task.id, *(t.resource for t in known.touches)),
            "estimate_s": known.estimate_s if duration is None else duration,
            "timeout_s": task.timeout_s,
            "retries": task.retries,
        }


def _no_operation(action_type: str, description: str) -> dict[str, Any]:
    """Return the fields of an action that takes no time, and needs no worker and no token."""
    return {"action_type": action_type, "description": description, "estimate_s": 0.0}


def tokens(action_type: str, uid: str, task_id: str, *touched: str) -> tuple[str, ...]:
    """List the tokens that a task holds on its node while it runs.

    >>> tokens("puppet", "3", "netconfig", "node:3")
    ('type:puppet', 'node:3', 'task:netconfig', 'busy:nodes')
    """
    own = (f"type:{action_type}", f"node:{uid}", f"task:{task_id}", BUSY)
    return tuple(dict.fromkeys([*own, *touched]))


#: The most characters of an expression in the reason why a task is skipped.
_LONGEST = 100


class NodeValues:
    """Evaluates conditions and parameters; ``warnings`` has one of each kind without a value."""

    def __init__(self, deployment: Deployment, surroundings: Surroundings) -> None:
        self._evaluator = deployment.evaluator
        self._checker = ParameterChecker(surroundings)
        self._computed = {t.id for t in deployment.tasks if has_expressions(t.parameters)}
        self.warnings = Told()

    def steps(self, steps: Sequence[DeploymentStep]) -> list[DeploymentStep]:
        """Return the steps, each with the task as it is on its node.

        A condition without a value counts as true, a parameter without one is left out. Raises
        InvalidInput for values that the action type refuses.
        """
        found = [self._step(step) for step in steps]
        if self._checker.mistakes:
            raise InvalidInput(dict.fromkeys(self._checker.mistakes))
        return found

    def _step(self, step: DeploymentStep) -> DeploymentStep:
        task = step.task
        if task is None or task.is_anchor or task.skipped is not None:
            return step
        if task.expression is not None and not self._holds(task, task.expression, step.uid):
            text = cut(" ".join(task.expression.split()), _LONGEST)
            return step._replace(task=replace(task, skipped=f"its condition is false: {text}"))
        if task.id not in self._computed:
            return step
        values = self._parameters(task, step.uid)
        self._checker(ACTION_TYPES.get(task.type, task.type), values, task.path())
        return step._replace(task=replace(task, parameters=values))

    def _holds(self, task: Task, expression: str, uid: str) -> bool:
        try:
            return bool(self._evaluator.value(expression, uid))
        except Unknown as why:
            text = f"yaql in conditions is not evaluated, {why}: they are assumed to be true"
            self.warnings.add(text, task.path("condition"), "condition")
            return True

    def _parameters(self, task: Task, uid: str) -> Mapping[str, Any]:
        values = {}
        for name, value in task.parameters.items():
            try:
                values[name] = self._evaluator.replaced(value, uid)
            except Unknown as why:
                theirs = THEIRS.get(name, name)
                text = f"yaql in {theirs} is not evaluated, {why}: {theirs} is left out"
                self.warnings.add(text, task.path("parameters", theirs), theirs)
        return values
