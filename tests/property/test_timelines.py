# SPDX-License-Identifier: Apache-2.0
"""What holds for the timeline of any plan: nothing lost, nothing twice, nothing over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest import mock
from xml.etree import ElementTree

from examples import renamed
from hypothesis import given
from hypothesis import strategies as st
from links import linked

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.forecast import forecast
from applier.store import Attempt
from applier.timeline import chart as charts
from applier.timeline import svg
from applier.timeline.texts import Place, labels
from applier.timeline.times import NOTHING, Times, times
from applier.timeline.values import Chart, TimeSpan, Wait
from applier.timeline.waits import Observed, RunLimits, critical_path, waits
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import OPEN, ActionState
from planner.render.shapes import SMALL, width_of

BEGAN = datetime(2026, 1, 2, 23, 59, tzinfo=UTC)
LIMITS = RunLimits(
    concurrency=Concurrency(limits={"node:*": 1, "type:nop": 2}, max_workers=3),
    held={"node:b": "node:b, on which another plan works"},
)
HOSTILE = st.text(max_size=12) | st.sampled_from(["</title><script>", "\x1b[2J\ufffe", "&amp;"])
TOKENS = st.sampled_from([(), ("node:a",), ("node:b", "type:nop"), ("type:nop",)])
FEW = st.sampled_from([2, 40])


@st.composite
def plans(draw: st.DrawFn, names: st.SearchStrategy[str] = HOSTILE) -> ActionPlan:
    """Plans of up to 12 actions with links and joins, before, in and after a run."""
    begun = draw(st.booleans())
    seconds = st.integers(0, 500).map(lambda s: BEGAN + timedelta(seconds=s))

    def more(_i: int, _kind: str) -> dict[str, Any]:
        state = draw(st.sampled_from(ActionState)) if begun else ActionState.PENDING
        started = draw(seconds) if state is not ActionState.PENDING else None
        ended = draw(st.none() | seconds) if started and state not in OPEN else None
        return {
            "state": state,
            "started_at": started,
            "ended_at": ended,
            "name": draw(names),
            "tokens": draw(TOKENS),
            "estimate_s": draw(st.floats(0, 100) | st.just(1e12)),
            "status_message": draw(st.none() | HOSTILE),
        }

    actions = draw(linked(12, ["nop", "sleep", "anchor", JOIN], more))
    planner = draw(st.sampled_from(["deployment", "rolling_update", "events", "weight"]))
    return ActionPlan(uuid="p", planner=planner, name=draw(HOSTILE), actions=actions)


@st.composite
def made(draw: st.DrawFn) -> tuple[ActionPlan, Times, Chart]:
    """A plan, its times and its chart; some of its actions were tried before."""
    plan = draw(plans())
    again = {
        a.uuid: a.started_at
        for a in plan.actions
        if a.started_at and a.action_type != JOIN and draw(st.integers(0, 9)) == 0
    }
    return plan, *charted(plan, again, draw(st.integers(0, 600)), draw(FEW))


def charted(
    plan: ActionPlan, again: Mapping[str, datetime], now_s: int, many: int
) -> tuple[Times, Chart]:
    """Return the times and the chart of a plan; those in ``again`` were tried before."""
    durations = {a.uuid: a.estimate_s or 0.0 for a in plan.actions}
    fresh = [replace(a, state=ActionState.PENDING) for a in plan.actions]
    begun = any(a.started_at for a in plan.actions)
    found = times(
        plan,
        now=BEGAN + timedelta(seconds=now_s),
        expected=forecast(plan.actions, durations, LIMITS.concurrency).timeline,
        planned=forecast(fresh, durations, LIMITS.concurrency).timeline if begun else NOTHING,
        attempts={
            uuid: [Attempt(number=1, started_at=at - timedelta(seconds=3), ended_at=at)]
            for uuid, at in again.items()
        },
    )
    waiting = waits(plan, found, LIMITS)
    with mock.patch.multiple(charts, MANY=many, MOST_LANES=2):
        critical = critical_path(found, waiting)
        return found, charts.chart(plan, Observed(found, waiting, critical, 1.0))


@given(made(), st.sampled_from([400, 1000]))
def test_each_action_is_in_one_bar_of_its_state_and_nothing_overlaps_or_is_off_the_axis(
    case: tuple[ActionPlan, Times, Chart], width: int
) -> None:
    plan, found, done = case
    every = done.bars
    drawn = [action.uuid for bar in every for action in bar.actions]
    assert sorted(drawn) == sorted(a.uuid for a in plan.actions if a.action_type != JOIN)
    assert all(len({action.state for action in bar.actions}) == 1 for bar in every)
    for row in (row for lane in done.lanes for row in lane.rows):
        for first, second in pairwise(row):
            assert max(first.end_s, first.first_s + done.least_s) <= second.first_s
        planned = sorted(bar.planned for bar in row if bar.planned)
        assert all(a.end_s <= b.start_s for a, b in pairwise(planned))
    for bar in every:
        known: Sequence[TimeSpan | Wait] = [*bar.waits, *bar.earlier]
        known = [*known, TimeSpan(bar.start_s, bar.end_s), *([bar.planned] if bar.planned else [])]
        assert all(0 <= one.start_s <= one.end_s <= done.span_s for one in known)
        assert all(wait.end_s <= bar.end_s for wait in bar.waits)
        assert all(first.end_s <= second.start_s for first, second in pairwise(bar.waits))
        for interval in (found.intervals[a.uuid] for a in bar.actions if a.uuid in found.intervals):
            assert bar.first_s <= interval.start_s
            assert interval.end_s <= bar.end_s
    require_titles(done, svg.render(done, width))


def require_titles(done: Chart, text: str) -> None:
    """The picture is XML, without a script, with a title for each bar."""
    root = ElementTree.fromstring(text)  # noqa: S314 - it is our own
    assert not any(tag.tag.endswith("}script") for tag in root.iter())
    groups = [g for g in root.iter() if str(g.get("class")).startswith("bar ")]
    drawn = [g for g in groups if g.get("role") == "img"]
    assert len(drawn) == len(done.bars)
    for group, bar in zip(drawn, done.bars, strict=True):
        title = group[0]
        assert title.tag.endswith("}title")
        assert str(bar.state) in str(title.text)


@given(plans(st.text("ab/", min_size=1, max_size=4)), FEW)
def test_other_uuids_give_the_same_picture(plan: ActionPlan, many: int) -> None:
    def other(uuid: str) -> str:
        return f"x{99 - int(uuid[1:])}"

    actions = tuple(renamed(a, other) for a in plan.actions)
    pictures = {
        svg.render(charted(one, {}, 300, many)[1]) for one in (plan, replace(plan, actions=actions))
    }
    assert len(pictures) == 1


@given(
    st.lists(st.tuples(st.floats(0, 40), st.floats(0, 60), st.text(max_size=20)), max_size=8),
    st.sampled_from(["", "✓"]),
)
def test_the_names_in_a_row_never_overlap(wide: list[tuple[float, float, str]], mark: str) -> None:
    places, at = [], 0.0
    for gap, width, text in wide:
        places.append(Place(at + gap, at + gap, at + gap + width, text, mark))
        at += gap + width
    found = labels(places, 0.0, at + 30)
    for first, second in pairwise(found):
        assert first.x + width_of(first.text, SMALL) <= second.x + 1e-6
    assert all(f.x >= 0 and f.x + width_of(f.text, SMALL) <= at + 30 for f in found)


@given(plans())
def test_the_waits_of_a_forecast_last_from_the_beginning_to_the_start(plan: ActionPlan) -> None:
    fresh = replace(
        plan,
        actions=tuple(
            replace(a, state=ActionState.PENDING, started_at=None, ended_at=None)
            for a in plan.actions
        ),
    )
    durations = {a.uuid: a.estimate_s or 0.0 for a in fresh.actions}
    free = RunLimits(concurrency=LIMITS.concurrency)
    timeline = forecast(fresh.actions, durations, free.concurrency).timeline
    found = times(fresh, now=BEGAN, expected=timeline, attempts={})
    slight_s = found.span_s / 100
    for uuid, waiting in waits(fresh, found, free).items():
        waited = sum(wait.end_s - wait.start_s for wait in waiting.waits)
        start = timeline.start_s[uuid]
        assert start - slight_s <= waited <= start + 1e-6
