# SPDX-License-Identifier: Apache-2.0
"""Blocks of a deployment of which so many nodes at a time are under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.errors import Mistake, Path
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.planners import node_fields
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.problem import MASTER, SYNC, Deployment, SerialBlock
from planner.planners.deployment.steps import DeploymentStep, Serial
from planner.planners.deployment.task_fields import names, where
from planner.planners.deployment.task_placement import Cluster


def blocks(raw: Any, name: str | None, path: Path = ("serial",)) -> list[SerialBlock]:
    """Return the blocks of the field ``serial``: a number, numbers by role, or a list of blocks.

    Raises ValueError for a list that has numbers and blocks.

    >>> blocks({"compute": 1}, "site")[0].name, blocks(2, "site")[0].name
    ('compute', 'site')
    """
    if isinstance(raw, Mapping):
        given = [({"role": role, "nodes": number}, (*path, role)) for role, number in raw.items()]
    elif isinstance(raw, list) and any(isinstance(one, Mapping) for one in raw):
        if not all(isinstance(one, Mapping) for one in raw):
            raise ValueError("a list is of numbers or of blocks, this one has both")
        given = [(one, (*path, i)) for i, one in enumerate(raw)]
    else:
        given = [] if raw is None else [({"nodes": raw}, path)]
    return [
        SerialBlock(
            _name(one, name),
            names(one.get("tasks")),
            where(one["role"]) if "role" in one else None,
            one,
            at,
        )
        for one, at in given
    ]


def _name(raw: Mapping[str, Any], of_document: str | None) -> str:
    # The limit ``serial:*`` would be that of every block.
    named = (n for n in (*names(raw.get("role")), *names(raw.get("tasks"))) if n != "*")
    return str(raw.get("name") or next(named, None) or of_document or "nodes")


def of(
    deployment: Deployment,
    cluster: Cluster,
    every: Sequence[DeploymentStep],
    steps: Sequence[DeploymentStep],
) -> Serial:
    """Return who of ``steps`` holds which places: those of a block on one node hold one together.

    Joins, anchors, skipped tasks and what runs on the deployment server hold none. A percentage is
    one of the nodes that take part. There are warnings for blocks without any of ``every`` step.
    """
    places: list[tuple[HeldPlace, ...]] = [()] * len(steps)
    limits: dict[str, int] = {}
    rules: dict[str, PlaceRule] = {}
    warnings: list[Mistake] = []
    for block in deployment.serial:
        holds = _membership(deployment, cluster, block, warnings)
        if not any(map(holds, every)):
            text = f"no task of {block.name} runs on any node: it limits nothing"
            warnings.append(Mistake(text, block.path))
        token, members = f"serial:{block.name}", dict[str, None]()
        for i, step in enumerate(steps):
            if holds(step):
                places[i] = (*places[i], HeldPlace(token, step.uid))
                members[step.uid] = None
        if members:
            fields = {**block.fields, "serial": block.fields["nodes"]}
            limits[token], rules[token] = node_fields.place_rule(fields, len(members))
    return Serial(places, limits, rules, warnings)


def _membership(
    deployment: Deployment, cluster: Cluster, block: SerialBlock, warnings: list[Mistake]
) -> Callable[[DeploymentStep], bool]:
    """Return whether a step is in a block; append warnings of names that match nothing."""
    known = {task.id: None for task in deployment.runnable}
    index = deployment.patterns.index(known)
    for k, name in enumerate(block.tasks):
        if not index(name):
            text = f"no task is called {name!r}{near(name, known, warnings)}"
            warnings.append(Mistake(text, (*block.path, "tasks", k)))
    for role in cluster.unmatched(block.where) if block.where else ():
        text = f"no node has the role {role!r}{near(role, cluster.tags, warnings)}"
        warnings.append(Mistake(text, block.path))
    tasks = {found for name in block.tasks for found in index(name)} if block.tasks else known
    nodes = None if block.where is None else cluster.of(block.where)

    def holds(step: DeploymentStep) -> bool:
        task = step.task
        if task is None or task.is_anchor or task.skipped or step.uid in (SYNC, MASTER):
            return False
        return task.id in tasks and (nodes is None or step.uid in nodes)

    return holds
