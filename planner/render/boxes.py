"""What a drawing is made of, and what its boxes say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.model import Action
from planner.render.drawn_graph import Line
from planner.render.look import Look

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
