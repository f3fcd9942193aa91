# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: rows, what-if points, style sheets, the input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from applier.report import inputs, page, what_if
from applier.report.action_rows import ALL_OUTPUTS, MANY, MOST_ROWS, OUTPUT, rows
from applier.report.attention import MOST_IN_DOUBT, buttons, left, needs, running
from applier.report.heads import summary
from applier.scheduling.course import Timeline
from applier.scheduling.forecast import Forecast
from applier.store import Attempt
from applier.timeline.holds import runs, taken
from applier.timeline.times import NOTHING, times
from applier.timeline.waits import Observed
from planner.making.registry import ActionTypes
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState
from planner.render.look import style_of_a_picture, style_of_pages

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FORECAST = Forecast(
    timeline=Timeline(start_s={}, end_s={}, makespan_s=0.0),
    lower_bound_s=0.0,
    slack_s={},
    critical=(),
    ranks={},
)


def ran(number: int, state: ActionState = ActionState.SUCCEEDED, **fields: Any) -> Action:
    """Return an action that ran for a second."""
    return Action(
        uuid=f"u{number}",
        name=f"a{number}",
        action_type="nop",
        state=state,
        started_at=BEGAN,
        ended_at=BEGAN + timedelta(seconds=1),
        attempts=1,
        **fields,
    )


def attempt(output: str | None, number: int = 1) -> Attempt:
    """Return an ended attempt."""
    return Attempt(
        number=number,
        started_at=BEGAN,
        ended_at=BEGAN + timedelta(seconds=1),
        state=ActionState.SUCCEEDED,
        output=output,
    )


def table(actions: list[Action], attempts: dict[str, list[Attempt]]) -> Any:
    """Return the rows of a plan that has ended."""
    plan = ActionPlan(uuid="p", planner="weight", actions=tuple(actions))
    found = times(plan, now=BEGAN, expected=NOTHING, attempts={})
    return rows(plan, Observed(found, {}, ("u0",), 1.0), FORECAST, {}, attempts)[0]


def shown(row: Any) -> str:
    """Return a row as HTML."""
    return str(page.environment().get_template("row.html").module.tr(row, live=False))


def test_a_row_says_when_for_how_long_and_with_which_output() -> None:
    (row,) = table([ran(0, status_message="moved")], {"u0": [attempt("one\ntwo\n")]})
    text = re.sub("<[^>]*>", " ", shown(row))
    assert " 1 a0 nop " in text
    assert re.search(r"try 1: SUCCEEDED, 2026-01-\d\d \d\d:04:05, 1s one\ntwo\n", text)
    assert (row.is_critical, "moved" in text) == (True, True)


def test_there_is_room_for_so_much_output_and_failed_actions_get_it_first() -> None:
    long = "x" * OUTPUT
    number = ALL_OUTPUTS // OUTPUT + 20
    actions = [ran(i) for i in range(number)] + [ran(number, ActionState.FAILED)]
    found = table(actions, {a.uuid: [attempt(long)] for a in actions})
    outputs = [output for row in found for _, output in row.attempts]
    assert sum(output.count("x") for output in outputs if output) == ALL_OUTPUTS
    assert outputs[-1] == f"…{long}"
    assert outputs[-2] is None
    assert "output left out" in shown(found[-2])


def test_a_table_has_an_end_and_texts_of_large_plans_are_shorter() -> None:
    message = "m" * 1000
    few = table([ran(i, status_message=message) for i in range(3)], {})
    many = table([ran(i, status_message=message) for i in range(MOST_ROWS + 5)], {})
    assert len(many) == MOST_ROWS > MANY
    told = [shown(rows[0]).count("m") for rows in (many, few)]
    assert told[0] < told[1] < len(message)


