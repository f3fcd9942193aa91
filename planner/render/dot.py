# SPDX-License-Identifier: Apache-2.0
"""A plan in dot, the language of Graphviz."""

from __future__ import annotations

from collections.abc import Callable

from planner.plan.model import Action, ActionPlan
from planner.render.boxes import KINDS, Drawing, notes, printable, text_lines, tooltip
from planner.render.drawing import draw

_STYLES = {
    "need": "style=solid",
    "any": "style=dashed",
    "order": 'style=solid, color="#9aa3ad", arrowhead=vee',
    "trigger": 'style=dotted, color="#7a3db8", fontcolor="#7a3db8", arrowhead=vee',
}


def render(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as dot.

    The text does not depend on uuids. Lanes become clusters. If many actions have the same set of
    predecessors, the lines go through a point, so that the text is linear in the size of the plan.
    """
    drawing = draw(plan, keep)
    name = plan.name or plan.planner
    out = [f"digraph {_quoted(name)} {{"]
    out += [f"  // {_STYLES[kind]}: {meaning}" for kind, meaning in KINDS.items()]
    out += [
        f"  rankdir={'TB' if drawing.lanes else 'LR'};",
        '  graph [labelloc=t, fontname="sans-serif"];',
        f"  label={_quoted(f'{printable(name)}: {plan.state}', *notes(drawing))};",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
        *_boxes(drawing),
    ]
    for tail, head, kind, label in drawing.lines:
        style = _STYLES[kind] + (f", label={_quoted(label)}" if label else "")
        style += ", arrowhead=none" if head in drawing.points else ""
        out.append(f"  {tail} -> {head} [{style}];")
    return "\n".join([*out, "}", ""])


def _boxes(drawing: Drawing) -> list[str]:
    """Return the lines for boxes and points; those of a lane are in its cluster."""
    inside: dict[str | None, list[str]] = {None: [], **{lane: [] for lane in drawing.lanes}}
    for name, box in drawing.boxes.items():
        colour = f', fillcolor="{box.look.fill}"' if box.look.fill != "#ffffff" else ""
        more = f", tooltip={_quoted(*tooltip(box))}" if len(box.actions) > 1 else ""
        more += ", peripheries=2" if len(box.actions) > len(box.names) else ""
        inside[box.lane].append(f"{name} [label={_quoted(*text_lines(box))}{colour}{more}];")
    for point, lane in drawing.points.items():
        inside[lane].append(f"{point} [shape=point];")
    out = [f"  {text}" for text in inside[None]]
    for lane, title in drawing.lanes.items():
        out.append(f"  subgraph cluster_{lane} {{")
        out += [f"    label={_quoted(title)};", '    style="rounded"; color="#a0a0a0";']
        out += [*(f"    {text}" for text in inside[lane]), "  }"]
    return out


def _quoted(*lines: str) -> str:
    r"""Quote lines of text as one string of dot.

    >>> print(_quoted('say "a\\b"', "twice"))
    "say \"a\\b\"\ntwice"
    """
    texts = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(texts) + '"'
