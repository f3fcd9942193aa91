"""What every picture of a plan shows, before it has a form: boxes, lanes, points and lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from planner.model import JOIN, Action, ActionPlan
from planner.render import lanes as laning
from planner.render.alike import alike, depths, members, pairs
from planner.render.look import Look, looks
from planner.render.stacks import chains, joined, siblings
from planner.render.web import DENSE, Line, Web

#: More actions than this are not drawn one by one: one box stands for those that are alike.
MANY = 40

#: What the kinds of lines mean, in the order in which a legend lists them.
KINDS = {
    "need": "must have ended well",
    "any": "one of these must have ended well",
    "order": "must have ended",
    "trigger": "sets it off when it ends with one of these outcomes",
}
#: Label of a line between two boxes of equally many, where each has its own.
EACH = "1:1"
#: Mark of names in one box that stand side by side.
BESIDE = "•"
#: More names than this are not all written in a box.
LISTED = 16
#: More names than this do not all stand in a tooltip.
NAMED = 200


class Box(NamedTuple):
    """One action, or those that are alike.

    ``names`` are without the lane's; several of them stand one after another if ``serial``, else
    side by side. ``times`` is how many actions each name stands for, in each machine of the lane.
    """

    actions: tuple[Action, ...]
    names: tuple[str, ...]
    look: Look
    lane: str | None = None
    times: int = 1
    serial: bool = False

    def rows(self) -> list[str]:
        """Give the names as they are written, one a row."""
        times = f" x {self.times}" if self.times > 1 else ""
        if len(self.names) == 1:
            return [self.names[0] + times]
        marks = (f"{i}." if self.serial else BESIDE for i in range(1, len(self.names) + 1))
        rows = [f"{mark} {name}{times}" for mark, name in zip(marks, self.names, strict=True)]
        hidden = len(rows) - LISTED
        return rows if hidden < 2 else [*rows[:LISTED], f"… and {hidden} more"]


class Drawing(NamedTuple):
    """What a picture shows; ids go by position in the plan, not by uuid.

    ``boxes`` by id, in schedule order; ``points`` by id with their lane, ``lanes`` by id with their
    titles; ``left_out`` is how many lines are not drawn because others imply them.
    """

    boxes: Mapping[str, Box]
    points: Mapping[str, str | None]
    lines: list[Line]
    lanes: Mapping[str, str]
    left_out: int


def draw(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> Drawing:
    """Say what stands in the picture of a plan, or of those actions that ``keep`` says.

    What is not kept is passed through, as joins are: its ends stay ordered.
    """
    ids = {action.uuid: f"a{i}" for i, action in enumerate(plan.actions)}
    kept = {
        ids[a.uuid]: a for a in plan.actions if a.action_type != JOIN and (keep is None or keep(a))
    }
    web = _web(plan, ids)
    passed = web.nodes.keys() - kept.keys()
    web.keep_between(kept)
    web.contract(passed)
    left_out = web.reduce()
    web.contract(passed)
    return _drawing(plan, kept, web, left_out)


def text_lines(box: Box) -> list[str]:
    """Give what a box says: names, description, state; each one line of printable text."""
    texts = dict.fromkeys((*box.rows(), about(box)))
    state = f"{box.look.mark} {box.actions[0].state}".strip()
    return [printable(text) for text in (*texts, state)]


def tooltip(box: Box) -> list[str]:
    """Say all that is known of a box: state, then of each action its name, and its message."""
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
    return [printable(line) for line in lines]


def about(box: Box) -> str:
    """Say what the actions of a box do: one's description, else their types."""
    if len(box.actions) == 1 and box.actions[0].description:
        return box.actions[0].description
    return ", ".join(dict.fromkeys(action.action_type for action in box.actions))


def printable(text: str) -> str:
    """Write text as one line."""
    return "".join(c if c.isprintable() else " " for c in text)


def _web(plan: ActionPlan, ids: Mapping[str, str]) -> Web:
    """Make the web of all actions; sets that many share, and are large, go through a point."""
    web, shared = Web(ids.values()), _Shared(plan)
    for action in plan.actions:
        head = ids[action.uuid]
        for kind, group in shared.groups(action):
            point = shared.point_of(kind, group)
            if point is None:
                ends = group
            elif point in web.nodes:
                ends = ()
            else:
                web.node(point)
                ends = group
            for uuid in ends:
                web.line(ids[uuid], point or head, kind)
            if point is not None:
                web.line(point, head, kind)
        for source, outcomes in action.triggers:
            web.line(ids[source], head, "trigger", " or ".join(outcomes))
    return web


class _Shared:
    """The sets of a plan that more than a few actions share; each object is read once."""

    def __init__(self, plan: ActionPlan) -> None:
        self._plan = plan  # holds every group, so that the id of each stays its own
        self._known: dict[int, int] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        keys = [(kind, self._number(g)) for a in plan.actions for kind, g in self.groups(a)]
        sizes = [len(group) for group in self._numbers]
        dense = [
            key
            for key, times in Counter(keys).items()
            if min(times, sizes[key[1]]) > 1 and times * sizes[key[1]] > DENSE
        ]
        self._dense = {key: f"p{i}" for i, key in enumerate(dense)}

    def groups(self, action: Action) -> list[tuple[str, tuple[str, ...]]]:
        """List what comes before an action, by kind; parents that are its needs are left out."""
        groups = [("need", action.needs), *(("any", group) for group in action.needs_any)]
        if self._number(action.parents) != self._number(action.needs):
            groups.append(("order", action.parents))
        return groups

    def point_of(self, kind: str, group: tuple[str, ...]) -> str | None:
        """Name the point of a set, if it has one."""
        return self._dense.get((kind, self._number(group)))

    def _number(self, group: tuple[str, ...]) -> int:
        number = self._known.get(id(group))
        if number is None:
            number = self._known[id(group)] = self._numbers.setdefault(group, len(self._numbers))
        return number


