# SPDX-License-Identifier: Apache-2.0
"""Plans in Watcher's API: shown, started, cancelled and removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from scratch_database import run
from v1_client import Client, api  # noqa: F401

from applier.contracts import Claimant
from applier.run.this_process import this_host
from applier.testing.sample_plans import MADE, new_plan
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

AUDIT = "9c0f2b1e-0000-4000-8000-0000000000a1"
NOW = datetime(2026, 1, 3, tzinfo=UTC)
SHORT = {
    *("uuid", "audit_uuid", "strategy_uuid", "strategy_name", "state", "efficacy_indicators"),
    *("global_efficacy", "updated_at", "links"),
}
FULL = SHORT | {"hostname", "status_message", "created_at", "deleted_at"}


def saved(api: Client, state: PlanState = PlanState.RECOMMENDED, **fields) -> ActionPlan:  # noqa: F811
    plan = new_plan("a", "b", **fields)
    if state in (PlanState.ONGOING, PlanState.CANCELLING):
        api.store.save_plan(replace(plan, state=PlanState.PENDING))
        me = Claimant(host=this_host(), pid=1, user="wanda")
        claim = api.store.claim_plan(plan.uuid, me, now=NOW)
        if state is PlanState.CANCELLING:
            api.store.move_claimed(plan.uuid, claim, state, now=NOW)
    else:
        api.store.save_plan(replace(plan, state=state))
    return plan


def test_a_plan_is_shown_with_the_fields_of_watcher(api):  # noqa: F811
    indicator = {"name": "n", "description": "d", "unit": "%", "value": 12.5}
    plan = saved(
        api,
        audit_uuid=AUDIT,
        strategy_name="dummy",
        efficacy_indicators=(indicator, "no mapping", {"name": "odd", "value": "x"}),
        global_efficacy=(indicator,),
        status_message="m",
    )
    shown = api.get(f"action_plans/{plan.uuid}")
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
    assert api.get(f"action_plans/{plan.uuid.upper()}/") == shown
    assert set(api.get(f"action_plans/{plan.uuid}", version="1.4")) == FULL - {"status_message"}
    assert set(api.get("action_plans/")["action_plans"][0]) == SHORT
    assert api.get("action_plans/detail")["action_plans"] == [shown]


def test_unknown_plans_and_wrong_uuids_are_refused(api):  # noqa: F811
    removed = saved(api)
    api.store.move_plan(removed.uuid, PlanState.DELETED, now=NOW)
    for method, below in (("GET", ""), ("POST", "/start")):
        for uuid in (str(uuid4()), removed.uuid):
            refused = api.refused(f"action_plans/{uuid}{below}", method=method)
            assert refused == (404, f"ActionPlan {uuid} could not be found")
        status, text = api.refused(f"action_plans/xyz{below}", method=method)
        assert status == 400
        assert text.startswith("Invalid input for field/attribute action_plan_uuid. Value: 'xyz'.")


def test_only_a_recommended_plan_is_started(api):  # noqa: F811
    plan = saved(api)
    started = api.get(f"action_plans/{plan.uuid}/start", method="POST", json={})
    assert (started["uuid"], started["state"]) == (plan.uuid, "PENDING")
    assert api.store.pending_plans() == [plan.uuid]
    refused = api.refused(f"action_plans/{plan.uuid}/start", method="POST")
    assert refused == (400, "Couldn't start when state is 'PENDING'.")


def test_a_paused_plan_is_pending_for_watcher_and_says_so(api):  # noqa: F811
    plan = saved(api, PlanState.PAUSED, status_message="by ada")
    shown = api.get(f"action_plans/{plan.uuid}")
    assert (shown["state"], shown["status_message"]) == ("PENDING", "PAUSED: by ada")
    refused = api.refused(f"action_plans/{plan.uuid}/start", method="POST")
    assert refused == (400, "Couldn't start when state is 'PENDING'.")
    assert api.store.load_plan(plan.uuid).state is PlanState.PAUSED
    cancelled = api.get(**api.patch(f"action_plans/{plan.uuid}", state="CANCELLED"))
    assert cancelled["state"] == "CANCELLED"


#: Who may be brought into which state, and what the record has then.
CHANGES = {
    (PlanState.RECOMMENDED, "PENDING"): PlanState.PENDING,
    (PlanState.RECOMMENDED, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.PENDING, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.PAUSED, "CANCELLED"): PlanState.CANCELLED,
    (PlanState.ONGOING, "CANCELLING"): PlanState.ONGOING,
}


def test_a_patch_starts_and_cancels_and_changes_nothing_else(api):  # noqa: F811
    for old in set(PlanState) - {PlanState.DELETED}:
        for new in ("PENDING", "CANCELLED", "CANCELLING", "SUCCEEDED", "DELETED"):
            plan = saved(api, old)
            patch = api.patch(f"action_plans/{plan.uuid}", state=new)
            if stored := CHANGES.get((old, new)):
                answer = api.get(**patch)
                assert (answer["state"], set(answer)) == (new, FULL)
                asked = [(r.verb, r.who) for r in api.store.requests(plan.uuid)]
                assert asked == ([("cancel", "anonymous")] if new == "CANCELLING" else [])
            else:
                word = "PENDING" if old is PlanState.PAUSED else old
                status, text = api.refused(**patch)
                assert status == 400
                assert text.startswith("Couldn't apply patch '{")
                assert text.endswith(f"Reason: State transition not allowed: ({word} -> {new})")
            assert api.store.load_plan(plan.uuid).state is (stored or old)


def test_patches_that_say_something_else_are_refused(api):  # noqa: F811
    plan = saved(api)
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
        status, text = api.refused(path, method="PATCH", json=body)
        assert status == 400
        assert reason in text
    headers = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[" * 100_000):
        assert api.refused(path, method="PATCH", body=body, headers=headers)[0] == 400
    assert api.store.load_plan(plan.uuid) == plan


def test_a_plan_is_removed_unless_it_waits_or_runs(api):  # noqa: F811
    kept = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED)
    for state in set(PlanState) - {PlanState.DELETED}:
        plan = saved(api, state)
        path = f"action_plans/{plan.uuid}"
        if state in kept:
            word = "PENDING" if state is PlanState.PAUSED else state
            refused = (400, f"Couldn't delete when state is '{word}'.")
            assert api.refused(path, method="DELETE") == refused
            assert api.store.load_plan(plan.uuid).state is state
        else:
            answer = api.ask(path, method="DELETE")
            assert (answer.status_code, answer.content) == (204, b"")
            assert api.refused(path, method="DELETE")[0] == 404
            assert plan.uuid not in api.ask("action_plans").text


def test_a_damaged_plan_breaks_no_list_and_says_what_is_wrong(api, tmp_path):  # noqa: F811
    good, bad, odd = saved(api), saved(api), saved(api)
    for column, value, uuid in (("created_at", "?", bad.uuid), ("state", "odd", odd.uuid)):
        change = f"UPDATE actionplan_plan SET {column} = '{value}' WHERE uuid = '{uuid}'"
        run(f"sqlite:///{tmp_path}/plans.db", change)
    shown = api.get("action_plans/detail")["action_plans"]
    found = [(p["uuid"], p["state"], (p["status_message"] or "").split(":")[0]) for p in shown]
    assert found == [
        (good.uuid, "RECOMMENDED", ""),
        (bad.uuid, "RECOMMENDED", "damaged"),
        (odd.uuid, "FAILED", "damaged"),
    ]
    assert shown[0]["created_at"] == MADE.isoformat()
    assert api.get(f"action_plans/{bad.uuid}") == shown[1]
    status, text = api.refused(f"action_plans/{bad.uuid}/start", method="POST")
    assert status == 500
    assert "is damaged" in text
