# SPDX-License-Identifier: Apache-2.0
"""The events of a run: they keep their schema, and tell all that the record says in the end."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime

import jsonschema
import pytest
from random_plans import carry_out, random_fate, random_plan
from sample_plans import new_plan
from trials import Trial

from applier.contracts import Report
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.notifications import watcher
from applier.notifications.schema import SCHEMA, EventLines
from applier.notifications.watcher import notification
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


# Which notification of Watcher an event becomes, and what that says.

HEAD = {"version": "1.0", "number": 7, "at": "2026-01-02T04:04:05.678+01:00", "plan": "p1"}
ROW = re.compile(r"^(plan|action)\.state,? (.+?)  +(action\S*)  +(\w+)$", re.MULTILINE)


def of_plan(state, message=None):
    data = {"state": str(state), "message": message}
    return {**HEAD, "type": "plan.state", "data": data}


def of_action(state, message=None, old=ActionState.ONGOING):
    data = {"name": "a", "action_type": "nop", "old": str(old), "state": str(state)}
    data |= {"outcome": None, "reason": None, "message": message}
    return {**HEAD, "type": "action.state", "action": "a1", "data": data}


def data_of(event):
    return notification(event).payload["watcher_object.data"]


@pytest.mark.parametrize(
    "made",
    [*map(of_plan, PlanState), *map(of_action, ActionState)],
    ids=lambda event: f"{event['type']} {event['data']['state']}",
)
def test_the_table_says_which_notification_an_event_becomes(made):
    rows = {}
    for kind, states, *told in ROW.findall(watcher.__doc__):
        for state in states.split(", "):
            rows[f"{kind}.state", state] = told
    kind = made["type"]
    any_other = next(told for (k, s), told in rows.items() if (k, s) == (kind, "any other"))
    expected = rows.get((kind, made["data"]["state"]), any_other)
    found = notification(made)
    assert [found.event_type, found.priority] == expected
    assert data_of(made)["event"] == made


def test_an_approval_says_who_why_and_of_what():
    told = {"who": "bo", "project": None, "why": "looked at", "content": "sha256:9fe6"}
    made = {**HEAD, "type": "plan.approved", "data": told}
    found = notification(made)
    assert (found.event_type, found.priority) == ("action_plan.approve", "INFO")
    expected = {"uuid": HEAD["plan"], "updated_at": "2026-01-02T03:04:05Z", "event": made}
    assert data_of(made) == {**told, **expected}


def test_an_entry_of_the_history_becomes_none():
    assert notification({**HEAD, "type": "plan.history", "data": {}}) is None


def test_a_new_plan_has_a_time_at_which_it_was_made():
    data = data_of(of_plan(PlanState.RECOMMENDED))
    assert data["created_at"] == "2026-01-02T03:04:05Z"
    assert "updated_at" not in data
    assert "fault" not in data


def test_a_state_that_watcher_lacks_is_in_the_message():
    data = data_of(of_plan(PlanState.PAUSED, "by anna"))
    assert (data["state"], data["status_message"]) == ("PENDING", "PAUSED: by anna")
    assert data["state_update"]["watcher_object.data"] == {
        "old_state": None,
        "state": "PENDING",
        "status_message": "PAUSED: by anna",
    }


def test_an_update_of_an_action_says_what_it_was():
    data = data_of(of_action(ActionState.SKIPPED, old=ActionState.PENDING))
    assert data["state_update"]["watcher_object.data"]["old_state"] == "PENDING"
    assert data["action_plan_uuid"] == "p1"
    assert data["action_plan"]["watcher_object.data"] == {"uuid": "p1"}


def test_a_failure_has_a_fault():
    fault = data_of(of_action(ActionState.FAILED, "no room"))["fault"]["watcher_object.data"]
    assert fault["exception"] == "ActionExecutionFailure"
    assert fault["exception_message"] == "no room"
    assert data_of(of_action(ActionState.SUCCEEDED))["fault"] is None
