# SPDX-License-Identifier: Apache-2.0
"""The parts of a drawing, and the text in its boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.model import Action
from planner.render.drawn_graph import Line
from planner.render.look import Look

#: The meaning of each kind of line, in the order of the legend.
KINDS = {
    "need": "must have ended well",
    "any": "one of these must have ended well",
    "order": "must have ended",
    "trigger": "sets it off when it ends with one of these outcomes",
}
#: Label of a line between two boxes of equal size that connects them one to one.
EACH = "1:1"
#: Mark before each name of a box whose actions run side by side.
BESIDE = "•"
#: How many names a box lists.
LISTED = 16
#: How many names a tooltip lists.
NAMED = 200


class Box(NamedTuple):
    """One action, or several equivalent ones.

    ``names`` leave out the name of the lane. If ``serial``, they run one after another, else side
    by side. ``times`` is how many actions each name stands for in each machine of the lane.
    """

    actions: tuple[Action, ...]
    names: tuple[str, ...]
    look: Look
    lane: str | None = None
    times: int = 1
    serial: bool = False

    def rows(self) -> list[str]:
        """Return the names as they are written, one a row."""
        times = f" x {self.times}" if self.times > 1 else ""
        if len(self.names) == 1:
            return [self.names[0] + times]
        marks = (f"{i}." if self.serial else BESIDE for i in range(1, len(self.names) + 1))
        rows = [f"{mark} {name}{times}" for mark, name in zip(marks, self.names, strict=True)]
        hidden = len(rows) - LISTED
        return rows if hidden < 2 else [*rows[:LISTED], f"… and {hidden} more"]


class Drawing(NamedTuple):
    """The content of a picture; ids follow the position in the plan, not the uuid.

    ``boxes`` by id, in schedule order; ``points`` by id with their lane; ``lanes`` by id with their
    titles. ``left_out`` counts the lines that are not drawn because others imply them.
    """

    boxes: Mapping[str, Box]
    points: Mapping[str, str | None]
    lines: list[Line]
    lanes: Mapping[str, str]
    left_out: int


def text_lines(box: Box) -> list[str]:
    """Return the text of a box: names, description, state; each one printable line."""
    texts = dict.fromkeys((*box.rows(), about(box)))
    state = f"{box.look.mark} {box.actions[0].state}".strip()
    return [printable(text) for text in (*texts, state)]


def tooltip(box: Box) -> list[str]:
    """Return all that is known of a box: its state, and the name and message of each action."""
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
    """Describe what the actions of a box do: the description of a single one, else their types."""
    if len(box.actions) == 1 and box.actions[0].description:
        return box.actions[0].description
    return ", ".join(dict.fromkeys(action.action_type for action in box.actions))


def printable(text: str) -> str:
    """Replace each character that cannot be printed, such as a line break, by a space."""
    return "".join(c if c.isprintable() else " " for c in text)
