# SPDX-License-Identifier: Apache-2.0
"""Merges equal bars, and puts the bars of a lane into rows in which none overlap. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from applier.timeline.values import Bar, TimeSpan

#: The maximum number of names in the text of a bar of several actions.
NAMES = 3
_Times = list[tuple[float, float]]


def together(bars: Sequence[Bar], key: Callable[[Bar], Hashable], grain_s: float) -> list[Bar]:
    """Merge bars with equal keys and states that start and end at about the same time.

    The times are about the same if they are equal when rounded down to ``grain_s`` seconds. If that
    is 0, they must be equal. Critical bars are not merged with others.
    """
    groups: dict[Hashable, list[Bar]] = {}
    for bar in bars:
        times = [bar.first_s, bar.end_s]
        grains = times if grain_s <= 0 else [at // grain_s for at in times]
        groups.setdefault((key(bar), bar.state, bar.is_critical, *grains), []).append(bar)
    return [_one(group) for group in groups.values()]


def _one(bars: Sequence[Bar]) -> Bar:
    if len(bars) == 1:
        return bars[0]
    first = min(bars, key=lambda bar: bar.first_s)
    planned = [bar.planned for bar in bars if bar.planned is not None]
    actions = tuple(action for bar in bars for action in bar.actions)
    names = list(dict.fromkeys(bar.name for bar in bars))
    if len(names) > NAMES:
        names = list(dict.fromkeys(action.action_type for action in actions))
    return replace(
        first,
        actions=actions,
        name=", ".join(names if len(names) <= NAMES else [*names[:NAMES], "…"]),
        start_s=min(bar.first_s for bar in bars),
        end_s=max(bar.end_s for bar in bars),
        planned=TimeSpan(min(p.start_s for p in planned), max(p.end_s for p in planned))
        if planned
        else None,
        earlier=(),
    )


def in_rows(bars: Iterable[Bar], least_s: float, most: int | None = None) -> list[list[Bar]] | None:
    """Put each bar, in the order of starts, into the first row where it overlaps no other bar.

    Its planned time does not overlap that of another bar of the row either. Each time counts as at
    least ``least_s`` seconds long. Return None if more than ``most`` rows are needed.
    """
    rows: list[list[Bar]] = []
    taken: list[tuple[_Times, _Times]] = []
    for bar in sorted(bars, key=lambda bar: (bar.first_s, bar.end_s)):
        runs = _at_least(bar.first_s, bar.end_s, least_s)
        planned = None if bar.planned is None else _at_least(*bar.planned, least_s)
        fit = (
            i
            for i, (ran, thin) in enumerate(taken)
            if _fits(ran, runs) and (planned is None or _fits(thin, planned))
        )
        at = next(fit, len(rows))
        if at == len(rows):
            if at == most:
                return None
            rows.append([])
            taken.append(([], []))
        rows[at].append(bar)
        insort(taken[at][0], runs)
        if planned is not None:
            insort(taken[at][1], planned)
    return rows


def _at_least(start_s: float, end_s: float, least_s: float) -> tuple[float, float]:
    return start_s, max(end_s, start_s + least_s)


def _fits(taken: _Times, wanted: tuple[float, float]) -> bool:
    """Return whether an interval overlaps none of ``taken``, which is sorted, without overlaps."""
    at = bisect_left(taken, wanted)
    before = at == 0 or taken[at - 1][1] <= wanted[0]
    return before and (at == len(taken) or wanted[1] <= taken[at][0])
