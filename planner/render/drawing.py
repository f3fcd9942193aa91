# SPDX-License-Identifier: Apache-2.0
"""Decides which boxes, lanes, points and lines a picture of a plan shows, in any format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from planner.plan.model import JOIN, Action, ActionPlan
from planner.render import swimlanes
from planner.render.boxes import EACH, Box, Drawing, printable
from planner.render.drawn_graph import DrawnGraph, Line, plan_to_graph
from planner.render.equivalence import chains, depths, equivalent, members, merged, pairs, siblings
from planner.render.look import Look, looks

#: In plans with more actions than this, equivalent actions share a box.
MANY = 40


def draw(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> Drawing:
    """Return the drawing of a plan, or only of those of its actions that ``keep`` accepts.

    Actions that are not kept, and joins, are replaced by lines from their predecessors to their
    successors.
    """
    ids = {action.uuid: f"a{i}" for i, action in enumerate(plan.actions)}
    kept = {
        ids[a.uuid]: a for a in plan.actions if a.action_type != JOIN and (keep is None or keep(a))
    }
    graph = plan_to_graph(plan, ids)
    passed = graph.nodes.keys() - kept.keys()
    graph.keep_between(kept)
    graph.contract(passed)
    left_out = graph.reduce()
    graph.contract(passed)
    return _drawing(plan, kept, graph, left_out)


def _drawing(
    plan: ActionPlan, kept: Mapping[str, Action], graph: DrawnGraph, left_out: int
) -> Drawing:
    """Make boxes and lanes with their names; in a large plan, equivalent actions share a box."""
    by_uuid = swimlanes.assign(plan, list(kept.values()))
    lanes = {box: by_uuid[a.uuid] for box, a in kept.items() if a.uuid in by_uuid}
    look_of, points = looks(plan), [n for n in graph.nodes if n not in kept]
    groups = swimlanes.groups(plan)
    firsts = {node: node for node in graph.nodes}
    first_lane = {lane: lane for lane in lanes.values()}
    if len(kept) > MANY:
        keys = _keys(plan, kept, graph, look_of, lanes, groups)
        firsts, first_lane = equivalent(graph, keys, lanes)
    lane_ids = {first: f"n{i}" for i, first in enumerate(dict.fromkeys(first_lane.values()))}
    count = Counter(first_lane.values())
    boxes = {}
    for first, names in members(firsts).items():
        if first in kept:
            actions = tuple(kept[name] for name in names)
            lane = first_lane[lanes[first]] if lanes else None
            boxes[first] = Box(
                actions,
                (_name(plan, actions, lanes),),
                look_of[actions[0].uuid],
                lane_ids[lane] if lane is not None else None,
                len(actions) // (count[lane] if lane is not None else 1),
            )
    titles = {
        lane_ids[first]: printable(swimlanes.title(names, groups.get(first, ())))
        for first, names in members(first_lane).items()
    }
    lines = _merged_lines(graph, firsts, boxes, kept)
    if len(boxes) > MANY:
        boxes, lines = _with_merged_boxes(boxes, lines)
    return Drawing(boxes, _points(points, lines, boxes), lines, titles, left_out)


def _with_merged_boxes(
    boxes: Mapping[str, Box], lines: list[Line]
) -> tuple[dict[str, Box], list[Line]]:
    """Merge boxes of the same type that have equal lines, then boxes that form a chain."""
    types = {n: (b.lane, b.look, b.times, b.actions[0].action_type) for n, b in boxes.items()}
    beside = siblings(types, lines)
    boxes, lines = _merged_boxes(boxes, beside, serial=False), merged(lines, beside)
    single = {n: (b.lane, b.look, b.times) for n, b in boxes.items() if len(b.names) == 1}
    after = chains(single, lines)
    return _merged_boxes(boxes, after, serial=True), merged(lines, after)


def _merged_boxes(
    boxes: Mapping[str, Box], firsts: Mapping[str, str], serial: bool
) -> dict[str, Box]:
    found = {}
    for first, names in members({n: firsts.get(n, n) for n in boxes}).items():
        parts, box = [boxes[name] for name in names], boxes[first]
        if len(parts) > 1:
            box = box._replace(
                actions=tuple(action for part in parts for action in part.actions),
                names=tuple(name for part in parts for name in part.names),
                serial=serial,
            )
        found[first] = box
    return found


def _keys(
    plan: ActionPlan,
    kept: Mapping[str, Action],
    graph: DrawnGraph,
    look_of: Mapping[str, Look],
    lanes: Mapping[str, str],
    groups: Mapping[str, tuple[str, ...]],
) -> dict[str, Hashable]:
    """Return a key for each node; only nodes with equal keys can be equivalent."""
    deep = depths(graph, graph.nodes.keys() - kept.keys())
    found: dict[str, Hashable] = {}
    for node in graph.nodes:
        action = kept.get(node)
        if action is None:
            found[node] = (deep[node],)
            continue
        same_name = lanes and plan.planner != "rolling_update"
        task = swimlanes.task_of(plan.planner, action) if same_name else None
        group = groups.get(lanes.get(node, ""), ())
        found[node] = (deep[node], action.action_type, look_of[action.uuid], task, group)
    return found


def _name(plan: ActionPlan, actions: tuple[Action, ...], lanes: Mapping[str, str]) -> str:
    if not lanes:
        names = [action.label for action in actions]
    else:
        names = list(dict.fromkeys(swimlanes.task_of(plan.planner, a) for a in actions))
    return printable(names[0] if len(names) == 1 else swimlanes.spans(names))


def _merged_lines(
    graph: DrawnGraph,
    firsts: Mapping[str, str],
    boxes: Mapping[str, Box],
    kept: Mapping[str, Action],
) -> list[Line]:
    """Merge lines between the same boxes, and label those that connect two boxes one to one.

    Between two boxes, a need that is also an event is drawn as the event only. An event and an
    order are both drawn.
    """

    def ordered(tail: str, head: str) -> bool:
        return tail in kept and head in kept and kept[tail].uuid in kept[head].parents

    single: dict[Line, list[tuple[str, str]]] = defaultdict(list)
    drawn = DrawnGraph(dict.fromkeys(firsts.values()))
    for tail, head, kind, label in graph.lines():
        line = Line(firsts[tail], firsts[head], kind, label)
        drawn.line(*line)
        single[line].append((tail, head))
    drawn.contract(drawn.nodes.keys() - boxes.keys())
    lines = drawn.lines()
    events = {(x.tail, x.head) for x in lines if x.kind == "trigger"}
    found = []
    for line in lines:
        ends = single.get(line, ())
        shown = line
        if line.kind == "need" and line[:2] in events and {*line[:2]} <= boxes.keys():
            if not all(ordered(*pair) for pair in ends or [line[:2]]):
                continue
            shown = line._replace(kind="order")
        found.append(shown._replace(label=EACH) if _one_to_one(shown, ends, boxes) else shown)
    return found


def _one_to_one(line: Line, ends: Sequence[tuple[str, str]], boxes: Mapping[str, Box]) -> bool:
    """Return whether to label a line as linking each action of one box with one of the other.

    ``ends`` are the pairs of actions that the line stands for. A line that has a label already, or
    that stays within one lane, needs none.
    """
    tail, head = boxes.get(line.tail), boxes.get(line.head)
    if tail is None or head is None or line.label or (tail.lane == head.lane is not None):
        return False
    return pairs(ends, len(tail.actions), len(head.actions))


def _points(
    points: Collection[str], lines: Sequence[Line], boxes: Mapping[str, Box]
) -> dict[str, str | None]:
    """Map each drawn point to the lane that contains all its lines, or to None."""
    near: dict[str, set[str | None]] = defaultdict(set)
    for tail, head, *_ in lines:
        for point, other in ((tail, head), (head, tail)):
            near[point].add(boxes[other].lane if other in boxes else None)
    return {p: next(iter(near[p])) if len(near[p]) == 1 else None for p in points if p in near}
