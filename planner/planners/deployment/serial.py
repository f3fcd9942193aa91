# SPDX-License-Identifier: Apache-2.0
"""Blocks of a deployment of which so many nodes at a time are under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import Mistake, Path
from planner.place_rules import HeldPlace, PlaceRule
from planner.planners import serial_fields
from planner.planners.deployment.name_patterns import Index, near
from planner.planners.deployment.problem import MASTER, SYNC, Deployment, SerialBlock
from planner.planners.deployment.steps import DeploymentStep, Serial
from planner.planners.deployment.task_fields import names


def blocks(raw: Any, name: str | None, path: Path = ("serial",)) -> list[SerialBlock]:
    """Return the blocks of the field ``serial``: a number, numbers by role, or a list of blocks.

    >>> blocks({"compute": 1}, "site")[0].name, blocks(2, "site")[0].name
    ('compute', 'site')
    """
    if isinstance(raw, Mapping):
        given = [({"role": role, "nodes": number}, (*path, role)) for role, number in raw.items()]
    elif isinstance(raw, list) and isinstance(raw[0], Mapping):
        given = [(one, (*path, i)) for i, one in enumerate(raw)]
    else:
        given = [] if raw is None else [({"nodes": raw}, path)]
    return [
        SerialBlock(_name(one, name), names(one.get("tasks")), names(one.get("role")), one, at)
        for one, at in given
    ]


def _name(raw: Mapping[str, Any], of_document: str | None) -> str:
    first = next(iter((*names(raw.get("role")), *names(raw.get("tasks")))), None)
    return str(raw.get("name") or first or of_document or "nodes")


def of(deployment: Deployment, steps: Sequence[DeploymentStep]) -> Serial:
    """Return who holds which places: the actions of a block on one node hold one together.

    Joins, anchors, skipped tasks and what runs on the deployment server hold none. A percentage is
    one of the nodes that take part.
    """
    places: list[tuple[HeldPlace, ...]] = [()] * len(steps)
    limits: dict[str, int] = {}
    rules: dict[str, PlaceRule] = {}
    warnings: list[Mistake] = []
    known = {task.id: None for task in deployment.runnable}
    index = Index(known, deployment.patterns)
    for block in deployment.serial:
        for k, name in enumerate(block.tasks):
            if not index(name):
                text = f"no task is called {name!r}{near(name, known)}"
                warnings.append(Mistake(text, (*block.path, "tasks", k)))
        tasks = {found for name in block.tasks for found in index(name)} if block.tasks else None
        nodes = {
            node.uid
            for node in deployment.nodes
            if not block.roles or any(deployment.patterns.among(node.tags, r) for r in block.roles)
        }
        token, members = f"serial:{block.name}", dict[str, None]()
        for i, step in enumerate(steps):
            task = step.task
            if task is None or task.is_anchor or task.skipped or step.uid in (SYNC, MASTER):
                continue
            if (tasks is None or task.id in tasks) and step.uid in nodes:
                places[i] = (*places[i], HeldPlace(token, step.uid))
                members[step.uid] = None
        if not members:
            text = f"no task of {block.name} runs on any node: it limits nothing"
            warnings.append(Mistake(text, block.path))
            continue
        fields = {**block.fields, "serial": block.fields["nodes"]}
        limits[token], rules[token] = serial_fields.rule(fields, len(members))
    return Serial(places, limits, rules, warnings)
