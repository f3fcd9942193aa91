# SPDX-License-Identifier: Apache-2.0
"""Chooses the lanes of a timeline, and merges lanes of like content. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType

from applier.timeline.values import Bar, LaneKind
from planner.plan.model import Action, ActionPlan
from planner.render import swimlanes

#: If there are more lanes than this, those of like content are merged.
MOST_LANES = 20
#: If lanes are workers: the lane of the actions that the applier itself ran, and of those that have
#: not started.
APPLIER, NOT_STARTED = "the applier", "not started"


def lanes(
    plan: ActionPlan,
    actions: Sequence[Action],
    kind: LaneKind | None = None,
    workers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Map each action to its lane, by uuid.

    ``workers`` maps the uuid of an action to the worker that carried it out. Without a ``kind``,
    lanes are nodes if at least half of the actions hold one while they run; an action on several
    nodes is in the lane of the first. Otherwise they are the lanes of the graph of the plan, if it
    has several: the groups of a rolling update, the resources of events. Otherwise they are action
    types.
    """
    if kind is LaneKind.WORKER:
        return {a.uuid: workers.get(a.uuid) or _workerless(a) for a in actions}
    nodes = {a.uuid: found[0] for a in actions if (found := swimlanes.nodes_of(a))}
    if kind is LaneKind.NODE or (kind is None and 2 * len(nodes) >= len(actions)):
        rest = {a.uuid: swimlanes.lane_of("", a) or a.action_type for a in actions}
        return {a.uuid: nodes.get(a.uuid, rest[a.uuid]) for a in actions}
    assigned = swimlanes.assign(plan, actions) if kind is None else {}
    if len(set(assigned.values())) > 1:
        return assigned
    return {a.uuid: a.action_type for a in actions}


def _workerless(action: Action) -> str:
    return APPLIER if action.started_at is not None else NOT_STARTED


def task(plan: ActionPlan, action: Action) -> str:
    """Return the name by which actions of different lanes count as equal: the task, else the type.

    >>> plan = ActionPlan(uuid="p", planner="deployment", actions=())
    >>> task(plan, Action(uuid="u", action_type="puppet", name="4/netconfig"))
    'netconfig'
    >>> task(plan, Action(uuid="u", action_type="migrate", name="move-web"))
    'migrate'
    """
    name = swimlanes.task_of(plan.planner, action)
    return action.action_type if plan.planner == "rolling_update" or name == action.label else name


def alike(plan: ActionPlan, content: Mapping[str, Sequence[Bar]], grain_s: float) -> dict[str, str]:
    """Map each lane to the first lane of like content; to itself if there are few lanes.

    Lanes are alike if they have the same group, and the same tasks in the same states, equally
    often and at the same times, rounded to ``grain_s`` seconds. If that leaves more than
    ``MOST_LANES``, times are ignored, then numbers, and at last groups and tasks, but never states.
    """
    if len(content) <= MOST_LANES:
        return {lane: lane for lane in content}
    groups = swimlanes.groups(plan)

    def contents(key: Callable[[Bar], Hashable]) -> dict[str, Counter[Hashable]]:
        return {lane: Counter(map(key, bars)) for lane, bars in content.items()}

    def what(bar: Bar) -> tuple[str, ...]:
        return task(plan, bar.actions[0]), bar.state

    def at(bar: Bar) -> tuple[Hashable, ...]:
        return *what(bar), bar.first_s // grain_s, bar.end_s // grain_s

    with_times, tasks = contents(at), contents(what)
    keys: list[Callable[[str], Hashable]] = [
        lambda lane: (groups.get(lane), frozenset(with_times[lane].items())),
        lambda lane: (groups.get(lane), frozenset(tasks[lane].items())),
        lambda lane: (groups.get(lane), frozenset(tasks[lane])),
        lambda lane: frozenset(bar.state for bar in content[lane]),
    ]
    found: dict[str, str] = {}
    for key in keys:
        firsts: dict[Hashable, str] = {}
        found = {lane: firsts.setdefault(key(lane), lane) for lane in content}
        if len(firsts) <= MOST_LANES:
            break
    return found


def titles(plan: ActionPlan, firsts: Mapping[str, str]) -> dict[str, str]:
    """Return the title of each shown lane, with the number and the names of the lanes merged in it.

    ``firsts`` is the result of :func:`alike`.
    """
    groups, inside = swimlanes.groups(plan), defaultdict(list)
    for lane, first in firsts.items():
        inside[first].append(lane)
    found = {}
    for first, names in inside.items():
        same = len({groups.get(lane) for lane in names}) == 1
        found[first] = swimlanes.title(names, groups.get(first, ()) if same else ())
    return found
