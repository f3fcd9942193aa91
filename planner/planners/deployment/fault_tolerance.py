"""How many nodes of each group may fail before nothing new starts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from planner.errors import Mistake
from planner.planners.deployment.placement import Cluster
from planner.planners.deployment.tasks import SYNC, Task

#: What those nodes are called that are in no group: none of them may fail.
NO_GROUP = "no group"


def tolerances(
    tasks: Sequence[Task],
    cluster: Cluster,
    used: Collection[str],
    critical: Collection[str] = (),
) -> tuple[list[Mapping[str, Any]], list[Mistake]]:
    """Give ``{name, nodes, failed_nodes}`` of each group with nodes, and what could not be read.

    ``used`` are the nodes that have something to do; those of them that are in no group make one of
    their own, of which none may fail. Of ``critical`` groups that say nothing none may fail either.
    """
    found: list[Mapping[str, Any]] = []
    doubts, grouped = [], set[str]()
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
            doubts.append(Mistake(f"{reason}: no limit", task.path("fault_tolerance")))
            most = allowed(None, len(nodes))
        found.append({"name": task.id, "nodes": nodes, "failed_nodes": most})
    alone = [uid for uid in used if uid not in grouped and uid != SYNC]
    if alone:
        found.append({"name": NO_GROUP, "nodes": alone, "failed_nodes": 0})
    return found, doubts


def allowed(value: Any, total: int) -> int:
    """Read a fault tolerance for so many nodes; raises ValueError.

    A number, or a share of the nodes, rounded down; below 0 it says how many have to be left. None
    is no limit: one more than there are.

    >>> [allowed(v, 10) for v in (None, 3, "25%", -2, "-20%", " 7 ")]
    [11, 3, 2, 8, 8, 7]
    """
    if value is None:
        return total + 1
    match = re.fullmatch(r"\s*(-?\d{1,9})\s*(%?)\s*", str(value))
    if match is None:
        raise ValueError(f"{value!r} is neither a number of nodes nor a share such as 20%")
    number = int(match[1]) * total // 100 if match[2] else int(match[1])
    return max(number + total, 0) if number < 0 else number
