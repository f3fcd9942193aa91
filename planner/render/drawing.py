"""What every picture of a plan shows, before it has a form: boxes, points and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from planner.model import JOIN, Action, ActionPlan
from planner.states import ActionState

#: A set with more lines than this to those that share it is drawn through a point.
DENSE = 16

#: What the kinds of lines mean, in the order in which a legend lists them.
KINDS = {
    "need": "must have ended well",
    "any": "one of these must have ended well",
    "trigger": "sets it off when it ends with one of these outcomes",
    "order": "must have ended",
}

#: Colours of the states, PENDING being as it comes.
COLOURS = {
    ActionState.ONGOING: "#cfe8ff",
    ActionState.SUCCEEDED: "#d5f0d0",
    ActionState.FAILED: "#f7c6c5",
    ActionState.SKIPPED: "#e6e6e6",
    ActionState.FAILED_DEPENDENCIES: "#fbe3d0",
    ActionState.CANCELLED: "#e6e6e6",
    ActionState.REVERTED: "#e6dcf5",
    ActionState.REVERT_FAILED: "#f7c6c5",
    ActionState.UNKNOWN: "#fff3b0",
}


class Line(NamedTuple):
    """A line between two boxes or points; ``kind`` is one of KINDS."""

    tail: str
    head: str
    kind: str
    label: str = ""


class Drawing(NamedTuple):
    """A plan's boxes by id, in schedule order, the ids of its points, and its lines."""

    boxes: Mapping[str, Action]
    points: Collection[str]
    lines: list[Line]


def draw(plan: ActionPlan) -> Drawing:
    """Say what stands in the picture of a plan; ids go by position, not by uuid."""
    ids = {action.uuid: f"a{i}" for i, action in enumerate(plan.actions)}
    boxes = {ids[a.uuid]: a for a in plan.actions if a.action_type != JOIN}
    joins = [ids[a.uuid] for a in plan.actions if a.action_type == JOIN]
    lines = _Lines(plan, ids)
    drawn = [line for action in plan.actions for line in lines.to(action)]
    return Drawing(boxes, dict.fromkeys([*joins, *lines.points.values()]), drawn)


def text_lines(action: Action) -> list[str]:
    """Give what a box says: name, description, state; each one line of printable text."""
    texts = dict.fromkeys((action.label, action.description or action.action_type))
    return ["".join(c if c.isprintable() else " " for c in t) for t in (*texts, str(action.state))]


class _Lines:
    """The lines to one action after another; sets that many share go through points."""

    def __init__(self, plan: ActionPlan, ids: Mapping[str, str]) -> None:
        self._ids = ids
        self.points: dict[tuple[str, tuple[str, ...]], str] = {}
        shared = Counter(("order", action.parents) for action in plan.actions)
        shared.update(("need", action.needs) for action in plan.actions)
        self._dense = {
            (kind, group)
            for (kind, group), times in shared.items()
            if min(times, len(group)) > 1 and times * len(group) > DENSE
        }

    def to(self, action: Action) -> Iterator[Line]:
        """Give what comes in; a line that is of several kinds is drawn once, as the strongest."""
        head = self._ids[action.uuid]
        drawn: set[str] = set()
        yield from self._group("need", action.needs, head, drawn)
        for group in action.needs_any:
            yield from self._group("any", group, head, drawn)
        for source, outcomes in action.triggers:
            yield Line(self._ids[source], head, "trigger", " or ".join(outcomes))
            drawn.add(source)
        if not drawn.issuperset(action.parents):
            yield from self._group("order", action.parents, head, drawn)

    def _group(
        self, kind: str, group: tuple[str, ...], head: str, drawn: set[str]
    ) -> Iterator[Line]:
        key = (kind, group)
        if key not in self._dense:
            yield from (Line(self._ids[u], head, kind) for u in group if u not in drawn)
        else:
            if key not in self.points:
                point = self.points[key] = f"p{len(self.points)}"
                yield from (Line(self._ids[u], point, kind) for u in group)
            yield Line(self.points[key], head, kind)
        drawn.update(group)
