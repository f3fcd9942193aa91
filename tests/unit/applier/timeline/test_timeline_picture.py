# SPDX-License-Identifier: Apache-2.0
"""The picture of a timeline: a golden of a run, its structure, its size for a large plan."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Timeline
from applier.scheduling.forecast import forecast
from applier.store import Attempt
from applier.timeline import svg
from applier.timeline.chart import FEW_BARS, MOST_BARS, MOST_LANES, chart
from applier.timeline.times import NOTHING, times
from applier.timeline.values import Chart, LaneKind
from applier.timeline.waits import Observed, RunLimits, critical_path, waits
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

PICTURE = Path(__file__).parents[3] / "cases/drawings/timeline.svg"
BEGAN = datetime(2026, 1, 2, 22, 0, tzinfo=timezone(timedelta(hours=1)))
S = ActionState


def at(minutes: float) -> datetime:
    """Return a time after the beginning."""
    return BEGAN + timedelta(minutes=minutes)


def action(name: str, *hosts: str, **fields: Any) -> Action:
    """Make an action on hosts; with ``ran``, from one minute to another."""
    start, end = fields.pop("ran", (None, None))
    return Action(
        uuid=name,
        name=name,
        **{"action_type": "migrate", **fields},
        tokens=tuple(f"node:{host}" for host in hosts),
        started_at=None if start is None else at(start),
        ended_at=None if end is None else at(end),
    )


#: The drain of two hosts at night: one move failed twice, so its host cannot be switched off.
DRAIN = ActionPlan(
    uuid="p",
    planner="weight",
    name="drain-rack-1",
    state=PlanState.ONGOING,
    limits={"node:*": 2},
    actions=(
        action("close-c1", "c1", action_type="disable", ran=(0, 1), state=S.SUCCEEDED),
        action("close-c2", "c2", action_type="disable", ran=(0, 1), state=S.SUCCEEDED),
        action("move-web-1", "c1", "c3", needs=("close-c1",), ran=(1, 9), state=S.SUCCEEDED),
        action("move-web-2", "c1", "c3", needs=("close-c1",), ran=(1, 6), state=S.SUCCEEDED),
        action("move-web-3", "c1", "c3", needs=("close-c1",), ran=(6, 13), state=S.SUCCEEDED),
        action(
            "move-db-1",
            *("c2", "c4"),
            needs=("close-c2",),
            ran=(8, 12),
            state=S.FAILED,
            attempts=2,
            status_message="no valid host <c4> & no other",
        ),
        action("move-db-2", "c2", "c4", needs=("close-c2",), ran=(3, 11), state=S.SUCCEEDED),
        action("move-app-1", "c2", "c3", parents=("move-db-2",), ran=(13, None), state=S.ONGOING),
        action("move-tmp", "c2", action_type="delete", state=S.SKIPPED, parents=("move-db-2",)),
        action("off-c1", "c1", action_type="power", needs=("move-web-1", "move-web-3")),
        action("off-c2", "c2", action_type="power", state=S.FAILED_DEPENDENCIES),
        action("report", action_type="shell", parents=("off-c1", "move-app-1")),
    ),
)
PLANNED = {
    "close-c1": (0, 1),
    "close-c2": (0, 1),
    "move-web-1": (1, 6),
    "move-web-2": (1, 6),
    "move-web-3": (6, 11),
    "move-db-1": (1, 9),
    "move-db-2": (1, 9),
    "move-app-1": (11, 16),
    "move-tmp": (9, 10),
    "off-c1": (11, 13),
    "off-c2": (16, 18),
    "report": (18, 19),
}


def timeline(minutes: dict[str, tuple[float, float]]) -> Timeline:
    """Make a timeline of minutes."""
    return Timeline(
        start_s={uuid: 60.0 * start for uuid, (start, _) in minutes.items()},
        end_s={uuid: 60.0 * end for uuid, (_, end) in minutes.items()},
        makespan_s=max((60.0 * end for _, end in minutes.values()), default=0.0),
    )


def drawn() -> Chart:
    """Return the chart of the drain, 15 minutes after its beginning."""
    ended = {"off-c2": at(12), "move-tmp": at(11)}
    plan = replace(
        DRAIN,
        actions=tuple(replace(a, ended_at=ended.get(a.uuid, a.ended_at)) for a in DRAIN.actions),
    )
    found = times(
        plan,
        now=at(15),
        expected=timeline({"move-app-1": (0, 3), "off-c1": (0.5, 2.5), "report": (3, 4)}),
        planned=timeline(PLANNED),
        attempts={"move-db-1": [Attempt(number=1, started_at=at(1), ended_at=at(3))]},
    )
    limits = RunLimits(concurrency=Concurrency(limits=plan.limits, max_workers=4))
    waiting = waits(plan, found, limits)
    critical = critical_path(found, waiting)
    return chart(plan, Observed(found, waiting, critical, 1140.0, taken="has run 15m00s"))


def test_a_run_is_drawn_like_this() -> None:
    text = svg.render(drawn())
    if os.environ.get("ACTIONPLAN_REWRITE"):
        PICTURE.write_text(text, encoding="utf-8")
    assert text == PICTURE.read_text(encoding="utf-8")


def large(nodes: int, tasks: int, **how: Any) -> Chart:
    """Return the chart of a deployment of many nodes that has run, with one failure."""
    actions = []
    for node in range(nodes):
        for task in range(tasks):
            begin = task * 10 + (node % 7) * 3
            actions.append(
                action(
                    f"{node}/task-{task}",
                    str(node),
                    needs=(f"{node}/task-{task - 1}",) if task else (),
                    ran=(begin, begin + 8 + node % 3),
                    state=S.FAILED if (node, task) == (5, 3) else S.SUCCEEDED,
                )
            )
    plan = ActionPlan(uuid="p", planner="deployment", name="large", actions=tuple(actions))
    found = times(plan, now=at(0), expected=NOTHING, attempts={})
    limits = RunLimits(concurrency=Concurrency(limits={"node:*": 1}, max_workers=nodes))
    waiting = waits(plan, found, limits)
    return chart(plan, Observed(found, waiting, critical_path(found, waiting), 1.0), **how)


@pytest.mark.parametrize(("nodes", "tasks"), [(100, 10), (10, 100), (1, 1000), (1000, 1)])
def test_a_plan_of_a_thousand_is_read_at_one_look(nodes: int, tasks: int) -> None:
    made = large(nodes, tasks)
    bars = made.bars
    assert sum(len(bar.actions) for bar in bars) == 1000
    assert len(made.lanes) <= MOST_LANES
    assert len(bars) <= MOST_BARS + FEW_BARS * len(made.lanes)
    text = svg.render(made)
    assert len(text) < 300_000
    if min(nodes, tasks) > 3:
        (failed,) = [bar for bar in bars if bar.state is S.FAILED]
        assert [a.name for a in failed.actions] == ["5/task-3"]


def test_lanes_of_like_content_are_one_with_a_count() -> None:
    titles = [lane.title for lane in large(100, 10).lanes]
    assert "5" in titles
    assert any("alike" in title for title in titles)


def test_few_actions_are_never_put_together() -> None:
    names = [bar.name for bar in large(4, 10).bars]
    assert len(names) == 40
    assert Counter(names)["task-1"] == 4


def test_a_folded_lane_has_a_bar_for_each_type_in_each_state() -> None:
    actions = tuple(
        action(
            f"{kind}-{i}",
            f"c{i}",
            action_type=kind,
            ran=(i * 5, i * 5 + 3),
            state=S.FAILED if i == 30 else S.SUCCEEDED,
        )
        for i in range(600)
        for kind in ("migrate", "resize")
    )
    plan = ActionPlan(uuid="p", planner="weight", actions=actions)
    found = times(plan, now=at(0), expected=NOTHING, attempts={})
    made = chart(plan, Observed(found, {}, (), 1.0))
    kinds = [{(a.action_type, str(a.state)) for a in bar.actions} for bar in made.bars]
    assert [len(kind) for kind in kinds] == [1] * len(kinds)
    numbers = {(bar.name, str(bar.state)): len(bar.actions) for bar in made.bars}
    assert numbers["migrate", "SUCCEEDED"] == numbers["resize", "SUCCEEDED"] == 599
    assert len(made.bars) == 4


def test_a_row_does_not_look_at_all_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time would be that of the actions times the rows."""
    asked: list[int] = []

    def counted(plan: ActionPlan) -> dict[str, str]:
        asked.append(len(plan.actions))
        return {}

    monkeypatch.setattr(svg, "types", counted)
    svg.render(drawn())
    assert len(asked) <= 2 < sum(len(lane.rows) for lane in drawn().lanes)


