# SPDX-License-Identifier: Apache-2.0
"""Makes the content of a timeline from a plan and the times of its actions. Pure.

In a plan with many actions, lanes of like content are merged into one lane, and a lane with too
many bars is folded: it has one bar for each type of action in each state.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from applier.timeline.values import Bar, Chart, Lane, LaneKind, TimeSpan
from applier.timeline.waits import NO_WAIT, Observed
from planner.plan.model import JOIN, Action, ActionPlan
from planner.render import swimlanes

#: In plans with more actions than this, equal actions share a bar.
MANY = 40
#: An axis of more seconds has no dates, because datetime has none after the year 9999.
LONGEST_S = 7000 * 365 * 86400.0
#: The numbers of rows and bars that a plan with many actions should not exceed. Each lane gets an
#: equal share, but at least the second pair of numbers. A lane that is open has the third pair.
MOST_ROWS, MOST_BARS = 40, 120
FEW_ROWS, FEW_BARS = 4, 30
OPEN_ROWS, OPEN_BARS = 100, 1000
#: In plans with more actions than this, bars in open lanes have no waits, no planned
#: times and no descriptions, which the table of actions tells.
MOST_WAITING = 300
#: Each bar is at least as wide as this fraction of the time axis. Times are about equal if they are
#: equal when rounded down to the other.
LEAST, GRAIN = 1 / 250, 1 / 50

#: If there are more lanes than this, those of like content are merged.
MOST_LANES = 20
#: If lanes are workers: the lane of the actions that the applier itself ran, and of those that have
#: not started.
APPLIER, NOT_STARTED = "the applier", "not started"


def chart(
    plan: ActionPlan,
    observed: Observed,
    *,
    keep: Callable[[Action], bool] | None = None,
    kind: LaneKind | None = None,
    workers: Mapping[str, str] = MappingProxyType({}),
    is_open: bool = False,
) -> Chart:
    """Return the timeline of the actions of a plan, or of those that ``keep`` accepts.

    ``kind`` is what each lane is; None means that it is chosen by the plan. ``workers`` maps uuids
    of actions to workers, for lanes of workers. If it ``is_open``, no lanes are merged, and lanes
    of a plan with many actions are folded only where they could not be read.
    """
    found = observed.times
    drawn = [a for a in plan.actions if a.action_type != JOIN and (keep is None or keep(a))]
    span_s = found.span_s or 1.0
    lane_of = lanes(plan, drawn, kind, workers)
    content: dict[str, list[Bar]] = {}
    critical = frozenset(observed.critical)
    for action in drawn:
        content.setdefault(lane_of[action.uuid], []).append(
            _bar(plan, action, observed, critical, span_s)
        )
    if is_open or len(drawn) <= MANY:
        firsts = {lane: lane for lane in content}
        if len(drawn) > MOST_WAITING:
            content = {lane: list(map(_plain, bars)) for lane, bars in content.items()}
        shown = {lane: _rows(plan, bars, span_s) for lane, bars in content.items()}
    else:
        firsts = alike(plan, content, span_s * GRAIN)
        merged: defaultdict[str, list[Bar]] = defaultdict(list)
        for lane, bars in content.items():
            merged[firsts[lane]] += bars
        shown = {lane: _rows(plan, bars, span_s, len(merged)) for lane, bars in merged.items()}
    named = titles(plan, firsts)
    return Chart(
        plan=plan,
        lanes=tuple(
            Lane(title=named[lane], rows=tuple(map(tuple, rows))) for lane, rows in shown.items()
        ),
        began=found.began if span_s < LONGEST_S else None,
        now_s=found.now_s,
        span_s=span_s,
        least_s=span_s * LEAST,
        expected_s=observed.whole_s,
        taken=observed.taken,
    )


def _bar(
    plan: ActionPlan, action: Action, observed: Observed, critical: Collection[str], span_s: float
) -> Bar:
    found, uuid = observed.times, action.uuid
    start_s, end_s = found.intervals[uuid]
    planned = found.planned.get(uuid)
    return Bar(
        actions=(action,),
        name=swimlanes.task_of(plan.planner, action),
        start_s=start_s,
        end_s=end_s,
        # The part that is on the axis.
        planned=TimeSpan(planned.start_s, min(planned.end_s, span_s))
        if planned is not None and planned.start_s < span_s
        else None,
        waits=observed.waiting.get(uuid, NO_WAIT).waits,
        earlier=found.earlier.get(uuid, ()),
        is_critical=uuid in critical,
    )


def _plain(bar: Bar) -> Bar:
    actions = tuple(replace(action, description=None) for action in bar.actions)
    return replace(bar, actions=actions, planned=None, waits=())


def _rows(
    plan: ActionPlan, bars: Sequence[Bar], span_s: float, shares: int = 0
) -> Sequence[Sequence[Bar]]:
    """Return the rows of a lane that is one of so many ``shares``; of an open one, if that is 0.

    If there would be too many rows or bars, bars of the same task at the same time are merged, then
    those at about the same time. If that is not enough, the lane is folded.
    """
    grains: tuple[float | None, ...] = (None, 0.0, span_s * GRAIN)
    most_rows, most_bars = OPEN_ROWS, OPEN_BARS
    if shares:
        grains = grains[1:]
        most_rows = max(FEW_ROWS, MOST_ROWS // shares)
        most_bars = max(FEW_BARS, MOST_BARS // shares)
    for grain_s in grains:
        fine = bars
        if grain_s is not None:
            fine = together(bars, lambda bar: task(plan, bar.actions[0]), grain_s)
        if len(fine) <= most_bars:
            rows = in_rows(fine, span_s * LEAST, most_rows)
            if rows is not None:
                return rows
    counted = [replace(_plain(bar), is_critical=False) for bar in bars]
    return in_rows(together(counted, lambda _: None, math.inf), span_s * LEAST) or []


#: The maximum number of names in the text of a bar of several actions.
NAMES = 3
_Times = list[tuple[float, float]]


def together(bars: Sequence[Bar], key: Callable[[Bar], Hashable], grain_s: float) -> list[Bar]:
    """Merge bars of one type with equal keys and states that start and end at about the same time.

    The times are about the same if they are equal when rounded down to ``grain_s`` seconds. If that
    is 0, they must be equal. Critical bars are not merged with others.
    """
    groups: dict[Hashable, list[Bar]] = {}
    for bar in bars:
        times = [bar.first_s, bar.end_s]
        grains = times if grain_s <= 0 else [at // grain_s for at in times]
        kind = bar.actions[0].action_type, bar.state, bar.is_critical
        groups.setdefault((kind, key(bar), *grains), []).append(bar)
    return [_one(group) for group in groups.values()]


def _one(bars: Sequence[Bar]) -> Bar:
    if len(bars) == 1:
        return bars[0]
    planned = [bar.planned for bar in bars if bar.planned is not None]
    names = list(dict.fromkeys(bar.name for bar in bars))
    first = min(bars, key=lambda bar: bar.first_s)
    return replace(
        first,
        actions=tuple(action for bar in bars for action in bar.actions),
        name=", ".join(names) if len(names) <= NAMES else first.actions[0].action_type,
        start_s=first.first_s,
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


def lanes(
    plan: ActionPlan,
    actions: Sequence[Action],
    kind: LaneKind | None = None,
    workers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Map each action to its lane, by uuid.

    ``workers`` maps the uuid of an action to the worker that carried it out. Without a ``kind``,
    lanes are nodes if at least half of the actions hold one while they run; an action on several
    nodes is in the lane of the first. Otherwise they are the lanes of the graph of the plan, if it
    has several: the groups of a rolling update, the resources of events. Otherwise they are action
    types.
    """
    if kind is LaneKind.WORKER:
        return {a.uuid: workers.get(a.uuid) or _workerless(a) for a in actions}
    nodes = {a.uuid: found[0] for a in actions if (found := swimlanes.nodes_of(a))}
    if kind is LaneKind.NODE or (kind is None and 2 * len(nodes) >= len(actions)):
        rest = {a.uuid: swimlanes.lane_of("", a) or a.action_type for a in actions}
        return {a.uuid: nodes.get(a.uuid, rest[a.uuid]) for a in actions}
    assigned = swimlanes.assign(plan, actions) if kind is None else {}
    if len(set(assigned.values())) > 1:
        return assigned
    return {a.uuid: a.action_type for a in actions}


