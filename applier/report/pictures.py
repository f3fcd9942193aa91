# SPDX-License-Identifier: Apache-2.0
"""The pictures of a report as SVG elements, with style sheets that apply only inside them."""

from __future__ import annotations

import re

from applier.timeline import style as timeline_style
from applier.timeline import svg as timeline_svg
from applier.timeline.values import Chart
from planner.model import JOIN, ActionPlan
from planner.render import svg as graph_svg
from planner.render.look import LOOKS

#: The width of a timeline in pixels, and the maximum number of characters of a graph: a larger one
#: could not be read on a page.
WIDTH, LARGEST = 980, 200_000
_GRAPH_DARK = """
text { fill: #e8eaed; }
.about, .label { fill: #b4bcc5; }
.page { fill: #14171b; }
.lane rect { fill: #1c2126; stroke: #30373f; }
.box rect { stroke: #98a3ae; }
.box .more { fill: #20252b; }
.box.FAILED rect, .box.UNKNOWN rect, .box.REVERT_FAILED rect { stroke: #ff9d96; }
.point, .head { fill: #c6cdd5; }
.need, .any { stroke: #c6cdd5; }
.order { stroke: #79848f; }
.head.order { fill: #79848f; }
.trigger { stroke: #c79bf0; }
.head.trigger { fill: #c79bf0; }
.halo { fill: #14171b; }
.legend-sample { stroke: #98a3ae; }
"""
#: The fill of each state on a dark page, in the boxes of a graph and in its legend.
_DARK_FILLS = {
    **timeline_style.DARK_FILLS,
    "ANCHOR": "#164a4e",
    "READY": "#5a4d12",
    "FAILED_DEPENDENCIES": "#66461c",
    "SKIPPED": "#46366a",
    "CANCELLED": "#3c4147",
}


def timeline(chart: Chart) -> str:
    """Return a chart as an SVG element."""
    return timeline_svg.picture(chart, WIDTH)


def graph(plan: ActionPlan) -> str:
    """Return the graph of a plan as an SVG element; an empty text if it would be too large."""
    drawn = graph_svg.picture(plan, lambda action: action.action_type != JOIN)
    return drawn if len(drawn) <= LARGEST else ""


def style() -> str:
    """Return the style sheet of both pictures, with dark colours on screens that prefer them."""
    dark = _GRAPH_DARK + "".join(
        f".{word} > rect {{ fill: {_DARK_FILLS[word]}; }}\n"
        for word in LOOKS
        if word in _DARK_FILLS
    )
    return "\n".join(
        [
            scoped(".timeline", timeline_style.light()),
            scoped(".graph", graph_svg.STYLE),
            "@media screen and (prefers-color-scheme: dark) {",
            scoped(".timeline", timeline_style.dark()),
            scoped(".graph", dark),
            "}",
        ]
    )


def scoped(scope: str, sheet: str) -> str:
    """Return a style sheet whose rules apply only inside elements that ``scope`` selects.

    >>> scoped(".graph", "text, .a b { fill: red; }")
    '.graph text, .graph .a b { fill: red; }'
    """

    def inside(found: re.Match[str]) -> str:
        before, selectors = found[1], found[2]
        return before + ", ".join(f"{scope} {one.strip()}" for one in selectors.split(",")) + " {"

    return re.sub(r"(\s*)([^{}]+?)\s*\{", inside, sheet)