def test_what_is_left_is_listed_with_the_worst_first() -> None:
    states = (ActionState.FAILED_DEPENDENCIES, ActionState.SUCCEEDED, ActionState.FAILED)
    actions = tuple(ran(i, state, status_message=f"why {i}") for i, state in enumerate(states))
    found = left(ActionPlan(uuid="p", planner="weight", actions=actions))
    assert [(one.label, one.state, one.status_message) for (one,) in found] == [
        ("a2", "FAILED", "why 2"),
        ("a0", "FAILED_DEPENDENCIES", "why 0"),
    ]


def test_the_first_button_is_what_the_state_asks_for_and_dangerous_ones_are_marked() -> None:
    made = ActionPlan(uuid="p", planner="weight", actions=())
    shown = {
        (state, needed): [
            (one.label, one.kind) for one in buttons(plan, needs_approval=needed, is_gone=False)
        ]
        for state in PlanState
        for needed in (False, True)
        for plan in (replace(made, state=state),)
    }
    approve = ("Approve", "")
    assert shown[PlanState.RECOMMENDED, False] == [("Start", "primary"), approve]
    assert shown[PlanState.RECOMMENDED, True] == [("Approve", "primary"), ("Start", "")]
    assert shown[PlanState.ONGOING, False] == [("Pause", "primary"), ("Cancel", "danger")]
    assert shown[PlanState.PAUSED, False] == [("Resume", "primary"), approve, ("Cancel", "danger")]
    assert shown[PlanState.PENDING, False] == [("Cancel", "danger")]
    assert shown[PlanState.FAILED, False] == [("Resume", "primary"), approve]
    assert shown[PlanState.SUCCEEDED, False] == []
    running = replace(made, state=PlanState.ONGOING)
    left_behind = buttons(running, needs_approval=False, is_gone=True)
    assert [(one.label, one.kind) for one in left_behind] == [
        ("Resume", "primary"),
        ("Cancel", "danger"),
    ]


def test_what_is_in_doubt_is_settled_only_while_nobody_runs_the_plan() -> None:
    doubtful = tuple(ran(i, ActionState.UNKNOWN) for i in range(MOST_IN_DOUBT + 1))
    made = ActionPlan(uuid="p", planner="weight", actions=doubtful)
    for state in (PlanState.FAILED, PlanState.PAUSED, PlanState.ONGOING, PlanState.CANCELLING):
        *found, more = needs(None, replace(made, state=state), "", is_gone=False)
        assert more.text == "1 more is in doubt."
        offered = {tuple(button.state for button in one.buttons) for one in found}
        runs = state in (PlanState.ONGOING, PlanState.CANCELLING)
        assert offered == {() if runs else ("SUCCEEDED", "FAILED")}
        assert all(("once nobody runs the plan" in one.text) == runs for one in found)


def test_what_runs_is_told_with_how_long_it_has_run_and_will() -> None:
    began = replace(ran(1, ActionState.ONGOING), ended_at=None)
    plan = ActionPlan(uuid="p", planner="weight", state=PlanState.ONGOING, actions=(ran(0), began))
    for ends_s, said in ((9.0, "about 5s left"), (2.0, "longer than expected")):
        expected = Timeline(start_s={}, end_s={"u1": ends_s - 4}, makespan_s=0.0)
        found = times(plan, now=BEGAN + timedelta(seconds=4), expected=expected, attempts={})
        (one,) = running(plan, Observed(found, {}, (), 1.0))
        assert one == (began, "4s", said)


def test_the_curve_ends_where_more_workers_do_not_help() -> None:
    found = what_if.points(lambda workers: 60.0 / min(workers, 4), 100, 2)
    assert [point.workers for point in found] == [1, 2, 3, 4, 6]
    assert [point.workers for point in found if point.is_now] == [2]
    assert [point.workers for point in found if point.is_knee] == [4]


def test_the_configured_number_of_workers_is_always_on_the_curve() -> None:
    found = what_if.points(lambda _: 60.0, 1, 77)
    assert [point.workers for point in found if point.is_now] == [77]
    assert [point.workers for point in found if point.is_knee] == [1]


