# SPDX-License-Identifier: Apache-2.0
"""Makes the content of a timeline from a plan and the times of its actions. Pure.

In a plan with many actions, lanes of like content are merged into one lane, and equal actions at
about the same time into one bar. What "about" means is chosen for each lane: the tolerance grows
until the lane has few rows and bars.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from applier.timeline import lanes as laning
from applier.timeline.times import Times
from applier.timeline.values import Bar, Chart, Lane, LaneKind, TimeSpan
from applier.timeline.waits import Waiting
from planner.plan.model import JOIN, Action, ActionPlan
from planner.render import swimlanes

#: In plans with more actions than this, equal actions share a bar.
MANY = 40
#: An axis of more seconds has no dates, because datetime has none after the year 9999.
LONGEST_S = 7000 * 365 * 86400.0
#: The numbers of rows and bars that a plan with many actions should not exceed. Each lane gets an
#: equal share, but at least the second pair of numbers.
MOST_ROWS, MOST_BARS = 40, 400
FEW_ROWS, FEW_BARS = 4, 20
#: How far apart equal actions that share a bar may start and end, as fractions of the time axis.
_GRAINS = (0.0, *(2.0**-n for n in range(8, -2, -1)))
#: Each bar is at least as wide as this fraction of the time axis.
LEAST = 1 / 250


def chart(
    plan: ActionPlan,
    found: Times,
    waiting: Mapping[str, Waiting],
    critical: Collection[str],
    *,
    expected_s: float,
    taken: str = "",
    keep: Callable[[Action], bool] | None = None,
    kind: LaneKind | None = None,
    workers: Mapping[str, str] = MappingProxyType({}),
    is_folded: bool = False,
) -> Chart:
    """Return the timeline of the actions of a plan, or of those that ``keep`` accepts.

    ``critical`` are the uuids of the critical path, ``expected_s`` is the expected makespan of the
    whole plan, ``taken`` the sentence about how long it ran. ``kind`` is what each lane is; None
    means that it is chosen by the plan. ``workers`` maps uuids of actions to workers, for lanes of
    workers. If it ``is_folded`` and has many actions, a lane has one bar for each state.
    """
    drawn = [a for a in plan.actions if a.action_type != JOIN and (keep is None or keep(a))]
    span_s = found.span_s or 1.0
    lane_of = laning.lanes(plan, drawn, kind, workers)
    content: defaultdict[str, list[Bar]] = defaultdict(list)
    for action in drawn:
        bar = _bar(plan, action, found, waiting, span_s)
        bar = replace(bar, is_critical=action.uuid in critical)
        content[lane_of[action.uuid]].append(bar)
    least_s = span_s * LEAST
    if len(drawn) > MANY and is_folded:
        firsts = laning.alike(plan, content, span_s)
        merged = _merged(content, firsts)
        shown = {
            lane: in_rows(_folded(bars, span_s), least_s) or [] for lane, bars in merged.items()
        }
    elif len(drawn) > MANY:
        firsts = laning.alike(plan, content, span_s / 50)
        shown = _of_many(plan, content, firsts, span_s)
    else:
        firsts = {lane: lane for lane in content}
        shown = {lane: in_rows(bars, least_s) or [] for lane, bars in content.items()}
    titles = laning.titles(plan, firsts)
    return Chart(
        plan=plan,
        lanes=tuple(
            Lane(title=titles[lane], rows=tuple(map(tuple, rows))) for lane, rows in shown.items()
        ),
        began=found.began if span_s < LONGEST_S else None,
        now_s=found.now_s,
        span_s=span_s,
        least_s=least_s,
        expected_s=expected_s,
        taken=taken,
    )


def _bar(
    plan: ActionPlan,
    action: Action,
    found: Times,
    waiting: Mapping[str, Waiting],
    span_s: float,
) -> Bar:
    start_s, end_s = found.intervals[action.uuid]
    return Bar(
        actions=(action,),
        name=swimlanes.task_of(plan.planner, action),
        start_s=start_s,
        end_s=end_s,
        planned=_inside(found.planned.get(action.uuid), span_s),
        waits=waiting[action.uuid].waits if action.uuid in waiting else (),
        earlier=found.earlier.get(action.uuid, ()),
    )


def _inside(planned: TimeSpan | None, span_s: float) -> TimeSpan | None:
    """Return the part of a planned time that is on the axis."""
    if planned is None or planned.start_s >= span_s:
        return None
    return TimeSpan(planned.start_s, min(planned.end_s, span_s))


def _of_many(
    plan: ActionPlan, content: Mapping[str, Sequence[Bar]], firsts: Mapping[str, str], span_s: float
) -> dict[str, list[list[Bar]]]:
    """Return the rows of each shown lane; ``firsts`` maps each lane to the one that shows it."""
    merged = _merged(content, firsts)
    share = 1 / len(merged)
    most_rows, most_bars = (
        max(few, int(many * share)) for few, many in ((FEW_ROWS, MOST_ROWS), (FEW_BARS, MOST_BARS))
    )
    return {
        lane: _few_rows(plan, bars, span_s, most_rows, most_bars) for lane, bars in merged.items()
    }


def _merged(
    content: Mapping[str, Sequence[Bar]], firsts: Mapping[str, str]
) -> dict[str, list[Bar]]:
    merged: defaultdict[str, list[Bar]] = defaultdict(list)
    for lane, bars in content.items():
        merged[firsts[lane]] += bars
    return merged


def _folded(bars: Iterable[Bar], span_s: float) -> list[Bar]:
    """Merge all bars of the same state into one."""
    same = [replace(bar, is_critical=False, planned=None, waits=()) for bar in bars]
    return together(same, lambda _: None, 2 * span_s)


def _few_rows(
    plan: ActionPlan, bars: Sequence[Bar], span_s: float, most_rows: int, most_bars: int
) -> list[list[Bar]]:
    """Return the rows of a lane, with equal bars merged until the rows and bars are few enough.

    The smallest tolerance that is enough is used. Bars of the same task are merged; if that is not
    enough, those of the same action type. There may be more rows if even that is not enough.
    """
    least_s = span_s * LEAST
    fine: Sequence[Bar] = bars
    for key in (_task_in(plan), _type):
        for part in _GRAINS:
            fine = together(bars, key, span_s * part)
            if len(fine) <= most_bars:
                rows = in_rows(fine, least_s, most_rows)
                if rows is not None:
                    return rows
    return in_rows(fine, least_s) or []


def _task_in(plan: ActionPlan) -> Callable[[Bar], str]:
    return lambda bar: laning.task(plan, bar.actions[0])


def _type(bar: Bar) -> str:
    return bar.actions[0].action_type


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
