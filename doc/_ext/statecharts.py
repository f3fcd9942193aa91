# SPDX-License-Identifier: Apache-2.0
"""The states of plans and actions as pictures: places by hand, arrows from planner.plan.states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drawings import Edge, Node, Point, placed

from planner.plan.states import ACTION_TRANSITIONS, PLAN_TRANSITIONS, Transition

PLAN_PLACES: Mapping[str, Point] = {
    "RECOMMENDED": (66, 120),
    "PENDING": (208, 120),
    "ONGOING": (344, 120),
    "PAUSED": (276, 42),
    "SUCCEEDED": (512, 42),
    "FAILED": (512, 120),
    "CANCELLING": (344, 198),
    "CANCELLED": (512, 198),
    "SUPERSEDED": (666, 42),
    "DELETED": (666, 120),
}
PLAN_ROUTES: Mapping[tuple[str, str], Sequence[Point]] = {
    ("RECOMMENDED", "DELETED"): [(46, 274), (680, 274)],
    ("RECOMMENDED", "CANCELLED"): [(86, 252), (520, 252)],
    ("PENDING", "CANCELLED"): [(208, 230), (490, 230)],
    ("PAUSED", "CANCELLED"): [(276, 14), (428, 14), (428, 190)],
}
ACTION_PLACES: Mapping[str, Point] = {
    "PENDING": (60, 130),
    "ONGOING": (250, 130),
    "FAILED_DEPENDENCIES": (250, 54),
    "SUCCEEDED": (480, 54),
    "FAILED": (480, 104),
    "UNKNOWN": (480, 154),
    "SKIPPED": (480, 210),
    "CANCELLED": (480, 270),
}
ACTION_ROUTES: Mapping[tuple[str, str], Sequence[Point]] = {
    ("PENDING", "SUCCEEDED"): [(48, 14), (480, 14)],
    ("PENDING", "FAILED_DEPENDENCIES"): [(72, 54)],
    ("PENDING", "SKIPPED"): [(72, 210)],
    ("PENDING", "CANCELLED"): [(42, 270)],
}
CHARTS = {
    "plan": ("States of a plan", PLAN_TRANSITIONS, PLAN_PLACES, PLAN_ROUTES),
    "action": ("States of an action", ACTION_TRANSITIONS, ACTION_PLACES, ACTION_ROUTES),
}


def chart(what: str) -> str:
    """Draw the table of ``plan`` or ``action``; states without a place stand in a row below."""
    title, rows, known, routes = CHARTS[what]
    left = {str(row.old) for row in rows}
    names = list(dict.fromkeys(str(s) for row in rows for s in (row.old, row.new)))
    below = max(y for points in ([*known.values()], *routes.values()) for _, y in points) + 50
    new = [name for name in names if name not in known]
    places = {**known, **{name: (80 + 150 * i, below) for i, name in enumerate(new)}}
    nodes = {Node(n, "state" if n in left else "end"): places[n] for n in names}
    return placed(title, nodes, edges(rows), routes)


def edges(rows: Sequence[Transition]) -> list[Edge]:
    """Return an arrow for each row; its kind is who may do it."""
    return [Edge(str(row.old), str(row.new), str(row.who)) for row in rows]
