# SPDX-License-Identifier: Apache-2.0
"""The deployment planner: turns tasks and nodes into a plan, in several passes.

Source: Fuel, "Task Based Deployment With Astute". Decisions 0015 and 0019 settle the questions that
it leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from oslo_config import cfg

from planner.contract import Options, Planner
from planner.errors import InvalidInput, Mistake
from planner.plan.graph_algorithms import CycleError
from planner.plan.model import ActionPlan
from planner.planners.deployment import alternatives, message, role_based, task_links
from planner.planners.deployment.document import DeploymentReader
from planner.planners.deployment.problem import SYNC, Deployment, Task, Told
from planner.planners.deployment.schema import SCHEMA
from planner.planners.deployment.selection import Selection
from planner.planners.deployment.serial import of as blocks_of
from planner.planners.deployment.steps import (
    DeploymentBuilder,
    DeploymentStep,
    NodeValues,
    groups_not_implied,
)
from planner.planners.deployment.task_links import Linker
from planner.planners.deployment.task_placement import Cluster, TaskPlacement
from planner.render.swimlanes import NO_GROUP
from planner.schemas import ranges


class DeploymentPlanner(Planner[Deployment | ActionPlan]):
    """Plans tasks instead of roles: each starts as soon as its dependencies, on any node, are done.

    A node runs one task at a time, and a task runs on no more nodes at once than its strategy
    allows. Tasks of version 1, or without a version, have no dependencies between nodes: if
    there are any, the role-based engine is used, which runs group after group.
    """

    NAME = "deployment"
    KIND = "deployment"
    SCHEMA = SCHEMA
    FILES = {
        "tasks_files": "tasks",
        "changed_since": "changed_since",
        "nodes.from": "nodes.document",
    }
    INVENTORIES = ("nodes.from",)
    OPTIONS = (
        cfg.StrOpt(
            "deployment_engine",
            choices=[
                ("auto", "task if all tasks are of version 2, else role"),
                ("task", "task-based; refused if a task is of version 1 or of none"),
                ("role", "role-based, whatever the versions: group after group"),
            ],
            default="auto",
            help="Deployment engine.",
        ),
        cfg.IntOpt(
            "max_nodes",
            min=1,
            max=ranges.MOST,
            sample_default=50,
            help="Number of nodes that may be busy at once. Default: no limit.",
        ),
        cfg.BoolOpt(
            "strict",
            default=False,
            help="Whether a name, role or group that matches nothing is an error instead "
            "of a warning.",
        ),
    )

    def parse(self, document: Mapping[str, Any]) -> Deployment | ActionPlan:
        """Read tasks and nodes, or a deployment message; raises InvalidInput with all mistakes."""
        if message.is_message(document):
            return message.read(document, self.NAME, self.surroundings)
        return DeploymentReader(document, self.surroundings).deployment()

    def plan(self, problem: Deployment | ActionPlan, options: Options) -> ActionPlan:
        """Place the tasks on nodes, link them, select the requested part, and make the actions.

        A plan that was read from a message is returned unchanged. Raises InvalidInput for cycles,
        unknown names in the requested part and, with the option ``strict``, for warnings.
        """
        if isinstance(problem, ActionPlan):
            return problem
        engine, engine_notes = engine_of(problem, options.deployment_engine)
        if engine == "role" and problem.serial:
            text = "the role-based engine runs group after group: serial is of tasks of version 2"
            raise InvalidInput([Mistake(text, ("serial",))])
        placement = TaskPlacement(problem)
        every, unlinked = (_task_based if engine == "task" else _role_based)(problem, placement)
        values = NodeValues(problem, self.surroundings)
        every = values.steps(every)
        builder = DeploymentBuilder(problem, self.NAME, self.surroundings)
        chosen = Selection(problem, every)
        steps = chosen.steps(builder)
        used = dict.fromkeys(step.uid for step in steps if step.task is not None)
        critical = role_based.CRITICAL if engine == "role" else ()
        failing, unread = tolerances(problem.tasks, placement.cluster, used, critical)
        serial = blocks_of(problem, placement.cluster, every, steps)
        warnings = [*problem.warnings, *placement.warnings, *unlinked, *values.warnings, *unread]
        warnings += serial.warnings
        if warnings and options.strict:
            raise InvalidInput(warnings)
        return builder.plan(
            steps,
            max_nodes=options.max_nodes,
            serial=serial,
            tolerances=failing if steps else [],
            warnings=[
                *problem.notes,
                *engine_notes,
                *map(self.surroundings.told, _unused(problem.tasks, engine)),
                *map(self.surroundings.told, warnings),
                *chosen.notes,
            ],
        )


#: All steps of a deployment in schedule order, and warnings about their links.
OrderedSteps = tuple[Sequence[DeploymentStep], Sequence[Mistake]]


def engine_of(deployment: Deployment, wanted: str) -> tuple[str, list[str]]:
    """Choose the task-based or the role-based engine; return its name and warnings about that.

    Raises InvalidInput if engine ``task`` is wanted and not all tasks have version 2; the error
    names the others.
    """
    old = [task for task in deployment.tasks if not task.versioned]
    if wanted == "task" and old:
        text = "task-based deployment needs version 2.x of every task: {!r} has none"
        raise InvalidInput(Mistake(text.format(t.id), t.path("version")) for t in old)
    if wanted != "auto" or not old:
        return ("role" if wanted == "role" else "task"), []
    names = ", ".join(task.id for task in old)
    return "role", [
        "the role-based engine is used: task-based deployment needs version 2.x of every task, "
        f"and {len(old)} of {len(deployment.tasks)} have none: {names}"
    ]


def _unused(tasks: Sequence[Task], engine: str) -> Told:
    """Return a warning of each field that only the other engine reads."""
    found = Told()
    for task in tasks:
        if engine == "role":
            for relation in (*task.cross_depends, *task.cross_depended_by):
                text = f"the role-based engine ignores {relation.field}"
                found.add(text, relation.path, relation.field)
        elif task.is_group and task.most is not None:
            text = "task-based deployment ignores the strategy of a group"
            found.add(text, task.path("parameters", "strategy"))
    return found


def _task_based(deployment: Deployment, placement: TaskPlacement) -> OrderedSteps:
    """Link the tasks, dependencies of policy any last; return the steps in topological order.

    Raises InvalidInput for cycles.
    """
    linker = Linker(placement, deployment.tasks)
    linker.link()
    links = linker.links
    warnings = [*linker.warnings, *alternatives.settle(links, linker.choices)]
    links.remove_redundant()
    try:
        order = task_links.in_order(links)
    except CycleError as error:
        raise task_links.refusal(linker, error) from error
    place = {position: k for k, position in enumerate(order)}

    @cache
    def places(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(place[p] for p in positions))

    def step(position: int) -> DeploymentStep:
        before = places(tuple(links.before[position]))
        any_of = groups_not_implied(before, map(places, links.any_of[position]))
        name = links.name(position)
        if links.is_join(position):
            return DeploymentStep(
                name, before=before, any_of=any_of, reason="stands for links of many"
            )
        uid, task = placement.pairs[position]
        role = f"role {task.where.text}"
        why = "all its predecessors have ended" if task.is_anchor else role
        return DeploymentStep(name, uid, task, before, any_of, task.is_anchor, why)

    return [step(position) for position in order], warnings


def _role_based(deployment: Deployment, placement: TaskPlacement) -> OrderedSteps:
    """Divide the tasks into stages, and return the steps stage by stage, with warnings."""
    divided = role_based.RoleBased(deployment, placement)
    return role_based.steps(divided.stages()), divided.warnings()


def tolerances(
    tasks: Sequence[Task],
    cluster: Cluster,
    used: Collection[str],
    critical: Collection[str] = (),
) -> tuple[list[Mapping[str, Any]], list[Mistake]]:
    """Return ``{name, nodes, failed_nodes}`` for each group that has nodes, and warnings.

    ``failed_nodes`` is how many nodes of the group may fail. ``used`` are the nodes that have
    tasks; those of them that are in no group form the group NO_GROUP. In it, and in a ``critical``
    group without a fault tolerance, no node may fail.
    """
    found: list[Mapping[str, Any]] = []
    warnings, grouped = [], set[str]()
    for task in tasks:
        nodes = list(cluster.of(task.where)) if task.is_group else []
        if not nodes:
            continue
        grouped.update(nodes)
        said = task.fault_tolerance
        value = 0 if said is None and task.id in critical else said
        try:
            most = allowed(value, len(nodes))
        except ValueError as reason:
            warnings.append(Mistake(f"{reason}: no limit", task.path("fault_tolerance")))
            most = allowed(None, len(nodes))
        found.append({"name": task.id, "nodes": nodes, "failed_nodes": most})
    alone = [uid for uid in used if uid not in grouped and uid != SYNC]
    if alone:
        found.append({"name": NO_GROUP, "nodes": alone, "failed_nodes": 0})
    return found, warnings


def allowed(value: Any, total: int) -> int:
    """Return how many of ``total`` nodes may fail; raises ValueError.

    ``value`` is a number of nodes, or a percentage, which is rounded down. A negative value is the
    number or percentage of nodes that must not fail. For None, which is no limit, the result is
    ``total + 1``.

    >>> [allowed(v, 10) for v in (None, 3, "25%", -2, "-20%", " 7 ")]
    [11, 3, 2, 8, 8, 7]
    """
    if value is None:
        return total + 1
    match = re.fullmatch(r"\s*(-?[0-9]{1,9})\s*(%?)\s*", str(value))
    if match is None:
        raise ValueError(f"{value!r} is neither a number of nodes nor a percentage such as 20%")
    number = int(match[1]) * total // 100 if match[2] else int(match[1])
    return max(number + total, 0) if number < 0 else number
