# SPDX-License-Identifier: Apache-2.0
"""Actions in Watcher's API: shown and skipped."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from test_api_v1_plans import NOW, saved
from v1_client import api  # noqa: F401

from applier.testing.sample_plans import new_plan
from planner.plan.model import Action, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

SHORT = {"uuid", "action_plan_uuid", "action_type", "state", "parents", "links"}
FULL = SHORT | {
    *("description", "input_parameters", "status_message"),
    *("created_at", "updated_at", "deleted_at"),
}


def test_an_action_is_shown_with_the_fields_of_watcher(api):  # noqa: F811
    plan = new_plan("a", "b")
    first, second = plan.actions
    second = replace(second, description="Log b", input_parameters={"message": "m"})
    api.store.save_plan(replace(plan, actions=(first, second)))
    shown = api.get(f"actions/{second.uuid}")
    assert shown == {
        "uuid": second.uuid,
        "action_plan_uuid": plan.uuid,
        "action_type": "nop",
        "description": "Log b",
        "state": "PENDING",
        "input_parameters": {"message": "m"},
        "parents": [first.uuid],
        "status_message": None,
        "created_at": "2026-01-02T03:04:05.678901+00:00",
        "updated_at": None,
        "deleted_at": None,
        "links": [
            {"rel": "self", "href": f"http://127.0.0.1/v1/actions/{second.uuid}"},
            {"rel": "bookmark", "href": f"http://127.0.0.1/actions/{second.uuid}"},
        ],
    }
    assert api.get("actions/detail")["actions"][1] == shown
    assert set(api.get("actions")["actions"][1]) == SHORT
    assert set(api.get(f"actions/{second.uuid}", version="1.4")) == FULL - {"status_message"}
    assert api.get(f"actions/{first.uuid}")["description"] == ""


def test_all_that_an_action_waits_for_are_its_parents(api):  # noqa: F811
    plan = new_plan("a", "b", "c", "d")
    a, b, c, d = plan.actions
    group = ((a.uuid, c.uuid),)
    fired = (Trigger(b.uuid, (Outcome.CHANGED,)),)
    d = replace(d, parents=(), needs=(a.uuid,), triggers=fired, needs_any=group)
    api.store.save_plan(replace(plan, actions=(a, b, c, d)))
    assert api.get(f"actions/{d.uuid}")["parents"] == [a.uuid, b.uuid, c.uuid]


def test_states_are_told_in_words_that_watcher_has(api):  # noqa: F811
    for state, word, message in (
        (ActionState.SUCCEEDED, "SUCCEEDED", "m"),
        (ActionState.SKIPPED, "SKIPPED", "m"),
        (ActionState.FAILED_DEPENDENCIES, "CANCELLED", "FAILED_DEPENDENCIES: m"),
        (ActionState.UNKNOWN, "FAILED", "UNKNOWN: m"),
        (ActionState.REVERTED, "CANCELLED", "REVERTED: m"),
        (ActionState.REVERT_FAILED, "FAILED", "REVERT_FAILED: m"),
    ):
        plan = new_plan("a", state=PlanState.FAILED)
        (a,) = plan.actions
        api.store.save_plan(replace(plan, actions=(replace(a, state=state, status_message="m"),)))
        shown = api.get(f"actions/{a.uuid}")
        assert (shown["state"], shown["status_message"]) == (word, message)


def test_hidden_values_are_not_shown(api):  # noqa: F811
    parameters = {"argv": ["true"], "env": {"TOKEN": "swordfish"}}
    action = Action(uuid=str(uuid4()), action_type="shell", input_parameters=parameters)
    plan = replace(new_plan(), actions=(action,))
    api.store.save_plan(plan)
    for path in (f"actions/{action.uuid}", "actions/detail"):
        answer = api.ask(path)
        assert answer.status_code == 200
        assert "argv" in answer.text
        assert "swordfish" not in answer.text


def test_a_pending_action_of_a_waiting_plan_is_skipped(api):  # noqa: F811
    for state in (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED):
        a, b = saved(api, state).actions
        path = f"actions/{a.uuid}"
        answer = api.get(**api.patch(path, state="SKIPPED", status_message="done by hand"))
        assert (answer["state"], set(answer)) == ("SKIPPED", FULL)
        assert answer["status_message"] == "skipped by anonymous: done by hand"
        assert api.get(path) == answer
        assert api.get(**api.patch(path, state="SKIPPED")) == answer
        reworded = api.get(**api.patch(path, status_message="not wanted"))
        assert reworded == {**answer, "status_message": "skipped by anonymous: not wanted"}
        answer = api.get(**api.patch(f"actions/{b.uuid}", state="SKIPPED"))
        assert answer["status_message"] == "skipped by anonymous: no reason given"


def test_other_changes_of_actions_are_refused(api):  # noqa: F811
    a, _ = saved(api).actions
    path = f"actions/{a.uuid}"
    text = "State transition not allowed: (PENDING -> SUCCEEDED)"
    assert api.refused(**api.patch(path, state="SUCCEEDED")) == (409, text)
    text = "status_message update only allowed when action state is SKIPPED"
    assert api.refused(**api.patch(path, status_message="x")) == (409, text)
    text = "'/input_parameters' is not an allowed attribute and can not be updated"
    assert api.refused(**api.patch(path, input_parameters={})) == (400, text)
    text = "API microversion 1.5 or higher is required."
    assert api.refused(**api.patch(path, state="SKIPPED"), version="1.4") == (400, text)
    status, text = api.refused(**api.patch(path, state="BOGUS"))
    assert (status, text.endswith("Invalid state: BOGUS")) == (400, True)
    remove = [{"op": "remove", "path": "/state"}]
    text = "'/state' is a mandatory attribute and can not be removed"
    assert api.refused(path, method="PATCH", json=remove) == (400, text)
    assert api.get(path)["state"] == "PENDING"


def test_actions_of_a_plan_that_runs_or_has_ended_are_not_skipped(api):  # noqa: F811
    for state in (PlanState.ONGOING, PlanState.CANCELLED, PlanState.SUPERSEDED):
        a, _ = saved(api, state).actions
        text = f"State update not allowed for actionplan state: {state}"
        patch = api.patch(f"actions/{a.uuid}", state="SKIPPED")
        assert api.refused(**patch) == (409, text)


def test_an_action_that_is_not_there(api):  # noqa: F811
    gone = saved(api)
    api.store.move_plan(gone.uuid, PlanState.DELETED, now=NOW)
    for uuid in (str(uuid4()), gone.actions[0].uuid):
        refused = (404, f"Action {uuid} could not be found")
        assert api.refused(f"actions/{uuid}") == refused
        assert api.refused(**api.patch(f"actions/{uuid}", state="SKIPPED")) == refused
    assert api.refused("actions/xyz")[0] == 400
    assert api.get("actions") == {"actions": []}


def test_of_several_plans_with_an_action_the_one_saved_last_is_meant(api):  # noqa: F811
    first, second = new_plan("a"), new_plan("b")
    same = replace(second, actions=(replace(second.actions[0], uuid=first.actions[0].uuid),))
    for plan in (same, first):
        api.store.save_plan(plan)
    assert api.get(f"actions/{first.actions[0].uuid}")["action_plan_uuid"] == first.uuid
