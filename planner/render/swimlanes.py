# SPDX-License-Identifier: Apache-2.0
"""Groups the actions of a picture into lanes: one for each machine, group or resource."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from planner.plan.model import Action, ActionPlan

_NODE = "node:"
#: The name of the tolerance of the nodes that are in no group. None of them may fail.
NO_GROUP = "no group"


def lane_of(planner: str, action: Action) -> str | None:
    """Return the lane of an action by the naming rules of its planner; None if it has none.

    In a rolling update, the lane is the group; in an events plan, the resource. In other plans it
    is the node that the action holds, of two (a move) the first, else the part of its name before
    the slash (anchors are ``sync/TASK``).
    """
    name = action.name or ""
    if planner == "events":
        return name.partition("#")[0].rpartition(".")[0] or None
    nodes = nodes_of(action)
    if planner != "rolling_update" and nodes:
        return nodes[0] if len(nodes) <= 2 else None
    first, slash, _ = name.partition("/")
    return first if slash else None


def task_of(planner: str, action: Action) -> str:
    """Return the name of an action without the name of its lane.

    >>> from dataclasses import replace
    >>> one = Action(uuid="u", action_type="nop", name="rmq.1.run#0")
    >>> lane_of("events", one), task_of("events", one)
    ('rmq.1', 'run#0')
    >>> lane_of("deployment", replace(one, name="4/netconfig", tokens=("node:4",)))
    '4'
    """
    name = action.label
    if planner == "events":
        base = name.partition("#")[0].rpartition(".")[0]
        return name[len(base) + 1 :] if base else name
    return name.partition("/")[2] or name


def nodes_of(action: Action) -> list[str]:
    """List the nodes that an action holds while it runs, each once."""
    found = (t.removeprefix(_NODE) for t in action.tokens if t.startswith(_NODE))
    return list(dict.fromkeys(found))


def places_of(planner: str, action: Action) -> list[str]:
    """List the places where an action runs: the nodes that it holds, else its lane, if any."""
    lane = lane_of(planner, action)
    return nodes_of(action) or ([] if lane is None else [lane])


def assign(plan: ActionPlan, actions: Sequence[Action]) -> dict[str, str]:
    """Map uuids to lanes; return an empty mapping if lanes would not make the picture clearer.

    There are no lanes if most actions have none, or if there are fewer than two actions per lane on
    average. The lane of an action that has none of its own is that of its type.
    """
    found = {a.uuid: lane_of(plan.planner, a) for a in actions}
    if 2 * sum(lane is None for lane in found.values()) > len(actions):
        return {}
    lanes = {a.uuid: found[a.uuid] or a.action_type for a in actions}
    return lanes if len(actions) >= 2 * len(set(lanes.values())) else {}


def groups(plan: ActionPlan) -> Mapping[str, tuple[str, ...]]:
    """Map each node to its groups in the tolerances of the plan."""
    found: dict[str, tuple[str, ...]] = {}
    for tolerance in plan.tolerances:
        if tolerance.get("name") == NO_GROUP:
            continue
        for node in tolerance.get("nodes", ()):
            name = str(node).removeprefix(_NODE)
            found[name] = (*found.get(name, ()), str(tolerance.get("name", "")))
    return found


def title(lane_names: Sequence[str], group_names: Iterable[str]) -> str:
    """Return the title of a lane, or of several equivalent ones.

    >>> title(["4", "5", "6", "9"], ["compute"]), title(["4"], []), title(["a", "b"], [])
    ('compute x 4 (4-6, 9)', '4', 'a, b')
    """
    group, names = ", ".join(group_names), spans(lane_names)
    if not group:
        return names if len(lane_names) < 4 else f"{len(lane_names)} alike ({names})"
    times = f" x {len(lane_names)}" if len(lane_names) > 1 else ""
    return f"{group}{times} ({names})"


def spans(names: Sequence[str]) -> str:
    """Join names to a text: consecutive numbers become a range, a long list is abbreviated.

    >>> spans(["rmq.1", "rmq.2", "rmq.3", "x"]), spans(["b", "a"])
    ('rmq.1 to 3, x', 'b, a')
    """
    runs: list[tuple[str, int, int]] = []
    for name in names:
        stem, number = _numbered(name)
        if runs and number >= 0 and runs[-1][0] == stem and runs[-1][2] == number - 1:
            runs[-1] = (stem, runs[-1][1], number)
        else:
            runs.append((stem if number >= 0 else name, number, number))
    texts = [
        stem if first < 0 else f"{stem}{first}" + (f"{to}{last}" if last > first else "")
        for stem, first, last in runs
        for to in (" to " if stem else "-",)
    ]
    return ", ".join(texts if len(texts) < 7 else [*texts[:5], "…", texts[-1]])


def _numbered(name: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]{0,8})", name, re.DOTALL | re.ASCII)
    return (found[1], int(found[2])) if found else (name, -1)
