# SPDX-License-Identifier: Apache-2.0
"""The look of all pictures and pages: a colour and a mark for each state, and one style sheet."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from planner.plan.model import ANCHOR, JOIN, Action, ActionPlan
from planner.plan.states import OPEN, WELL, ActionState


class Look(NamedTuple):
    """The name of a state in pictures, its colour on a light and on a dark page, and its mark."""

    word: str
    fill: str
    dark: str
    mark: str


#: Fuel's colours: white, yellow, blue, green, red, orange, violet, and cyan for anchors. The mark
#: is for those who see no colours.
LOOKS: Mapping[str, Look] = {
    look.word: look
    for look in (
        Look("PENDING", "#ffffff", "#20252b", ""),
        Look("ANCHOR", "#d3f5f7", "#164a4e", "="),
        Look("READY", "#fff7b0", "#5a4d12", ">"),
        Look("ONGOING", "#bfdcff", "#1f4a7d", "…"),
        Look("SUCCEEDED", "#cdeec6", "#23582c", "✓"),
        Look("FAILED", "#ffb3ae", "#7d2622", "✗"),
        Look("FAILED_DEPENDENCIES", "#ffd9a8", "#66461c", "!"),
        Look("SKIPPED", "#e2d4f7", "#46366a", "–"),
        Look("CANCELLED", "#e3e3e3", "#3c4147", "/"),
        Look("UNKNOWN", "#ffc9ec", "#74285a", "?"),
        Look("REVERTED", "#e6dccb", "#58492f", "↩"),
        Look("REVERT_FAILED", "#ffb3ae", "#7d2622", "↯"),
        # Types of actions, before a run.
        Look("TYPE_1", "#dbe9fb", "#1d3a5c", ""),
        Look("TYPE_2", "#fbe3cf", "#5a3a1c", ""),
        Look("TYPE_3", "#e0f1d9", "#2b4a24", ""),
        Look("TYPE_4", "#f2dcee", "#532a4b", ""),
        Look("TYPE_5", "#fdf3c4", "#514717", ""),
        Look("TYPE_6", "#d6f0ee", "#1b4a47", ""),
    )
}
#: How many types of actions have a colour of their own.
_TYPES = sum(word.startswith("TYPE_") for word in LOOKS)


def mark_of(state: str) -> str:
    """Return the mark of a state; empty if it has none."""
    return LOOKS[state].mark if state in LOOKS else ""


#: The meaning of each word in LOOKS that is not a state.
MEANINGS = {
    "ANCHOR": "synchronisation point, PENDING",
    "READY": "PENDING, all predecessors have ended",
}
#: All other colours by name, on a light and on a dark page.
_COLOURS: Mapping[str, tuple[str, str]] = {
    "page": ("#ffffff", "#14171b"),
    "text": ("#1a1a1a", "#e8eaed"),
    "quiet": ("#50575e", "#b4bcc5"),
    "line": ("#d5dbe1", "#30373f"),
    "band": ("#f3f5f7", "#1c2126"),
    "link": ("#174ea6", "#9cc4ff"),
    "focus": ("#1f5fa8", "#7db4f0"),
    "strong": ("#000000", "#ffffff"),
    "edge": ("#5b646d", "#98a3ae"),
    "arrow": ("#333333", "#c6cdd5"),
    "faint": ("#9aa3ad", "#79848f"),
    "hatch": ("#77828d", "#8994a0"),
    "event": ("#7a3db8", "#c79bf0"),
    "bad": ("#b00000", "#ff9d96"),
    "done": ("#2c8a3f", "#56b869"),
    "blocked": ("#b36200", "#e0a050"),
    "press": ("#1f5fa8", "#2a6bb8"),
}
#: Each rule holds only inside a picture.
_SHEET = """
.drawn text { font: 12px system-ui, sans-serif; fill: $text; dominant-baseline: central; }
.drawn .plan-name { font-size: 17px; font-weight: bold; }
.drawn .lane-name, .drawn .mark { font-weight: bold; }
.drawn .tick, .drawn .note, .drawn .about { font-size: 11px; fill: $quiet; }
.drawn .tick, .drawn .mark, .drawn .box text { text-anchor: middle; }
.drawn .box .row { text-anchor: start; }
.drawn .side { text-anchor: end; }
.drawn .label { font-size: 11px; pointer-events: none; paint-order: stroke; stroke: $page;
  stroke-width: 3px; stroke-linejoin: round; }
.drawn .inside { stroke: none; }
.drawn .page { fill: $page; }
.drawn .band { fill: $band; }
.drawn .strip { fill: $band; stroke: $line; }
.drawn .grid { stroke: $line; }
.drawn .now { stroke: $focus; stroke-width: 1.5; stroke-dasharray: 5 3; }
.drawn .run, .drawn .more { stroke: $edge; }
.drawn .more { fill: $page; }
.drawn .rest { fill: $PENDING; stroke: $edge; stroke-dasharray: 3 2; }
.drawn .plan { fill: $faint; }
.drawn .hatch path { stroke: $hatch; fill: none; }
.drawn .cross { stroke: $bad; stroke-width: 1.2; fill: none; }
.drawn .critical .run, .drawn .critical .rest { stroke: $strong; stroke-width: 2.6; }
.drawn .point { fill: $arrow; }
.drawn .need, .drawn .any, .drawn .order, .drawn .trigger { fill: none; stroke: $arrow;
  stroke-width: 1.3; }
