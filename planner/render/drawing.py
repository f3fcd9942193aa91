# SPDX-License-Identifier: Apache-2.0
"""Decides which boxes, lanes, points and lines a picture of a plan shows, and the texts in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from planner.plan.model import JOIN, Action, ActionPlan
from planner.render import swimlanes
from planner.render.drawn_graph import DrawnGraph, Line, plan_to_graph
from planner.render.equivalence import Depth, chains, depths, equivalent, members, merged, siblings
from planner.render.look import Look, looks, of_state

#: In plans with more actions than this, equivalent actions share a box.
MANY = 40
#: A picture with more boxes than this is folded.
MOST_BOXES = 200
#: The meaning of each kind of line, as the legend explains it and in its order.
KINDS = {
    "need": "must have ended well",
    "any": "one of these must have ended well",
    "order": "must have ended",
    "trigger": "triggers it by ending with one of these outcomes",
}
#: The label of a line between two boxes that means one line from each action to its counterpart.
EACH = "1:1"
#: The mark before each name in a box whose actions may run at the same time.
BESIDE = "•"
#: The maximum number of names in a box.
LISTED = 16
#: The maximum number of names in a tooltip.
NAMED = 200


class Box(NamedTuple):
    """One action, or several equivalent ones.

    ``names`` are the names of the actions without that of the lane. If ``serial``, they run one
    after another, else they may run at the same time. Each name stands for ``times`` actions in
    each of the equivalent lanes that are drawn as ``lane``.
    """

    actions: tuple[Action, ...]
    names: tuple[str, ...]
    look: Look
    lane: str | None = None
    times: int = 1
    serial: bool = False

    def rows(self) -> list[str]:
        """Return the names as they are written in the box, one in each row."""
        times = f" x {self.times}" if self.times > 1 else ""
        if len(self.names) == 1:
            return [self.names[0] + times]
        marks = (f"{i}." if self.serial else BESIDE for i in range(1, len(self.names) + 1))
        rows = [f"{mark} {name}{times}" for mark, name in zip(marks, self.names, strict=True)]
        hidden = len(rows) - LISTED
        return rows if hidden < 2 else [*rows[:LISTED], f"… and {hidden} more"]


class Drawing(NamedTuple):
    """The content of a picture. Ids are made of positions in the plan, not of uuids.

    ``boxes`` are by id, in schedule order. ``points`` maps ids of points to lanes; a point is a dot
    in which many lines meet. ``lanes`` maps ids to titles. ``left_out`` is the number of lines that
    are not drawn because others imply them. If it ``is_folded``, boxes are those of :func:`folded`.
    """

    boxes: Mapping[str, Box]
    points: Mapping[str, str | None]
    lines: list[Line]
    lanes: Mapping[str, str]
    left_out: int
    is_folded: bool = False


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
        lane_ids[first]: swimlanes.title(names, groups.get(first, ()))
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
    single = {n: (b.lane, of_state(b.look), b.times) for n, b in boxes.items() if len(b.names) == 1}
    after = chains(single, lines)
    return _merged_boxes(boxes, after, serial=True), merged(lines, after)


def _merged_boxes(
    boxes: Mapping[str, Box], firsts: Mapping[str, str], serial: bool
) -> dict[str, Box]:
    found = {}
    for first, names in members({n: firsts.get(n, n) for n in boxes}).items():
        parts, box = [boxes[name] for name in names], boxes[first]
        if len(parts) > 1:
            if len({part.look for part in parts}) > 1:
                box = box._replace(look=of_state(box.look))
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
    return names[0] if len(names) == 1 else swimlanes.spans(names)


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
    tails, heads = {one for one, _ in ends}, {other for _, other in ends}
    numbers = {len(ends), len(tails), len(heads), len(tail.actions), len(head.actions)}
    return len(numbers) == 1 and len(ends) > 1


def folded(drawing: Drawing) -> Drawing:
    """Return a drawing without lanes, with one box for all that have the same tasks and look.

    If that are still too many boxes, those of the same types share one, which shows these. Lines
    between actions of a box are left out, and those from a box to one that is nearer to the
    beginning on average.
    """
    depth = {name: deep + 0.001 * point for name, (deep, point) in depths_of(drawing).items()}
    firsts: dict[str, str] = {}
    for of_task in (True, False):
        names: dict[Hashable, str] = {}
        for name, box in drawing.boxes.items():
            kinds = _types(box)
            tasks = box.names if of_task and box.lane is not None else ()
            firsts[name] = names.setdefault((kinds, tasks, box.look), name)
        if len(names) <= MOST_BOXES:
            break
    groups = members(firsts)
    boxes = {}
    for first, same in groups.items():
        box = drawing.boxes[first]
        actions = tuple(action for name in same for action in drawing.boxes[name].actions)
        if box.lane is not None and len({drawing.boxes[name].names for name in same}) == 1:
            times = len(actions) // len(box.names)
            boxes[first] = Box(actions, box.names, box.look, None, times, box.serial)
        else:
            types = (", ".join(_types(box)),)
            boxes[first] = Box(actions, types, box.look, None, len(actions), serial=False)
    depth |= {
        first: sum(map(depth.__getitem__, same)) / len(same) for first, same in groups.items()
    }
    drawn = DrawnGraph([*boxes, *drawing.points])
    for line in merged(drawing.lines, firsts):
        if depth[line.tail] < depth[line.head]:
            drawn.line(*line._replace(label="" if line.label == EACH else line.label))
    drawn.contract(drawing.points)
    left_out = drawing.left_out + drawn.reduce()
    lines = drawn.lines()
    points = _points(drawing.points, lines, boxes)
    return Drawing(boxes, points, lines, {}, left_out, is_folded=True)


def _types(box: Box) -> tuple[str, ...]:
    return tuple(dict.fromkeys(action.action_type for action in box.actions))


def depths_of(drawing: Drawing) -> dict[str, Depth]:
    """Return the depth of each box and each point."""
    graph = DrawnGraph([*drawing.boxes, *drawing.points])
    for line in drawing.lines:
        graph.line(*line)
    return depths(graph, drawing.points)


def _points(
    points: Collection[str], lines: Sequence[Line], boxes: Mapping[str, Box]
) -> dict[str, str | None]:
    """Map each drawn point to the lane that contains all its lines, or to None."""
    near: dict[str, set[str | None]] = defaultdict(set)
    for tail, head, *_ in lines:
        for point, other in ((tail, head), (head, tail)):
            near[point].add(boxes[other].lane if other in boxes else None)
    return {p: next(iter(near[p])) if len(near[p]) == 1 else None for p in points if p in near}


def text_lines(box: Box) -> list[str]:
    """Return the lines of text in a box: names, description, state."""
    texts = dict.fromkeys((*box.rows(), about(box)))
    state = f"{box.look.mark} {box.actions[0].state}".strip()
    return [*texts, state]


def tooltip(box: Box) -> list[str]:
    """Return the lines of a tooltip: the state of the box, name and message of each action."""
    first, many = box.actions[0], len(box.actions)
    lines = [f"{first.state}: " + (first.label if many == 1 else f"{many} actions")]
    if many == 1:
        lines += [text for text in (first.description, first.status_message) if text]
    else:
        lines += [
            f"{a.label}: {a.status_message}" if a.status_message else a.label
            for a in box.actions[:NAMED]
        ]
        lines += [f"and {many - NAMED} more"] if many > NAMED else []
    return lines


def about(box: Box) -> str:
    """Return the description of the action in a box, or the types of several actions."""
    if len(box.actions) == 1 and box.actions[0].description:
        return box.actions[0].description
    return ", ".join(_types(box))


def notes(drawing: Drawing) -> list[str]:
    """Return the sentences that explain a drawing, apart from its colours and kinds of lines.

    They contain the number of drawn actions, the meaning of marks and points that occur, and
    whether lines are left out.
    """
    drawn = sum(len(box.actions) for box in drawing.boxes.values())
    count = f"{drawn} action{'' if drawn == 1 else 's'}"
    if drawn > len(drawing.boxes):
        alike = "" if drawing.is_folded else " equivalent"
        count += f" in {len(drawing.boxes)} boxes: x N means N{alike} actions"
    said = [count]
    if any(line.label == EACH for line in drawing.lines):
        said.append(f"{EACH}: each action has its own counterpart")
    lists = [box for box in drawing.boxes.values() if len(box.names) > 1]
    if any(box.serial for box in lists):
        said.append("1. 2. 3.: one after another")
    if not all(box.serial for box in lists):
        said.append(f"{BESIDE}: they may run at once, and have equal lines")
    if drawing.points:
        said.append("through a point: all actions before it precede all behind it")
    if drawing.is_folded:
        said.append("which action of a box waits for which of another is left out")
    if drawing.left_out:
        said.append("lines that others imply are left out")
    return said
