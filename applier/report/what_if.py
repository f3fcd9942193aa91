# SPDX-License-Identifier: Apache-2.0
"""The curve of the makespan over ``max_workers``: its points, and its drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from applier.wording import count, duration
from planner.render.shapes import document, element, text, titled

#: Numbers of workers that are tried in this order. Above the configured number, the search ends if
#: the makespan hardly changes, or if there are more workers than actions.
_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
#: For a plan with more actions than ``_MANY``, only the numbers ``_FEW`` are tried.
_MANY, _FEW = 2000, (1, 4, 16, 64)
#: The knee is the lowest number with a makespan of at most so many times the shortest one.
KNEE = 1.05
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 260, 70, 24, 20, 44


class CurvePoint(NamedTuple):
    """A point of the what-if curve: a number of workers, and the makespan with it."""

    workers: int
    seconds: float
    is_now: bool
    is_knee: bool


def points(makespan_s: Callable[[int], float], actions: int, workers: int) -> list[CurvePoint]:
    """Return the makespans with several numbers of workers, in ascending order of the numbers.

    ``makespan_s`` computes one. ``actions`` is the number of actions, ``workers`` the configured
    number of workers, which is always among those tried.

    >>> [(p.workers, p.seconds) for p in points(lambda n: 60 / min(n, 3), 9, 2) if p.is_knee]
    [(3, 20.0)]
    """
    tried = sorted({*(_FEW if actions > _MANY else _TRIED), workers})
    found: dict[int, float] = {}
    for number in tried:
        if number > workers and len(found) > 2:
            before = list(found.values())[-2:]
            if number > actions or before[0] <= before[1] * 1.001:
                break
        found[number] = makespan_s(number)
    best = min(found.values(), default=0.0)
    knee = next((n for n, seconds in found.items() if seconds <= KNEE * best), None)
    return [
        CurvePoint(number, seconds, number == workers, number == knee)
        for number, seconds in found.items()
    ]


def drawn(found: Sequence[CurvePoint]) -> str:
    """Return the curve as an SVG element; numbers of workers are at equal distances."""
    most = max((point.seconds for point in found), default=0.0) or 1.0
    wide = (_WIDTH - _LEFT - _RIGHT) / max(1, len(found) - 1)
    high, floor = _HEIGHT - _TOP - _BOTTOM, _HEIGHT - _BOTTOM
    places = [(_LEFT + i * wide, floor - p.seconds / most * high) for i, p in enumerate(found)]
    parts = []
    for part in (0.0, 0.5, 1.0):
        y = floor - part * high
        parts.append(element("path", kind="grid", d=f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"))
        parts.append(text("side", _LEFT - 8, y, duration(part * most)))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(element("polyline", kind="curve", points=line))
    for point, (x, y) in zip(found, places, strict=True):
        spot = "spot here" if point.is_now else "spot"
        circle = element("circle", kind=spot, cx=x, cy=y, r=6 if point.is_now else 4)
        said = f"{count(point.workers, 'worker')}: {duration(point.seconds)}{_words(point)}"
        parts.append(titled("at", [said], circle))
        parts.append(text("tick", x, floor + 14, str(point.workers)))
    parts.append(text("tick", (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, "max_workers"))
    title = "How long the plan takes with more or fewer workers"
    return document(title, _WIDTH, _HEIGHT, parts)


def _words(point: CurvePoint) -> str:
    now = ", as configured" if point.is_now else ""
    return f"{now}, the knee: more hardly help" if point.is_knee else now
