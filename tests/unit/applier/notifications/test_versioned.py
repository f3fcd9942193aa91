# SPDX-License-Identifier: Apache-2.0
"""Which notification of Watcher an event becomes, and what that says."""

from __future__ import annotations

import re

import pytest

from applier.notifications import versioned
from applier.notifications.versioned import notification
from planner.plan.states import ActionState, PlanState

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
    for kind, states, *told in ROW.findall(versioned.__doc__):
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
