# SPDX-License-Identifier: Apache-2.0
"""Watcher's API: plans shown, started, cancelled and removed, actions shown and skipped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from sample_plans import MADE, new_plan
from scratch_database import run

from applier.contracts import Claimant
from applier.run.this_process import this_host
from planner.plan.model import Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

AUDIT = "9c0f2b1e-0000-4000-8000-0000000000a1"
NOW = datetime(2026, 1, 3, tzinfo=UTC)
SHORT = {
    *("uuid", "audit_uuid", "strategy_uuid", "strategy_name", "state", "efficacy_indicators"),
    *("global_efficacy", "updated_at", "links"),
}
FULL = SHORT | {"hostname", "status_message", "created_at", "deleted_at"}


def saved(v1, state: PlanState = PlanState.RECOMMENDED, **fields) -> ActionPlan:
    plan = new_plan("a", "b", **fields)
    if state in (PlanState.ONGOING, PlanState.CANCELLING):
        v1.store.save_plan(replace(plan, state=PlanState.PENDING))
        me = Claimant(host=this_host(), pid=1, user="wanda")
        claim = v1.store.claim_plan(plan.uuid, me, now=NOW)
        if state is PlanState.CANCELLING:
            v1.store.move_claimed(plan.uuid, claim, state, now=NOW)
    else:
        v1.store.save_plan(replace(plan, state=state))
    return plan


def test_a_plan_is_shown_with_the_fields_of_watcher(v1):
    indicator = {"name": "n", "description": "d", "unit": "%", "value": 12.5}
    plan = saved(
        v1,
        audit_uuid=AUDIT,
        strategy_name="dummy",
        efficacy_indicators=(indicator, "no mapping", {"name": "odd", "value": "x"}),
        global_efficacy=(indicator,),
        status_message="m",
    )
    shown = v1.get(f"action_plans/{plan.uuid}")
    odd = {"name": "odd", "description": None, "unit": None, "value": None}
    assert shown == {
        "uuid": plan.uuid,
        "audit_uuid": AUDIT,
        "strategy_uuid": None,
        "strategy_name": "dummy",
        "state": "RECOMMENDED",
        "efficacy_indicators": [indicator, odd],
        "global_efficacy": [indicator],
        "hostname": None,
        "status_message": "m",
        "created_at": "2026-01-02T03:04:05.678901+00:00",
        "updated_at": None,
        "deleted_at": None,
        "links": [
            {"rel": "self", "href": f"http://127.0.0.1/v1/action_plans/{plan.uuid}"},
            {"rel": "bookmark", "href": f"http://127.0.0.1/action_plans/{plan.uuid}"},
        ],
    }
    assert v1.get(f"action_plans/{plan.uuid.upper()}/") == shown
    assert set(v1.get(f"action_plans/{plan.uuid}", version="1.4")) == FULL - {"status_message"}
    assert set(v1.get("action_plans/")["action_plans"][0]) == SHORT
    assert v1.get("action_plans/detail")["action_plans"] == [shown]


def test_unknown_plans_and_wrong_uuids_are_refused(v1):
    removed = saved(v1)
    v1.store.move_plan(removed.uuid, PlanState.DELETED, now=NOW)
    for method, below in (("GET", ""), ("POST", "/start")):
        for uuid in (str(uuid4()), removed.uuid):
            refused = v1.refused(f"action_plans/{uuid}{below}", method=method)
            assert refused == (404, f"ActionPlan {uuid} could not be found")
        status, text = v1.refused(f"action_plans/xyz{below}", method=method)
        assert status == 400
        assert text.startswith("Invalid input for field/attribute action_plan_uuid. Value: 'xyz'.")


def test_only_a_recommended_plan_is_started(v1):
    plan = saved(v1)
    started = v1.get(f"action_plans/{plan.uuid}/start", method="POST", json={})
    assert (started["uuid"], started["state"]) == (plan.uuid, "PENDING")
    assert v1.store.pending_plans() == [plan.uuid]
    refused = v1.refused(f"action_plans/{plan.uuid}/start", method="POST")
    assert refused == (400, "Couldn't start when state is 'PENDING'.")


def test_a_paused_plan_is_pending_for_watcher_and_says_so(v1):
    plan = saved(v1, PlanState.PAUSED, status_message="by ada")
    shown = v1.get(f"action_plans/{plan.uuid}")
    assert (shown["state"], shown["status_message"]) == ("PENDING", "PAUSED: by ada")
    refused = v1.refused(f"action_plans/{plan.uuid}/start", method="POST")
    assert refused == (400, "Couldn't start when state is 'PENDING'.")
    assert v1.store.load_plan(plan.uuid).state is PlanState.PAUSED
    cancelled = v1.get(**v1.patch(f"action_plans/{plan.uuid}", state="CANCELLED"))
    assert cancelled["state"] == "CANCELLED"


#: Who may be brought into which state, and what the record has then.
CHANGES = {
    (PlanState.RECOMMENDED, "PENDING"): PlanState.PENDING,
    (PlanState.RECOMMENDED, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.PENDING, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.PAUSED, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.ONGOING, "CANCELLING"): PlanState.ONGOING,
}


def test_a_patch_starts_and_cancels_and_changes_nothing_else(v1):
    for old in set(PlanState) - {PlanState.DELETED}:
        for new in ("PENDING", "CANCELLED", "CANCELLING", "SUCCEEDED", "DELETED"):
            plan = saved(v1, old)
            patch = v1.patch(f"action_plans/{plan.uuid}", state=new)
            if stored := CHANGES.get((old, new)):
                answer = v1.get(**patch)
                assert (answer["state"], set(answer)) == (new, FULL)
                asked = [(r.verb, r.who) for r in v1.store.requests(plan.uuid)]
                assert asked == ([("cancel", "anonymous")] if new == "CANCELLING" else [])
            else:
                word = "PENDING" if old is PlanState.PAUSED else old
                status, text = v1.refused(**patch)
                assert status == 400
                assert text.startswith("Couldn't apply patch '{")
                assert text.endswith(f"Reason: State transition not allowed: ({word} -> {new})")
            assert v1.store.load_plan(plan.uuid).state is (stored or old)


def test_patches_that_say_something_else_are_refused(v1):
    plan = saved(v1)
    path = f"action_plans/{plan.uuid}"
    for body, reason in (
        ([{"op": "replace", "path": "/state", "value": "BOGUS"}], "Reason: Invalid state: BOGUS"),
        ([{"op": "replace", "path": "/state", "value": ["x"]}], "Reason: Invalid state: ['x']"),
        ([{"op": "replace", "path": "/state", "value": "PAUSED"}], "Invalid state: PAUSED"),
        ([{"op": "replace", "path": "/hostname", "value": "h"}], "(RECOMMENDED -> RECOMMENDED)"),
        ([], "(RECOMMENDED -> RECOMMENDED)"),
        ([{"op": "remove", "path": "/state"}], "(RECOMMENDED -> None)"),
        ([{"op": "replace", "path": "/uuid", "value": "x"}], "'/uuid' is an internal attribute"),
        ([{"op": "add", "path": "/status_message", "value": "x"}], "is an internal attribute"),
        ([{"op": "move", "path": "/state", "value": "x"}], "op is one of"),
        ([{"op": "replace", "path": "state", "value": "x"}], "path is /FIELD"),
        ([{"op": "replace", "path": "/state"}], "operations needs value"),
        (["x"], "an operation is a mapping"),
        ({"op": "replace"}, "a patch is a list"),
    ):
        status, text = v1.refused(path, method="PATCH", json=body)
        assert status == 400
        assert reason in text
    headers = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[" * 100_000):
        assert v1.refused(path, method="PATCH", body=body, headers=headers)[0] == 400
    assert v1.store.load_plan(plan.uuid) == plan


def test_a_plan_is_removed_unless_it_waits_or_runs(v1):
    kept = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED)
    for state in set(PlanState) - {PlanState.DELETED}:
        plan = saved(v1, state)
        path = f"action_plans/{plan.uuid}"
        if state in kept:
            word = "PENDING" if state is PlanState.PAUSED else state
            refused = (400, f"Couldn't delete when state is '{word}'.")
            assert v1.refused(path, method="DELETE") == refused
            assert v1.store.load_plan(plan.uuid).state is state
        else:
            answer = v1.ask(path, method="DELETE")
            assert (answer.status_code, answer.content) == (204, b"")
            assert v1.refused(path, method="DELETE")[0] == 404
            assert plan.uuid not in v1.ask("action_plans").text


def test_a_damaged_plan_breaks_no_list_and_says_what_is_wrong(v1, actionplan):
    good, bad, odd = saved(v1), saved(v1), saved(v1)
    for column, value, uuid in (("created_at", "?", bad.uuid), ("state", "odd", odd.uuid)):
        change = f"UPDATE actionplan_plan SET {column} = '{value}' WHERE uuid = '{uuid}'"
        run(f"sqlite:///{actionplan.record}", change)
    shown = v1.get("action_plans/detail")["action_plans"]
    found = [(p["uuid"], p["state"], (p["status_message"] or "").split(":")[0]) for p in shown]
    assert found == [
        (good.uuid, "RECOMMENDED", ""),
        (bad.uuid, "RECOMMENDED", "damaged"),
        (odd.uuid, "FAILED", "damaged"),
    ]
    assert shown[0]["created_at"] == MADE.isoformat()
    assert v1.get(f"action_plans/{bad.uuid}") == shown[1]
    status, text = v1.refused(f"action_plans/{bad.uuid}/start", method="POST")
    assert status == 500
    assert "is damaged" in text


# Actions


SHORT_ACTION = {"uuid", "action_plan_uuid", "action_type", "state", "parents", "links"}
FULL_ACTION = SHORT_ACTION | {
    *("description", "input_parameters", "status_message"),
    *("created_at", "updated_at", "deleted_at"),
}


def test_an_action_is_shown_with_the_fields_of_watcher(v1):
    plan = new_plan("a", "b")
    first, second = plan.actions
    second = replace(second, description="Log b", input_parameters={"message": "m"})
    v1.store.save_plan(replace(plan, actions=(first, second)))
    shown = v1.get(f"actions/{second.uuid}")
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
    assert v1.get("actions/detail")["actions"][1] == shown
    assert set(v1.get("actions")["actions"][1]) == SHORT_ACTION
    assert set(v1.get(f"actions/{second.uuid}", version="1.4")) == FULL_ACTION - {"status_message"}
    assert v1.get(f"actions/{first.uuid}")["description"] == ""


def test_all_that_an_action_waits_for_are_its_parents(v1):
    plan = new_plan("a", "b", "c", "d")
    a, b, c, d = plan.actions
    group = ((a.uuid, c.uuid),)
    fired = (Trigger(b.uuid, (Outcome.CHANGED,)),)
    d = replace(d, parents=(), needs=(a.uuid,), triggers=fired, needs_any=group)
    v1.store.save_plan(replace(plan, actions=(a, b, c, d)))
    assert v1.get(f"actions/{d.uuid}")["parents"] == [a.uuid, b.uuid, c.uuid]


def test_states_are_told_in_words_that_watcher_has(v1):
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
        v1.store.save_plan(replace(plan, actions=(replace(a, state=state, status_message="m"),)))
        shown = v1.get(f"actions/{a.uuid}")
        assert (shown["state"], shown["status_message"]) == (word, message)


def test_hidden_values_are_not_shown(v1):
    parameters = {"argv": ["true"], "env": {"TOKEN": "swordfish"}}
    action = Action(uuid=str(uuid4()), action_type="shell", input_parameters=parameters)
    plan = replace(new_plan(), actions=(action,))
    v1.store.save_plan(plan)
    for path in (f"actions/{action.uuid}", "actions/detail"):
        answer = v1.ask(path)
        assert answer.status_code == 200
        assert "argv" in answer.text
        assert "swordfish" not in answer.text


def test_a_pending_action_of_a_waiting_plan_is_skipped(v1):
    for state in (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED):
        a, b = saved(v1, state).actions
        path = f"actions/{a.uuid}"
        answer = v1.get(**v1.patch(path, state="SKIPPED", status_message="done by hand"))
        assert (answer["state"], set(answer)) == ("SKIPPED", FULL_ACTION)
        assert answer["status_message"] == "skipped by anonymous: done by hand"
        assert v1.get(path) == answer
        assert v1.get(**v1.patch(path, state="SKIPPED")) == answer
        reworded = v1.get(**v1.patch(path, status_message="not wanted"))
        assert reworded == {**answer, "status_message": "skipped by anonymous: not wanted"}
        answer = v1.get(**v1.patch(f"actions/{b.uuid}", state="SKIPPED"))
        assert answer["status_message"] == "skipped by anonymous: no reason given"


def test_other_changes_of_actions_are_refused(v1):
    a, _ = saved(v1).actions
    path = f"actions/{a.uuid}"
    text = "State transition not allowed: (PENDING -> SUCCEEDED)"
    assert v1.refused(**v1.patch(path, state="SUCCEEDED")) == (409, text)
    text = "status_message update only allowed when action state is SKIPPED"
    assert v1.refused(**v1.patch(path, status_message="x")) == (409, text)
    text = "'/input_parameters' is not an allowed attribute and can not be updated"
    assert v1.refused(**v1.patch(path, input_parameters={})) == (400, text)
    text = "API microversion 1.5 or higher is required."
    assert v1.refused(**v1.patch(path, state="SKIPPED"), version="1.4") == (400, text)
    status, text = v1.refused(**v1.patch(path, state="BOGUS"))
    assert (status, text.endswith("Invalid state: BOGUS")) == (400, True)
    remove = [{"op": "remove", "path": "/state"}]
    text = "'/state' is a mandatory attribute and can not be removed"
    assert v1.refused(path, method="PATCH", json=remove) == (400, text)
    assert v1.get(path)["state"] == "PENDING"


def test_actions_of_a_plan_that_runs_or_has_ended_are_not_skipped(v1):
    for state in (PlanState.ONGOING, PlanState.CANCELLED, PlanState.SUPERSEDED):
        a, _ = saved(v1, state).actions
        text = f"State update not allowed for actionplan state: {state}"
        patch = v1.patch(f"actions/{a.uuid}", state="SKIPPED")
        assert v1.refused(**patch) == (409, text)


def test_an_action_that_is_not_there(v1):
    gone = saved(v1)
    v1.store.move_plan(gone.uuid, PlanState.DELETED, now=NOW)
    for uuid in (str(uuid4()), gone.actions[0].uuid):
        refused = (404, f"Action {uuid} could not be found")
        assert v1.refused(f"actions/{uuid}") == refused
        assert v1.refused(**v1.patch(f"actions/{uuid}", state="SKIPPED")) == refused
    assert v1.refused("actions/xyz")[0] == 400
    assert v1.get("actions") == {"actions": []}


def test_of_several_plans_with_an_action_the_one_saved_last_is_meant(v1):
    first, second = new_plan("a"), new_plan("b")
    same = replace(second, actions=(replace(second.actions[0], uuid=first.actions[0].uuid),))
    for plan in (same, first):
        v1.store.save_plan(plan)
    assert v1.get(f"actions/{first.actions[0].uuid}")["action_plan_uuid"] == first.uuid
