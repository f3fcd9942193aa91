# SPDX-License-Identifier: Apache-2.0
"""What holds a plan back: approvals, blast radius, windows, a budget, a probe, a start time."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime, timedelta

import pytest
from api_client import client_of, configured, post
from command_line import check_golden

from planner.plan.states import PlanState

NOP = {"name": "a", "action_type": "nop"}


def test_a_plan_keeps_the_guards_with_which_it_was_made(actionplan):
    resource = "6a1f0001-0000-4000-8000-000000000001"
    actionplan.document("plan.yaml", {"action_type": "stop", "resource_id": resource})
    actionplan.good("create", "plan.yaml", "--set", "approvals=1", "--out", "plan.json")
    assert actionplan.plan().guards.to_dict() == {"approvals": 1}
    ended = actionplan("apply", "last", "--yes", "--set", "approvals=0")
    assert (ended.code, "set approvals=0: has no effect" in ended.err) == (1, True)
    saved = actionplan.folder / "plan.json"
    plan = json.loads(saved.read_text())
    del plan["guards"]
    saved.write_text(json.dumps(plan))
    assert actionplan("apply", "plan.json", "--yes").code == 4
    assert actionplan.plan().state is PlanState.RECOMMENDED
    actionplan.good("approve", "last", "--reason", "looked at")
    actionplan.good("apply", "last", "--yes")
    actionplan.good("rollback", "last")
    assert actionplan.plans()[0].guards.to_dict() == {"approvals": 1}


def test_a_guard_that_is_none_is_refused_at_start(actionplan):
    told = []
    for option, value in (
        ("approvals_for", "events=1"),
        ("approvals", "-1"),
        ("approval_max_age_s", "0"),
        ("blast_radius", "hosts=many"),
        ("failure_budget", "10%"),
        ("windows", "sat 22:00-04:00"),
    ):
        actionplan.configure(watcher_applier={option: value})
        told.append(actionplan.transcript("list"))
    check_golden("wrong_guards", "\n".join(told))
    assert all(text.endswith("[1]\n") for text in told)


def test_what_waits_for_a_window_says_so(actionplan):
    opens = datetime.now(UTC) + timedelta(days=2)
    day = f"{opens:%a}".lower()
    window = f"{day} {opens.hour:02}:00-{(opens.hour + 1) % 24:02}:00 UTC"
    file = actionplan.document("plan.yaml", {**NOP, "estimate_s": 9}, guards={"windows": [window]})
    actionplan.good("create", file)
    assert f"Window: {window}; opens at " in actionplan.good("show", "last")
    found = json.loads(actionplan.good("simulate", "last", "-f", "json"))
    assert [len(night["actions"]) for night in found["nights"]] == [1]
    with actionplan.start("apply", "last", "--yes") as process:
        lines = iter(process.stderr.readline, "")
        assert any(f"1 action waiting for the window {window}" in line for line in lines)
        assert f"for the window {window}, which opens at" in actionplan.good("why", "last", "a")
        assert "waits for the window" in actionplan.good("action", "list", "last", "-f", "json")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 5


@pytest.mark.parametrize(
    ("settings", "who", "why"),
    [
        ({"failure_budget": "0"}, "the failure budget", "1 action failed, the last one b, and "),
        ({"on_failure": "pause"}, "on_failure = pause", "b ended FAILED"),
        ({"health_probe": "test ! -e b"}, "the health probe", "test ended with 1"),
    ],
)
def test_recap_history_timeline_and_report_say_what_paused_a_plan(actionplan, settings, who, why):
    actionplan.configure(watcher_applier=settings)
    commands = {"b": "touch b; exit 1", "c": "true"}
    shell = (
        {"name": name, "action_type": "shell", "input_parameters": {"command": command}}
        for name, command in commands.items()
    )
    ended = actionplan("apply", actionplan.document("plan.yaml", *shell), "--yes")
    assert (ended.code, why in ended.out) == (5, True)
    *_, last = json.loads(actionplan.good("history", "last", "-f", "json"))
    assert (last["verb"], last["who"]) == ("pause", who)
    assert last["why"].startswith(why)
    assert ", and stands still." in actionplan.good("report", "last")
    assert ", and stands still</text>" in actionplan.good("graph", "last", "-f", "timeline")
    actionplan.configure()
    actionplan.good("action", "set", "last", "b", "--state", "succeeded", "--reason", "by hand")
    actionplan.good("apply", "last", "--yes")
    for verb in (("graph", "last", "-f", "timeline"), ("report", "last")):
        page = " ".join(actionplan.good(*verb).split())
        assert f"the end of the pause by {who}: {why}" in page


# Start times


ALWAYS = "daily 00:00-00:00 UTC"


def test_a_plan_that_waits_says_so_and_its_time_can_be_changed(actionplan):
    actionplan.good("create", actionplan.document("plan.yaml", NOP))
    assert "one has to run then" in actionplan.good("start", "last", "--at", "2902-01-01")
    told = actionplan.good("start", "last", "--at", "2901-11-28T22:00+01:00")
    assert "starts at 2901-11-28 21:00:00 UTC" in told
    (row,) = json.loads(actionplan.good("list", "-f", "json"))
    assert (row["state"], row["starts"]) == ("PENDING", "2901-11-28 21:00:00")
    assert json.loads(actionplan.good("show", "last", "-f", "json"))["start_at"].startswith("2901")
    for words in (("list",), ("show", "last"), ("why", "last", "a"), ("history", "last")):
        assert "2901-11-28 21:00" in actionplan.good(*words)
    assert "is PENDING." in actionplan.good("start", "last")
    assert actionplan.plan().start_at is None
    assert actionplan("start", "last").code == 1
    actionplan.good("start", "last", "--at", "3d")
    # Apply does not wait for it.
    assert "PENDING, starts " in actionplan.good("apply", "last", "--yes")
    assert actionplan.plan().state is PlanState.SUCCEEDED


def test_a_plan_is_started_at_a_time_over_http(actionplan):
    actionplan.good("create", actionplan.document("plan.yaml", NOP, guards={"windows": [ALWAYS]}))
    api, path = client_of(configured(actionplan)), f"/v2/plans/{actionplan.plan().uuid}"
    for wrong in (
        *({"at": "soon"}, {"at": "2020-01-01T10:00:00Z"}, {"at": "3000-02-30T00:00:00Z"}),
        {"at": "2901-01-01T00:00:00Z", "in_window": True},
    ):
        assert post(api, f"{path}/start", wrong).status_code == 400
    done = post(api, f"{path}/start", {"at": "2901-11-28T22:00:00+01:00"})
    assert done.status_code == 200, done.text
    assert "starts at 2901-11-28 21:00:00 UTC" in done.json["messages"][0]
    shown = api.simulate_get(path)
    assert shown.json["start_at"] == "2901-11-28T21:00:00+00:00"
    (row,) = api.simulate_get("/v2/plans").json["items"]
    assert row["start_at"] == shown.json["start_at"]
    assert post(api, f"{path}/start", {"in_window": True}).status_code == 200
    later = api.simulate_get(path)
    assert "start_at" not in later.json
    assert later.headers["ETag"] != shown.headers["ETag"]
