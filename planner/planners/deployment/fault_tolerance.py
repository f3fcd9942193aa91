# SPDX-License-Identifier: Apache-2.0
"""Fault tolerance: the number of nodes of each group that may fail before the plan is stopped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from planner.errors import Mistake
from planner.planners.deployment.problem import SYNC, Task
from planner.planners.deployment.task_placement import Cluster

#: The name of the group of all nodes that are in no other group. None of them may fail.
NO_GROUP = "no group"


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
