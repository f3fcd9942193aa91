# SPDX-License-Identifier: Apache-2.0
"""The parts of a drawing, and the text in its boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.plan.model import Action
from planner.render.drawn_graph import Line
from planner.render.look import Look

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
    are not drawn because others imply them.
    """

    boxes: Mapping[str, Box]
    points: Mapping[str, str | None]
    lines: list[Line]
    lanes: Mapping[str, str]
    left_out: int


def text_lines(box: Box) -> list[str]:
    """Return the printable lines of text in a box: names, description, state."""
    texts = dict.fromkeys((*box.rows(), about(box)))
    state = f"{box.look.mark} {box.actions[0].state}".strip()
    return [printable(text) for text in (*texts, state)]


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
    return [printable(line) for line in lines]


def about(box: Box) -> str:
    """Return the description of the action in a box, or the types of several actions."""
    if len(box.actions) == 1 and box.actions[0].description:
        return box.actions[0].description
    return ", ".join(dict.fromkeys(action.action_type for action in box.actions))


def printable(text: str) -> str:
    """Replace each character that cannot be printed, such as a line break, by a space."""
    return "".join(c if c.isprintable() else " " for c in text)


def notes(drawing: Drawing) -> list[str]:
    """Return the sentences that explain a drawing, apart from its colours and kinds of lines.

    They contain the number of drawn actions, the meaning of marks and points that occur, and
    whether lines are left out.
    """
    drawn = sum(len(box.actions) for box in drawing.boxes.values())
    count = f"{drawn} action{'' if drawn == 1 else 's'}"
    if drawn > len(drawing.boxes):
        count += f" in {len(drawing.boxes)} boxes: x N means N equivalent actions"
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
    if drawing.left_out:
        said.append("lines that others imply are left out")
    return said
