# SPDX-License-Identifier: Apache-2.0
"""A plan that waits for a time says so everywhere, and is run then and not before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from api_client import client_of, configured, post

from planner.plan.states import PlanState

NOP = {"name": "a", "action_type": "nop"}
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


def test_a_plan_starts_with_its_window_or_at_once_where_that_is_open(actionplan):
    opens = (datetime.now(UTC) + timedelta(days=2)).replace(minute=0, second=0, microsecond=0)
    window = f"{opens:%a}".lower() + f" {opens.hour:02}:00-{(opens.hour + 1) % 24:02}:00 UTC"
    for windows, start_at in ((window, opens), (ALWAYS, None)):
        file = actionplan.document("plan.yaml", NOP, guards={"windows": [windows]})
        actionplan.good("create", file)
        told = actionplan.good("start", "last", "--in-window")
        assert ("the window that is open now" in told) == (start_at is None)
        assert actionplan.plans()[0].start_at == start_at


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
    (row,) = api.simulate_get("/v2/plans").json["plans"]
    assert row["start_at"] == shown.json["start_at"]
    assert post(api, f"{path}/start", {"in_window": True}).status_code == 200
    later = api.simulate_get(path)
    assert "start_at" not in later.json
    assert later.headers["ETag"] != shown.headers["ETag"]