def test_each_point_of_the_curve_has_a_role_and_a_title() -> None:
    drawn = what_if.drawn(what_if.points(lambda workers: 60.0 / workers, 3, 2))
    root = ElementTree.fromstring(drawn)  # noqa: S314 - it is our own
    shapes = [e for e in root.iter() if e.get("role") == "img"]
    titles = [e[0].text for e in shapes]
    assert titles[1] == "2 workers: 30s, as configured"
    assert all(e[0].tag.endswith("}title") for e in shapes)


def test_the_style_of_pictures_holds_only_inside_of_them() -> None:
    selectors = re.findall(r"^([^{}\s][^{}]*?)\s*\{", style_of_pages(), re.MULTILINE)
    begins = (".drawn ", ".badge.", ":root", "@media")
    assert all(one.startswith(begins) for s in selectors for one in re.split(r",\s*", s))


def test_no_colour_is_left_out_in_a_file_of_its_own_or_on_a_page() -> None:
    alone, page = style_of_a_picture(), style_of_pages()
    assert "$" not in alone + page
    assert "var(" not in alone
    assert all(f"--{name}: #" in page for name in re.findall(r"var\(--(\w+)\)", page))


def test_the_input_can_be_read_and_has_no_secrets() -> None:
    action = Action(
        uuid="u",
        name="up",
        action_type="shell",
        input_parameters={"command": "true", "env": {"TOKEN": "password"}},
    )
    plan = ActionPlan(uuid="p", planner="weight", name="n", actions=(action,))
    text = inputs.actions_text(plan, ActionTypes())
    value = json.loads(text)
    assert value["actions"][0]["name"] == "up"
    assert "password" not in text
    many = tuple(replace(action, uuid=f"u{i}", name="up" * 500) for i in range(200))
    text = inputs.actions_text(replace(plan, actions=many), ActionTypes())
    assert len(text) < inputs.MOST + 1000
    assert f"{200 - text.count('command')} more" in text


def test_the_options_shown_are_those_that_differ_and_are_about_plans() -> None:
    from applier import configuration

    conf = configuration.load([])
    configuration.register_all(conf)
    plan = ActionPlan(uuid="p", planner="weight", actions=(Action(uuid="u", action_type="nop"),))
    assert "default" in inputs.configuration_text(conf, plan)
    changed = (("retries", 3, "watcher_actions.nop"), ("port", 1, "api"))
    for name, value, section in changed:
        conf.set_override(name, value, group=section)
    try:
        assert inputs.configuration_text(conf, plan) == "[watcher_actions.nop]\nretries = 3"
    finally:
        for name, _, section in changed:
            conf.clear_override(name, group=section)


def test_the_options_of_the_engine_are_shown_by_its_name_in_watcher_too(tmp_path: Path) -> None:
    from applier import configuration

    file, engine = tmp_path / "watcher.conf", "[watcher_workflow_engines.taskflow]\nmax_workers = 3"
    file.write_text(f"[watcher_applier]\nworkflow_engine = actionplan\n{engine}\n", "utf-8")
    conf = configuration.load([str(file)])
    plan = ActionPlan(uuid="p", planner="weight", actions=())
    assert inputs.configuration_text(conf, plan).splitlines() == [
        "[watcher_applier]",
        "workflow_engine = actionplan",
        "",
        "[watcher_workflow_engines.taskflow]",
        "max_workers = 3",
    ]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (PlanState.ONGOING, "Has run 3s, expected to end after 1s."),
        (PlanState.PAUSED, "Ran 1s, and stands still."),
        (PlanState.SUCCEEDED, "Took 1s."),
    ],
)
def test_the_end_of_a_plan_is_expected_only_while_it_runs(state: PlanState, told: str) -> None:
    plan = ActionPlan(uuid="p", planner="weight", state=state, actions=(ran(1),))
    now = BEGAN + timedelta(seconds=3)
    found = times(plan, now=now, expected=NOTHING, attempts={})
    took = taken(plan, runs(plan, [], now=now))
    text = summary(plan, Observed(found, {}, (), 0.0, is_known=False, taken=took))
    assert text.endswith(told)
