# SPDX-License-Identifier: Apache-2.0
"""The critical path of a predicted run, and the slack of each of its actions. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from applier.scheduling.course import Course, Timeline
from planner.plan.model import JOIN, Action
from planner.plan.place_rules import HeldPlace


def _released(course: Course, timeline: Timeline) -> dict[str, list[str]]:
    """Return, for each action, the actions that ended just when it started and made that possible.

    These are its predecessors. If none of them ended at that time, they are the actions that
    released a limited token; if there are none either, the actions that freed a worker.
    """
    ended_at: defaultdict[float, list[Action]] = defaultdict(list)
    for action in course.left:
        if action.uuid in timeline.end_s:
            ended_at[timeline.end_s[action.uuid]].append(action)
    gates, tokens_of = course.gates(), course.concurrency.tokens_of
    before = _before(course)
    places = _places(course, timeline)
    found: dict[str, list[str]] = {}
    for action in course.left:
        at = timeline.start_s.get(action.uuid)
        if not at:
            continue
        then = ended_at[at]
        links = [a.uuid for a in then if a.uuid in before[action.uuid]]
        limited = {t for t in tokens_of(action) if gates.limit(t) is not None}
        tokens = [a.uuid for a in then if not limited.isdisjoint(tokens_of(a))]
        # A place that this action was the first of its member to take, and that others left then.
        tokens += [
            left
            for place in action.places
            if gates.limit(place.token) is not None and places[place].start_s == at
            for left in _left_at(places, place, at)
        ]
        found[action.uuid] = links or tokens or [a.uuid for a in then]
    return found


class _Stay(NamedTuple):
    """When a member holds its place, and its last action."""

    start_s: float
    end_s: float
    last: str


def _places(course: Course, timeline: Timeline) -> dict[HeldPlace, _Stay]:
    found: dict[HeldPlace, _Stay] = {}
    for action in course.left:
        for place in action.places if action.uuid in timeline.end_s else ():
            new = _Stay(timeline.start_s[action.uuid], timeline.end_s[action.uuid], action.uuid)
            old = found.get(place, new)
            last = new if new.end_s >= old.end_s else old
            found[place] = _Stay(min(old.start_s, new.start_s), last.end_s, last.last)
    return found


def _left_at(places: Mapping[HeldPlace, _Stay], place: HeldPlace, at: float) -> list[str]:
    return [s.last for p, s in places.items() if p.token == place.token and s.end_s == at]


def _before(course: Course) -> Mapping[str, frozenset[str]]:
    """Return the direct predecessors of each action; a join is replaced by its predecessors."""
    joins = {a.uuid: a for a in course.actions if a.action_type == JOIN}
    shared: dict[int, frozenset[str]] = {}

    def through(uuids: tuple[str, ...]) -> frozenset[str]:
        found = shared.get(id(uuids))
        if found is None:
            plain = frozenset(u for u in uuids if u not in joins)
            behind = (before(joins[u]) for u in uuids if u in joins)
            found = shared[id(uuids)] = plain.union(*behind)
        return found

    def before(action: Action) -> frozenset[str]:
        return frozenset(t.action for t in action.triggers).union(
            through(action.parents), through(action.needs), *map(through, action.needs_any)
        )

    return {a.uuid: before(a) for a in course.left}


def critical_path(course: Course, timeline: Timeline) -> tuple[str, ...]:
    """Return the uuids of a chain of actions without gaps, the last of which ends last of all.

    Return an empty tuple if no action runs.
    """
    if not timeline.end_s:
        return ()
    released = _released(course, timeline)
    last = max(timeline.end_s, key=lambda uuid: timeline.end_s[uuid])
    path, seen = [last], {last}
    while True:
        earlier = [u for u in released.get(path[-1], ()) if u not in seen]
        if not earlier:
            return tuple(reversed(path))
        longest = max(earlier, key=lambda uuid: timeline.end_s[uuid] - timeline.start_s[uuid])
        path.append(longest)
        seen.add(longest)


def slacks(course: Course, timeline: Timeline) -> dict[str, float]:
    """Return the slack of each action: how late it may end without increasing the makespan.

    In seconds. If an action ends later, those that start at its end, because of a link, a token or
    a worker, start later too. An action that started before the end of one of its predecessors did
    not need that one: another one of a group, or another trigger, was enough.
    """
    start_s, end_s = timeline.start_s, timeline.end_s
    after: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, earlier in _released(course, timeline).items():
        for other in earlier:
            after[other].append(uuid)
    for uuid, sources in _before(course).items():
        for other in sources:
            if uuid in start_s and other in end_s and end_s[other] <= start_s[uuid]:
                after[other].append(uuid)
    slack: dict[str, float] = {}
    for uuid in reversed([*start_s]):
        latest = min(
            (start_s[other] + slack[other] for other in after[uuid] if other in slack),
            default=timeline.makespan_s,
        )
        slack[uuid] = latest - end_s[uuid]
    return slack