def test_lanes_that_are_open_are_those_of_each_node_with_each_action() -> None:
    made = large(100, 10, is_open=True)
    assert [lane.title for lane in made.lanes] == [str(node) for node in range(100)]
    assert [len(bar.actions) for bar in made.bars] == [1] * 1000
    assert not any(bar.waits for bar in made.bars)
    assert any(bar.waits for bar in large(10, 10, is_open=True).bars)


def test_the_forecast_of_a_plan_has_no_thin_bars() -> None:
    plan = replace(
        DRAIN,
        state=PlanState.RECOMMENDED,
        actions=tuple(
            replace(a, state=S.PENDING, started_at=None, ended_at=None) for a in DRAIN.actions
        ),
    )
    concurrency = Concurrency(limits=plan.limits, max_workers=4)
    made = forecast(plan.actions, {a.uuid: 60.0 for a in plan.actions}, concurrency)
    found = times(plan, now=at(0), expected=made.timeline, attempts={})
    waiting = waits(plan, found, RunLimits(concurrency=concurrency))
    text = svg.render(chart(plan, Observed(found, waiting, made.critical, 300.0)))
    assert 'class="plan"' not in text
    assert "expected to take 5m00s" in text
    assert "expected 0s to 1m00s (1m00s)" in text


def test_lanes_are_nodes_types_or_workers_as_asked_for() -> None:
    plan = ActionPlan(
        uuid="p",
        planner="weight",
        actions=(
            action("a", "c1", ran=(0, 1), state=S.SUCCEEDED),
            action("b", "c2", action_type="disable", ran=(0, 2), state=S.SUCCEEDED),
            action("c", "c2", ran=(0, 2), state=S.SUCCEEDED),
            action("d", "c2", state=S.PENDING),
        ),
    )
    found = times(plan, now=at(2), expected=NOTHING, attempts={})

    def lanes(kind: LaneKind) -> dict[str, list[str]]:
        made = chart(plan, Observed(found, {}, (), 1.0), kind=kind, workers={"a": "w1", "c": "w2"})
        return {
            lane.title: sorted(one.uuid for row in lane.rows for bar in row for one in bar.actions)
            for lane in made.lanes
        }

    assert lanes(LaneKind.NODE) == {"c1": ["a"], "c2": ["b", "c", "d"]}
    assert lanes(LaneKind.TYPE) == {"migrate": ["a", "c", "d"], "disable": ["b"]}
    assert lanes(LaneKind.WORKER) == {
        "w1": ["a"],
        "the applier": ["b"],
        "w2": ["c"],
        "not started": ["d"],
    }