.drawn .any { stroke-dasharray: 7 4; }
.drawn .order { stroke: $faint; }
.drawn .trigger { stroke: $event; stroke-width: 1.8; stroke-dasharray: 1.5 3.5; }
.drawn .head { fill: $arrow; stroke: none; }
.drawn .head.order { fill: $faint; }
.drawn .head.trigger { fill: $event; }
.drawn .halo { fill: $page; fill-opacity: 0.9; stroke: none; pointer-events: none; }
.drawn .curve { fill: none; stroke: $focus; stroke-width: 2; }
.drawn .spot { fill: $page; stroke: $focus; stroke-width: 2; }
.drawn .spot.here { fill: $focus; }
"""
#: Boxes that must not be overlooked, and bars of actions that did not run.
_LOUD = ("FAILED", "UNKNOWN", "REVERT_FAILED")
OUTLINED = ("FAILED_DEPENDENCIES", "SKIPPED", "CANCELLED")
_STATES = "".join(
    [
        *(f".drawn .{word} .run {{ fill: ${word}; }}\n" for word in LOOKS),
        *(f".drawn .box.{word} .run {{ stroke: $bad; stroke-width: 2; }}\n" for word in _LOUD),
        *(
            f".drawn .bar.{word} .run {{ fill: none; stroke-dasharray: 2 2; }}\n"
            for word in OUTLINED
        ),
    ]
)


def style_of_pages() -> str:
    """Return the style sheet of the pictures on a page, and the colours of all of it as variables.

    The variables are named as the states and as the colours above; those of a dark page are for
    screens that prefer them. A badge has the colour of the state that is its class.
    """
    variables = (
        "".join(f" --{name}: {colour};" for name, colour in _colours(dark).items())
        for dark in (False, True)
    )
    light, dark = (f":root {{ {each} }}" for each in variables)
    rules = Template(_SHEET + _STATES).substitute({n: f"var(--{n})" for n in _colours(False)})
    badges = "".join(f".badge.{word} {{ background: var(--{word}); }}\n" for word in ActionState)
    dark_screen = f"@media screen and (prefers-color-scheme: dark) {{ {dark} }}"
    return "\n".join([light, dark_screen, rules, badges])


def style_of_a_picture() -> str:
    """Return the style sheet of a picture in a file of its own, dark where that is preferred.

    Unlike that of a page, it has no variables, which some programs that draw SVG do not know.
    """
    light, dark = (Template(_SHEET + _STATES).substitute(_colours(dark)) for dark in (False, True))
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


def _colours(dark: bool) -> dict[str, str]:
    states = {look.word: look.dark if dark else look.fill for look in LOOKS.values()}
    return {name: pair[dark] for name, pair in _COLOURS.items()} | states


def types(plan: ActionPlan) -> dict[str, str]:
    """Map types of actions to words in LOOKS: those of a plan of several, of which nothing has run.

    Types beyond the first ones have no colour.
    """
    if any(action.state is not ActionState.PENDING for action in plan.actions):
        return {}
    names = dict.fromkeys(a.action_type for a in plan.actions)
    known = [name for name in names if name not in (JOIN, ANCHOR)]
    return {name: f"TYPE_{i}" for i, name in enumerate(known[:_TYPES], 1)} if known[1:] else {}


def of_state(look: Look) -> Look:
    """Return a look without the colour of a type, which only actions have that have not run."""
    return LOOKS["PENDING"] if look.word.startswith("TYPE_") else look


def numbered(plan: ActionPlan) -> dict[str, int]:
    """Map uuids to the numbers of actions in lists of them, from 1, without joins.

    They stand in pictures as ``data-r``, by which a page finds the action that is clicked.
    """
    return {
        action.uuid: number
        for number, action in enumerate((a for a in plan.actions if a.action_type != JOIN), 1)
    }


def looks(plan: ActionPlan) -> dict[str, Look]:
    """Map uuids to the look of each action.

    Before a run, it is that of its type. In a plan that has started, a PENDING action that waits
    only for a worker or a limit is shown as READY. A PENDING anchor has a look of its own.
    """
    states = {action.uuid: action.state for action in plan.actions}
    begun, of_types = any(s is not ActionState.PENDING for s in states.values()), types(plan)
    return {
        a.uuid: LOOKS[of_types.get(a.action_type) or _word(a, states, begun)] for a in plan.actions
    }


def _word(action: Action, states: Mapping[str, ActionState], begun: bool) -> str:
    if action.state is not ActionState.PENDING:
        return str(action.state)
    if action.action_type == ANCHOR:
        return "ANCHOR"
    ended = all(states[u] not in OPEN for u in action.before())
    well = all(states[u] in WELL for u in action.needs)
    chosen = all(any(states[u] in WELL for u in group) for group in action.needs_any)
    return "READY" if begun and ended and well and chosen else "PENDING"
