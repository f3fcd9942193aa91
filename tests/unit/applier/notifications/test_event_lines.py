# SPDX-License-Identifier: Apache-2.0
"""The events of a run: they keep their schema, and tell all that the record says in the end."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import jsonschema
import pytest

from applier.contracts import Report
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.notifications.lines import EventLines
from applier.notifications.schema import SCHEMA
from applier.testing.random_plans import carry_out, random_fate, random_plan
from applier.testing.sample_plans import new_plan
from applier.testing.trials import Trial
from planner.plan.model import JOIN
from planner.plan.states import ActionState, PlanState

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CHECKED = jsonschema.Draft202012Validator(SCHEMA)


def heard(plan, stream, tell=lambda _: None):
    return EventLines(plan, stream, clock=lambda: NOW, tell=tell)


def read(stream):
    events = [json.loads(text) for text in stream.getvalue().splitlines()]
    for event in events:
        CHECKED.validate(event)
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    return events


@pytest.mark.parametrize("seed", range(12))
def test_the_events_of_a_run_in_order_give_the_states_of_the_record(seed):
    plan, fate, stream = random_plan(seed), random_fate(seed, failing=0.2), io.StringIO()
    trial = Trial(
        plan,
        TaskFlowEngine(max_workers=4),
        lambda parameters, _context, _stop: carry_out(fate(parameters["uuid"])),
        max_workers=4,
        listeners=(heard(plan, stream),),
    )
    with trial:
        trial.run()
        recorded = trial.plan()
    found = {a.uuid: ("PENDING", None, None, None) for a in plan.actions if a.action_type != JOIN}
    state = None
    for event in read(stream):
        told = event["data"]
        if event["type"] == "plan.state":
            state = told["state"]
            continue
        assert told["old"] == found[event["action"]][0]
        fields = ("state", "outcome", "reason", "message")
        found[event["action"]] = tuple(told[name] for name in fields)
    assert state == recorded.state
    assert found == {
        a.uuid: (a.state, a.outcome, a.state_reason, a.status_message)
        for a in recorded.actions
        if a.action_type != JOIN
    }


def test_a_line_is_ascii_whatever_a_message_holds():
    plan, stream = new_plan("a"), io.StringIO()
    heard(plan, stream).on_plan(PlanState.FAILED, "ä\x7f\x1b\n\u202e")
    assert stream.getvalue().rstrip("\n").isascii()
    assert stream.getvalue().rstrip("\n").isprintable()
    (event,) = read(stream)
    assert event["data"]["message"] == "ä\x7f\x1b\n\u202e"
    assert event["at"] == "2026-11-23T00:00:00+00:00"


class Full(io.StringIO):
    def flush(self):
        raise OSError(28, "No space left on device")


def test_a_stream_that_fails_is_told_once_and_the_run_goes_on():
    plan, told = new_plan("a"), []
    lines = heard(plan, Full(), told.append)
    start = Report(uuid=plan.actions[0].uuid, old=ActionState.PENDING, state=ActionState.ONGOING)
    lines.on_plan(PlanState.ONGOING, None)
    lines.on_reports([start])
    assert [line.endswith(": No space left on device") for line in told] == [True]


@pytest.mark.parametrize("wrong", [{"version": "2.0"}, {"type": "plan"}, {"data": {}}])
def test_the_schema_refuses_what_is_no_event(wrong):
    plan, stream = new_plan("a"), io.StringIO()
    heard(plan, stream).on_plan(PlanState.ONGOING, None)
    (event,) = read(stream)
    assert not CHECKED.is_valid({**event, **wrong})
