"""A plan as Mermaid, which many web pages draw from plain text."""

from __future__ import annotations

import re

from planner.model import ActionPlan
from planner.render.drawing import COLOURS, KINDS, draw, text_lines

_ARROWS = {"need": "-->", "any": "-- any -->", "trigger": "-. {} .->", "order": "-.->"}


def render(plan: ActionPlan) -> str:
    """Write a plan as a Mermaid flowchart; the same plan gives the same text, whatever its uuids.

    Joins are small circles. Where a set of actions stands before many others the lines go through
    such a circle as well, so that the text stays linear in the plan: each of the set comes before
    each beyond.
    """
    drawing = draw(plan)
    out = [f"  %% {_ARROWS[k].format('outcome')} {meaning}" for k, meaning in KINDS.items()]
    out.append("  classDef point fill:#000,stroke:#000,color:#000;")
    states = {action.state for action in drawing.boxes.values()}
    out += [f"  classDef {s} fill:{COLOURS[s]};" for s in COLOURS if s in states]
    for box, action in drawing.boxes.items():
        state = f":::{action.state}" if action.state in COLOURS else ""
        label = "<br/>".join(map(_escaped, text_lines(action)))
        out.append(f'  {box}["{label}"]{state}')
    out += [f'  {point}((" ")):::point' for point in drawing.points]
    out += [
        f"  {tail} {_ARROWS[kind].format(label)} {head}"
        for tail, head, kind, label in drawing.lines
    ]
    return "\n".join(["flowchart LR", *out, ""])


def _escaped(text: str) -> str:
    """Write what might mean something to Mermaid, or to the page around it, by its number.

    >>> print(_escaped('run "a<b"; echo #1'))
    run #34;a#60;b#34;#59; echo #35;1
    """
    return re.sub(r"[^\w .,:/()=+*@!?'-]", lambda found: f"#{ord(found[0])};", text)
