# SPDX-License-Identifier: Apache-2.0
"""A plan in Mermaid, a text format for diagrams that many web pages can draw."""

from __future__ import annotations

import re
from collections.abc import Callable

from planner.plan.model import Action, ActionPlan
from planner.render.boxes import KINDS, Drawing, notes, text_lines
from planner.render.drawing import draw
from planner.render.look import LOOKS

_ARROWS = {"need": "-->", "any": "-. any .->", "order": "-->", "trigger": "-. {} .->"}
_COLOURS = {"order": "#9aa3ad", "trigger": "#7a3db8"}


def render(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as a Mermaid flowchart.

    The text does not depend on uuids. Lanes become subgraphs. If many actions have the same set of
    predecessors, the lines go through a small circle, so that the text is linear in the size of the
    plan.
    """
    drawing = draw(plan, keep)
    out = [f"flowchart {'TB' if drawing.lanes else 'LR'}"]
    out += [f"  %% {_meaning(kind)} {meaning}" for kind, meaning in KINDS.items()]
    out += [f"  %% {text}" for text in notes(drawing)]
    out.append("  classDef point fill:#000,stroke:#000,color:#000;")
    used = {box.look.word for box in drawing.boxes.values()}
    out += [f"  classDef {word} fill:{LOOKS[word].fill};" for word in LOOKS if word in used]
    out += _boxes(drawing)
    for tail, head, kind, label in drawing.lines:
        said = f"|{label}|" if label and kind != "trigger" else ""
        out.append(f"  {tail} {_ARROWS[kind].format(label)}{said} {head}")
    for kind, colour in _COLOURS.items():
        places = ",".join(str(i) for i, line in enumerate(drawing.lines) if line.kind == kind)
        out += [f"  linkStyle {places} stroke:{colour}"] if places else []
    return "\n".join([*out, ""])


def _meaning(kind: str) -> str:
    grey = " in grey" if kind == "order" else ""
    return _ARROWS[kind].format("outcome") + grey


def _boxes(drawing: Drawing) -> list[str]:
    """Return the lines for boxes and points; those of a lane are in its subgraph."""
    inside: dict[str | None, list[str]] = {None: [], **{lane: [] for lane in drawing.lanes}}
    for name, box in drawing.boxes.items():
        label = "<br/>".join(map(_escaped, text_lines(box)))
        inside[box.lane].append(f'{name}["{label}"]:::{box.look.word}')
    for point, lane in drawing.points.items():
        inside[lane].append(f'{point}((" ")):::point')
    out = [f"  {text}" for text in inside[None]]
    for lane, title in drawing.lanes.items():
        out += [f'  subgraph {lane}["{_escaped(title)}"]']
        out += [*(f"    {text}" for text in inside[lane]), "  end"]
    return out


def _escaped(text: str) -> str:
    """Replace every character that Mermaid or HTML could interpret by its character code.

    >>> print(_escaped('run "a<b"; echo #1'))
    run #34;a#60;b#34;#59; echo #35;1
    """
    return re.sub(r"[^\w .,:/()=+*@!?'-]", lambda found: f"#{ord(found[0])};", text)
