# SPDX-License-Identifier: Apache-2.0
"""A plan as text from which other programs draw: dot, of Graphviz, and Mermaid, of web pages.

The texts do not depend on uuids. If many actions have the same set of predecessors, the lines go
through a point, so that a text is linear in the size of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from planner.plan.model import Action, ActionPlan
from planner.render.drawing import (
    KINDS,
    Box,
    Drawing,
    draw,
    notes,
    text_lines,
    tooltip,
)
from planner.render.look import LOOKS
from planner.render.shapes import printable

_STYLES = {
    "need": "style=solid",
    "any": "style=dashed",
    "order": 'style=solid, color="#9aa3ad", arrowhead=vee',
    "trigger": 'style=dotted, color="#7a3db8", fontcolor="#7a3db8", arrowhead=vee',
}
_ARROWS = {"need": "-->", "any": "-. any .->", "order": "-->", "trigger": "-. {} .->"}
_COLOURS = {"order": "#9aa3ad", "trigger": "#7a3db8"}


def dot(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as dot.

    Lanes become clusters.
    """
    drawing = draw(plan, keep)
    name = plan.name or plan.planner
    out = [f"digraph {_quoted(name)} {{"]
    out += [f"  // {_STYLES[kind]}: {meaning}" for kind, meaning in KINDS.items()]
    out += [
        f"  rankdir={'TB' if drawing.lanes else 'LR'};",
        '  graph [labelloc=t, fontname="sans-serif"];',
        f"  label={_quoted(f'{name}: {plan.state}', *notes(drawing))};",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
        *_in_lanes(drawing, _dot_box, "{} [shape=point];", _cluster, "  }"),
    ]
    for tail, head, kind, label in drawing.lines:
        style = _STYLES[kind] + (f", label={_quoted(label)}" if label else "")
        style += ", arrowhead=none" if head in drawing.points else ""
        out.append(f"  {tail} -> {head} [{style}];")
    return "\n".join([*out, "}", ""])


def _dot_box(name: str, box: Box) -> str:
    colour = f', fillcolor="{box.look.fill}"' if box.look.fill != "#ffffff" else ""
    more = f", tooltip={_quoted(*tooltip(box))}" if len(box.actions) > 1 else ""
    more += ", peripheries=2" if len(box.actions) > len(box.names) else ""
    return f"{name} [label={_quoted(*text_lines(box))}{colour}{more}];"


def _cluster(lane: str, title: str) -> Sequence[str]:
    label = f"    label={_quoted(title)};"
    return f"  subgraph cluster_{lane} {{", label, '    style="rounded"; color="#a0a0a0";'


def _quoted(*lines: str) -> str:
    r"""Quote lines of text as one string of dot.

    >>> print(_quoted('say "a\\b"', "twice"))
    "say \"a\\b\"\ntwice"
    """
    texts = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(texts) + '"'


def mermaid(plan: ActionPlan, keep: Callable[[Action], bool] | None = None) -> str:
    """Return a plan, or only those of its actions that ``keep`` accepts, as a Mermaid flowchart.

    Lanes become subgraphs, points small circles.
    """
    drawing = draw(plan, keep)
    out = [f"flowchart {'TB' if drawing.lanes else 'LR'}"]
    for kind, meaning in KINDS.items():
        grey = " in grey" if kind == "order" else ""
        out.append(f"  %% {_ARROWS[kind].format('outcome')}{grey} {meaning}")
    out += [f"  %% {text}" for text in notes(drawing)]
    out.append("  classDef point fill:#000,stroke:#000,color:#000;")
    used = {box.look.word for box in drawing.boxes.values()}
    out += [f"  classDef {word} fill:{LOOKS[word].fill};" for word in LOOKS if word in used]
    out += _in_lanes(drawing, _mermaid_box, '{}((" ")):::point', _subgraph, "  end")
    for tail, head, kind, label in drawing.lines:
        said = f"|{label}|" if label and kind != "trigger" else ""
        out.append(f"  {tail} {_ARROWS[kind].format(label)}{said} {head}")
    for kind, colour in _COLOURS.items():
        places = ",".join(str(i) for i, line in enumerate(drawing.lines) if line.kind == kind)
        out += [f"  linkStyle {places} stroke:{colour}"] if places else []
    return "\n".join([*out, ""])


def _mermaid_box(name: str, box: Box) -> str:
    return f'{name}["{"<br/>".join(map(_escaped, text_lines(box)))}"]:::{box.look.word}'


def _subgraph(lane: str, title: str) -> Sequence[str]:
    return (f'  subgraph {lane}["{_escaped(title)}"]',)


def _escaped(text: str) -> str:
    """Replace every character that Mermaid or HTML could interpret by its character code.

    >>> print(_escaped('run "a<b"; echo #1'))
    run #34;a#60;b#34;#59; echo #35;1
    """
    return re.sub(r"[^\w .,:/()=+*@!?'-]", lambda found: f"#{ord(found[0])};", printable(text))


def _in_lanes(
    drawing: Drawing,
    box_line: Callable[[str, Box], str],
    point: str,
    begin: Callable[[str, str], Sequence[str]],
    end: str,
) -> list[str]:
    """Return the lines for boxes and points; those of a lane are between its beginning and end."""
    inside: dict[str | None, list[str]] = {None: [], **{lane: [] for lane in drawing.lanes}}
    for name, box in drawing.boxes.items():
        inside[box.lane].append(box_line(name, box))
    for name, lane in drawing.points.items():
        inside[lane].append(point.format(name))
    out = [f"  {text}" for text in inside[None]]
    for lane, title in drawing.lanes.items():
        out += [*begin(lane, title), *(f"    {text}" for text in inside[lane]), end]
    return out
