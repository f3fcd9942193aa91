# SPDX-License-Identifier: Apache-2.0
"""Draws the title and the legend: the plan, its states, and the meaning of the lines."""

from __future__ import annotations

from collections import Counter
from html import escape

from planner.model import ActionPlan
from planner.render.boxes import BESIDE, EACH, KINDS, Drawing, printable
from planner.render.look import LOOKS, MEANINGS

_LETTER, _ROW, _SAMPLE = 6.5, 22.0, 30.0


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


def legend(
    plan: ActionPlan, drawing: Drawing, margin: float, width: float
) -> tuple[list[str], float, float]:
    """Return the SVG elements of title and legend, the y of their lower edge, and their width.

    All numbers are pixels. Entries that exceed ``width`` continue in the next row.
    """
    title = printable(f"{plan.name or plan.planner}: {plan.state}")
    out = [f'<text class="plan" x="{margin:.0f}" y="{margin + 8:.0f}">{escape(title)}</text>']
    x, y, widest = margin, margin + 34, len(title) * 10.5
    for sample, text in _entries(drawing):
        room = (_SAMPLE + 6 if sample else 0) + len(text) * _LETTER + 18
        if x > margin and x + room > margin + width:
            x, y = margin, y + _ROW
        at = x
        if sample:
            out.append(f'<g transform="translate({x:.1f} {y - 8:.1f})">{sample}</g>')
            at += _SAMPLE + 6
        out.append(f'<text class="legend" x="{at:.1f}" y="{y:.1f}">{escape(text)}</text>')
        x += room
        widest = max(widest, x - margin)
    return out, y + _ROW, widest


def _entries(drawing: Drawing) -> list[tuple[str, str]]:
    counts: Counter[str] = Counter()
    for box in drawing.boxes.values():
        counts[box.look.word] += len(box.actions)
    entries = []
    for word, look in LOOKS.items():
        if counts[word]:
            swatch = (
                f'<g class="{word}"><rect class="legend-sample" width="{_SAMPLE:.0f}" height="16" '
                f'rx="4" fill="{look.fill}" stroke="#555555"/></g>'
                f'<text class="mark" x="15" y="8">{look.mark}</text>'
            )
            entries.append((swatch, f"{MEANINGS.get(word, word)} ({counts[word]})"))
    kinds = {line.kind for line in drawing.lines}
    for kind, meaning in KINDS.items():
        if kind in kinds:
            line = f'<path class="{kind}" d="M0 8L28 8" marker-end="url(#arrow-{kind})"/>'
            entries.append((line, meaning))
    return entries + [("", text) for text in notes(drawing)]
