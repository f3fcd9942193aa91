"""A plan as dot, the language of Graphviz."""

from __future__ import annotations

from planner.model import ActionPlan
from planner.render.drawing import COLOURS, KINDS, draw, text_lines

_STYLES = {
    "need": "solid",
    "any": "solid, arrowhead=odiamond",
    "trigger": "dotted",
    "order": "dashed",
}


def render(plan: ActionPlan) -> str:
    """Write a plan as dot; the same plan gives the same text, whatever its uuids.

    Joins are points. Where a set of actions stands before many others the lines go through a point
    as well, so that the text stays linear in the plan: each of the set comes before each beyond.
    """
    drawing = draw(plan)
    out = [f"digraph {_quoted(plan.name or plan.planner)} {{"]
    out += [f"  // {_STYLES[kind]}: {meaning}" for kind, meaning in KINDS.items()]
    out += [
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for box, action in drawing.boxes.items():
        colour = f', fillcolor="{COLOURS[action.state]}"' if action.state in COLOURS else ""
        out.append(f"  {box} [label={_quoted(*text_lines(action))}{colour}];")
    out += [f"  {point} [shape=point];" for point in drawing.points]
    for tail, head, kind, label in drawing.lines:
        style = f"style={_STYLES[kind]}" + (f", label={_quoted(label)}" if label else "")
        style += ", arrowhead=none" if head in drawing.points else ""
        out.append(f"  {tail} -> {head} [{style}];")
    return "\n".join([*out, "}", ""])


def _quoted(*lines: str) -> str:
    r"""Write text as one string of dot.

    >>> print(_quoted('say "a\\b"', "twice"))
    "say \"a\\b\"\ntwice"
    """
    texts = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(texts) + '"'