def _workerless(action: Action) -> str:
    return APPLIER if action.started_at is not None else NOT_STARTED


def task(plan: ActionPlan, action: Action) -> str:
    """Return the name by which actions of different lanes count as equal: the task, else the type.

    >>> plan = ActionPlan(uuid="p", planner="deployment", actions=())
    >>> task(plan, Action(uuid="u", action_type="puppet", name="4/netconfig"))
    'netconfig'
    >>> task(plan, Action(uuid="u", action_type="migrate", name="move-web"))
    'migrate'
    """
    name = swimlanes.task_of(plan.planner, action)
    return action.action_type if plan.planner == "rolling_update" or name == action.label else name


def alike(plan: ActionPlan, content: Mapping[str, Sequence[Bar]], grain_s: float) -> dict[str, str]:
    """Map each lane to the first lane of like content; to itself if there are few lanes.

    Lanes are alike if they have the same group, and the same tasks in the same states, equally
    often and at the same times, rounded to ``grain_s`` seconds. If that leaves more than
    ``MOST_LANES``, times are ignored, then numbers, and at last groups and tasks, but never states.
    """
    if len(content) <= MOST_LANES:
        return {lane: lane for lane in content}
    groups = swimlanes.groups(plan)

    def contents(key: Callable[[Bar], Hashable]) -> dict[str, Counter[Hashable]]:
        return {lane: Counter(map(key, bars)) for lane, bars in content.items()}

    def what(bar: Bar) -> tuple[str, ...]:
        return task(plan, bar.actions[0]), bar.state

    def at(bar: Bar) -> tuple[Hashable, ...]:
        return *what(bar), bar.first_s // grain_s, bar.end_s // grain_s

    with_times, tasks = contents(at), contents(what)
    keys: list[Callable[[str], Hashable]] = [
        lambda lane: (groups.get(lane), frozenset(with_times[lane].items())),
        lambda lane: (groups.get(lane), frozenset(tasks[lane].items())),
        lambda lane: (groups.get(lane), frozenset(tasks[lane])),
        lambda lane: frozenset(bar.state for bar in content[lane]),
    ]
    found: dict[str, str] = {}
    for key in keys:
        firsts: dict[Hashable, str] = {}
        found = {lane: firsts.setdefault(key(lane), lane) for lane in content}
        if len(firsts) <= MOST_LANES:
            break
    return found


def titles(plan: ActionPlan, firsts: Mapping[str, str]) -> dict[str, str]:
    """Return the title of each shown lane, with the number and the names of the lanes merged in it.

    ``firsts`` is the result of :func:`alike`.
    """
    groups, inside = swimlanes.groups(plan), defaultdict(list)
    for lane, first in firsts.items():
        inside[first].append(lane)
    found = {}
    for first, names in inside.items():
        same = len({groups.get(lane) for lane in names}) == 1
        found[first] = swimlanes.title(names, groups.get(first, ()) if same else ())
    return found
