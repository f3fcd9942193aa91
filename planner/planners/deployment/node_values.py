# SPDX-License-Identifier: Apache-2.0
"""Gives tasks the values that their expressions have on the node that they run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.contract import Surroundings
from planner.errors import InvalidInput, cut
from planner.planners.deployment.expressions import Unknown, has_expressions
from planner.planners.deployment.problem import Deployment, Task
from planner.planners.deployment.schema import ACTION_TYPES
from planner.planners.deployment.steps import DeploymentStep
from planner.planners.deployment.task_fields import THEIRS, ParameterChecker
from planner.planners.deployment.told import Told

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