def _drawing(plan: ActionPlan, kept: Mapping[str, Action], web: Web, left_out: int) -> Drawing:
    """Put what is alike into one box where there is much, and name what stands there."""
    by_uuid = laning.lanes(plan, list(kept.values()))
    lanes = {box: by_uuid[a.uuid] for box, a in kept.items() if a.uuid in by_uuid}
    look_of, points = looks(plan), [n for n in web.nodes if n not in kept]
    groups = laning.groups(plan)
    firsts = {node: node for node in web.nodes}
    first_lane = {lane: lane for lane in lanes.values()}
    if len(kept) > MANY:
        kinds = _kinds(plan, kept, web, look_of, lanes, groups)
        firsts, first_lane = alike(web, kinds, lanes)
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
        lane_ids[first]: printable(laning.title(names, groups.get(first, ())))
        for first, names in members(first_lane).items()
    }
    lines = _merged(web, firsts, boxes)
    if len(boxes) > MANY:
        boxes, lines = _stacked(boxes, lines)
    return Drawing(boxes, _points(points, lines, boxes), lines, titles, left_out)


def _stacked(boxes: Mapping[str, Box], lines: list[Line]) -> tuple[dict[str, Box], list[Line]]:
    """Let boxes stand in one: of equal type with the very same lines, then those in a chain."""
    types = {n: (b.lane, b.look, b.times, b.actions[0].action_type) for n, b in boxes.items()}
    beside = siblings(types, lines)
    boxes, lines = _joined(boxes, beside, serial=False), joined(lines, beside)
    single = {n: (b.lane, b.look, b.times) for n, b in boxes.items() if len(b.names) == 1}
    after = chains(single, lines)
    return _joined(boxes, after, serial=True), joined(lines, after)


def _joined(boxes: Mapping[str, Box], firsts: Mapping[str, str], serial: bool) -> dict[str, Box]:
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


def _kinds(
    plan: ActionPlan,
    kept: Mapping[str, Action],
    web: Web,
    look_of: Mapping[str, Look],
    lanes: Mapping[str, str],
    groups: Mapping[str, tuple[str, ...]],
) -> dict[str, Hashable]:
    """Give what must be equal for two nodes to be alike, before their neighbours are asked."""
    deep = depths(web, web.nodes.keys() - kept.keys())
    found: dict[str, Hashable] = {}
    for node in web.nodes:
        action = kept.get(node)
        if action is None:
            found[node] = (deep[node],)
            continue
        same_name = lanes and plan.planner != "rolling_update"
        task = laning.task_of(plan.planner, action) if same_name else None
        group = groups.get(lanes.get(node, ""), ())
        found[node] = (deep[node], action.action_type, look_of[action.uuid], task, group)
    return found


def _name(plan: ActionPlan, actions: tuple[Action, ...], lanes: Mapping[str, str]) -> str:
    if not lanes:
        names = [action.label for action in actions]
    else:
        names = list(dict.fromkeys(laning.task_of(plan.planner, a) for a in actions))
    return printable(names[0] if len(names) == 1 else laning.spans(names))


def _merged(web: Web, firsts: Mapping[str, str], boxes: Mapping[str, Box]) -> list[Line]:
    """Draw each line between what is drawn once; pairs of equally many are marked."""
    single: dict[Line, list[tuple[str, str]]] = defaultdict(list)
    drawn = Web(dict.fromkeys(firsts.values()))
    for tail, head, kind, label in web.lines():
        line = Line(firsts[tail], firsts[head], kind, label)
        drawn.line(*line)
        single[line].append((tail, head))
    drawn.contract(drawn.nodes.keys() - boxes.keys())
    return [
        line._replace(label=EACH) if _each(line, single.get(line, ()), boxes) else line
        for line in drawn.lines()
    ]


def _each(line: Line, ends: Sequence[tuple[str, str]], boxes: Mapping[str, Box]) -> bool:
    """Say whether each of one box has its own in another, and that is not clear from the lane."""
    tail, head = boxes.get(line.tail), boxes.get(line.head)
    if tail is None or head is None or line.label or (tail.lane == head.lane is not None):
        return False
    return pairs(ends, len(tail.actions), len(head.actions))


def _points(
    points: Collection[str], lines: Sequence[Line], boxes: Mapping[str, Box]
) -> dict[str, str | None]:
    """Give each point that is drawn the lane that all its lines stay in, if there is one."""
    near: dict[str, set[str | None]] = defaultdict(set)
    for tail, head, *_ in lines:
        for point, other in ((tail, head), (head, tail)):
            near[point].add(boxes[other].lane if other in boxes else None)
    return {p: next(iter(near[p])) if len(near[p]) == 1 else None for p in points if p in near}
