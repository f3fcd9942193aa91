# SPDX-License-Identifier: Apache-2.0
"""The colours and patterns of a timeline, light and dark.

Colour is never the only sign: each state has a mark or an outline of its own, each reason to wait a
pattern.
"""

from __future__ import annotations

from collections.abc import Mapping

from applier.timeline.values import Reason
from planner.render.look import LOOKS

#: The lines of the pattern of each reason, in a square of 6 by 6.
_PATTERNS: Mapping[str, str] = {
    Reason.NEED: "M0 3H6",
    Reason.ORDER: "M0 3H2M4 3H6",
    Reason.LIMIT: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5",
    Reason.WORKER: "M-1 -1L7 7M-1 5L1 7M5 -1L7 1",
    Reason.PLAN: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5M-1 -1L7 7M-1 5L1 7M5 -1L7 1",
    Reason.PAUSE: "M1.5 0V6M4.5 0V6",
    Reason.WINDOW: "M0 3H6M3 0V6",
    Reason.OTHER: "M2 2h1.5M5 5h1.5",
}
#: The fill of each state on a dark page; for a light page see :mod:`planner.render.look`.
DARK_FILLS: Mapping[str, str] = {
    "PENDING": "#20252b",
    "ONGOING": "#1f4a7d",
    "SUCCEEDED": "#23582c",
    "FAILED": "#7d2622",
    "UNKNOWN": "#74285a",
    "REVERTED": "#58492f",
    "REVERT_FAILED": "#7d2622",
}
#: States of actions that did not run: they are outlined.
OUTLINED = ("FAILED_DEPENDENCIES", "SKIPPED", "CANCELLED")

_LIGHT_STYLE = """
text { font: 12px sans-serif; fill: #1a1a1a; dominant-baseline: central; }
.plan-name { font-size: 17px; font-weight: bold; }
.lane-name { font-weight: bold; }
.tick, .note { font-size: 11px; fill: #444444; }
.tick { text-anchor: middle; }
.label { font-size: 11px; pointer-events: none; paint-order: stroke; stroke: #ffffff;
  stroke-width: 3px; stroke-linejoin: round; }
.inside { stroke: none; }
.page { fill: #ffffff; }
.band { fill: #f3f5f7; }
.grid { stroke: #dde2e7; }
.now { stroke: #1f5fa8; stroke-width: 1.5; stroke-dasharray: 5 3; }
.run { stroke: #5b646d; }
.rest { stroke: #5b646d; stroke-dasharray: 3 2; }
.plan { fill: #8d98a3; }
.wait { stroke: none; }
.hatch path { stroke: #77828d; fill: none; }
.cross { stroke: #b00000; stroke-width: 1.2; fill: none; }
.critical .run, .critical .rest { stroke: #000000; stroke-width: 2.6; }
"""
_DARK_STYLE = """
text { fill: #e8eaed; }
.tick, .note { fill: #b4bcc5; }
.label { stroke: #14171b; }
.inside { stroke: none; }
.page { fill: #14171b; }
.band { fill: #1c2126; }
.grid { stroke: #30373f; }
.now { stroke: #7db4f0; }
.run, .rest { stroke: #98a3ae; }
.plan { fill: #79848f; }
.hatch path { stroke: #8994a0; }
.cross { stroke: #ff9d96; }
.critical .run, .critical .rest { stroke: #ffffff; }
"""


def style() -> str:
    """Return the style sheet, with dark colours for readers whose system prefers these."""
    return f"{light()}\n@media (prefers-color-scheme: dark) {{{dark()}\n}}\n"


def light() -> str:
    """Return the rules of the style sheet for a light page."""
    rules = [f".{look.word} .run {{ fill: {look.fill}; }}" for look in LOOKS.values()]
    outlined = ", ".join(f".{state} .run" for state in OUTLINED)
    rules.append(f"{outlined} {{ fill: none; stroke-dasharray: 2 2; }}")
    rules.append(".rest, .PENDING .run { fill: #ffffff; }")
    return _LIGHT_STYLE + "\n".join(rules)


def dark() -> str:
    """Return the rules that override some of those of :func:`light` on a dark page."""
    rules = [f".{state} .run {{ fill: {fill}; }}" for state, fill in DARK_FILLS.items()]
    return _DARK_STYLE + "\n".join([*rules, ".rest { fill: #20252b; }"])


def patterns() -> str:
    """Return an SVG pattern for each reason to wait; :func:`pattern_name` is in its id."""
    return "".join(
        f'<pattern id="wait-{pattern_name(reason)}" class="hatch" width="6" height="6" '
        f'patternUnits="userSpaceOnUse"><path d="{lines}"/></pattern>'
        for reason, lines in _PATTERNS.items()
    )


def pattern_name(reason: str) -> str:
    """Return the name of a reason without blanks, as a part of an element id."""
    return reason.replace(" ", "-")
