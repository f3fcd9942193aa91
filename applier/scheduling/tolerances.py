# SPDX-License-Identifier: Apache-2.0
"""Counts failed nodes, and compares them with the tolerances of a plan. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.model import Action
from planner.states import ActionState

#: An action that ends in one of these states makes its node a failed one.
COUNTED = frozenset({ActionState.FAILED, ActionState.UNKNOWN})
_NODE = "node:"
#: The maximum number of failed nodes that a message names.
_SHOWN = 10


class Tolerances:
    """Counts the failed nodes of each group of a plan.

    ``groups`` are the plan's ``tolerances``: of the ``nodes`` of the group ``name``, up to
    ``failed_nodes`` may fail. A node has failed when an action that holds its token (``node:NAME``)
    is FAILED or UNKNOWN. It is counted once, however many actions fail on it.

    >>> two = Tolerances([{"name": "compute", "nodes": ["1", "2", "3"], "failed_nodes": 1}])
    >>> one, other = (Action(uuid=n, action_type="nop", tokens=(f"node:{n}",)) for n in "12")
    >>> two.note(one, ActionState.FAILED) is two.note(one, ActionState.UNKNOWN) is None
    True
    >>> two.note(other, ActionState.FAILED)
    '2 nodes of compute failed, 1 may: 1, 2'
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        self._groups = tuple(groups)
        self._of_node: defaultdict[str, list[int]] = defaultdict(list)
        for i, group in enumerate(self._groups):
            for node in group["nodes"]:
                self._of_node[node].append(i)
        self._failed: list[dict[str, None]] = [{} for _ in self._groups]

    def note(self, action: Action, state: ActionState) -> str | None:
        """Count the end of an action; return a message if too many nodes of a group have failed."""
        if state not in COUNTED:
            return None
        told = None
        for token in action.tokens:
            node = token.removeprefix(_NODE)
            for i in self._of_node.get(node, ()) if node != token else ():
                self._failed[i][node] = None
                if told is None and len(self._failed[i]) > self._groups[i]["failed_nodes"]:
                    told = _sentence(self._groups[i], list(self._failed[i]))
        return told


def _sentence(group: Mapping[str, Any], failed: Sequence[str]) -> str:
    nodes = "node" if len(failed) == 1 else "nodes"
    may = group["failed_nodes"] or "none"
    shown = ", ".join(failed[:_SHOWN])
    if len(failed) > _SHOWN:
        shown += f" and {len(failed) - _SHOWN} more"
    return f"{len(failed)} {nodes} of {group['name']} failed, {may} may: {shown}"
