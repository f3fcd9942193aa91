# SPDX-License-Identifier: Apache-2.0
"""What is asked in the wrong way, or at the wrong time, gets an answer that helps; rehearsals."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest
from api_client import (
    JSON,
    administrators,
    client_of,
    is_problem,
    post,
    stored,
)
from command_line import EXAMPLE
from test_cli_hosts import WEB, created, destination, move

from applier.clouds.simulated import SimulatedCloud


@pytest.fixture
def admin(actionplan):
    """Return a client whose callers may administer the record."""
    return administrators(actionplan)


def test_head_answers_as_get_without_a_body(admin):
    uuid = stored(admin)
    paths = admin.simulate_get("/v2/openapi.json").json["paths"]
    names = {"plan": uuid, "new": uuid, "action": "first", "name": "migrate", "worker": "w"}
    asked = [path.format(**names) for path, methods in paths.items() if "get" in methods]
    asked += ["/", "/v1", "/v1/action_plans", f"/plans/{uuid}", "/metrics", "/healthz", "/nope"]
    for path in asked:
        get, head = admin.simulate_get(path), admin.simulate_head(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        same = {"content-type", "etag"} & get.headers.keys()
        assert {n: head.headers[n] for n in same} == {n: get.headers[n] for n in same}, path
    assert admin.simulate_head("/v2/purge").status_code == 405


def test_times_without_an_offset_are_refused(admin):
    uuid, time = stored(admin), "2999-08-01T00:00:00"
    for method, path, body in (
        ("POST", f"/v2/plans/{uuid}/start", {"at": time}),
        ("POST", "/v2/purge", {"before": time}),
        ("GET", f"/v2/plans?since={time}", None),
        ("GET", f"/v2/plans?until={time}", None),
    ):
        sent = json.dumps(body) if body else ""
        wrong = admin.simulate_request(method, path, body=sent, headers=JSON)
        assert is_problem(wrong, 400, "has no offset"), path
        path, sent = (text.replace(time, f"{time}Z") for text in (path, sent))
        right = admin.simulate_request(method, path, body=sent, headers=JSON)
        assert right.status_code == 200, right.text


def test_a_start_on_a_cloud_that_has_changed_says_what_differs_and_may_go_on(api, actionplan):
    cloud = SimulatedCloud(actionplan.simulator, speed=1000)
    created(actionplan, "compute-1")
    move(cloud, "web-1", "compute-4")
    cloud.delete_instance(WEB["web-2"], Event())
    goal = destination(actionplan, "move-web-3")
    cloud.set_service_status(goal, "disabled", "smoke", Event())
    refused = post(api, "/v2/plans/last/start")
    assert is_problem(refused, 409, '"accept_drift": true')
    assert "--" not in refused.json["detail"]
    found = [(d["resource"], d["planned"], d["now"]) for d in refused.json["differences"]]
    assert sorted(found) == sorted(
        [
            ("web-1", "compute-1", "compute-4"),
            ("web-2", "compute-1", None),
            (goal, "enabled", "disabled"),
        ]
    )
    assert all(one["detail"] in refused.json["detail"] for one in refused.json["differences"])
    started = post(api, "/v2/plans/last/start", {"accept_drift": True})
    assert started.json["state"] == "PENDING"


def test_answers_name_fields_of_the_api_and_no_options(api):
    actions = [{"name": "first", "action_type": "nop", "touches": ["node:a"]}]
    approved = {"name": "a", "actions": actions, "guards": {"approvals": 2}}
    bounded = {"name": "b", "actions": actions, "guards": {"blast_radius": {"hosts": "20%"}}}
    saved = stored(api)
    asked = [
        post(api, "/v2/plans/a/start") if stored(api, approved) else None,
        post(api, "/v2/plans/a/approve", {"why": "looked at"}),
        api.simulate_get("/v2/plans/a/approvals"),
        api.simulate_get("/v2/plans/a/dry-run"),
        post(api, f"/v2/plans/{saved}/limits", {"limits": {"max_workers": 1}}),
        post(api, "/v2/plans", api.simulate_get(f"/v2/plans/{saved}").json | {"digest": "x"}),
        post(api, "/v2/plans?planner=weight", api.simulate_get(f"/v2/plans/{saved}").json),
        post(api, "/v2/plans?set=ordering=slots", api.simulate_get(f"/v2/plans/{saved}").json),
        post(api, "/v2/plans?facts_from=simulated", approved),
        post(api, "/v2/plans", bounded),
        post(api, "/v2/plans/b/start"),
    ]
    for answer in asked:
        assert answer is not None
        assert " --" not in answer.text, answer.text
        assert "'--" not in answer.text, answer.text
    assert "/approve with" in asked[0].text


def test_a_rehearsal_tells_what_the_command_line_tells(api, actionplan):
    actionplan.good("create", str(EXAMPLE))
    words = ("--inject", "fail:migrate=20%,slow:node:compute-3=3x", "--times", "20", "--seed", "7")
    told = json.loads(actionplan.good("simulate", "last", *words, "-f", "json"))
    inject = ["fail:migrate=20%", "slow:node:compute-3=3x"]
    params: dict[str, Any] = {"inject": inject, "times": 20, "seed": 7}
    path = "/v2/plans/last/rehearsal"
    assert api.simulate_get(path, params=params, params_csv=False).json == told
    assert told["went_wrong"]["worst"] > 0
    for query, text in (
        ("inject=fall:migrate", "fall"),
        ("inject=fail:nobody", "nobody"),
        ("times=0", "times"),
        ("times=100000", "the most for 11 actions"),
    ):
        answer = api.simulate_get(path, query_string=query)
        assert is_problem(answer, 400, "")
        assert text in answer.text


def test_a_dry_run_asks_and_changes_nothing_and_tells_what_a_guard_refuses(api, actionplan):
    actionplan.good("create", str(EXAMPLE))
    before = api.simulate_get("/v2/plans/last").json
    found = api.simulate_get("/v2/plans/last/dry-run").json
    assert (found["refused"], found["guard"], found["moved"]) == (False, None, [])
    assert {action["found"] for action in found["actions"]} >= {"to do"}
    assert api.simulate_get("/v2/plans/last").json == before
    with actionplan.configuration.open("a", encoding="utf-8") as file:
        file.write("[watcher_applier]\napprovals = 1\n")
    plan = stored(api)
    found = client_of(actionplan).simulate_get(f"/v2/plans/{plan}/dry-run").json
    assert (found["refused"], found["moved"], "approv" in found["guard"]) == (True, None, True)


# What administrators do: export, import, purge


def test_a_plan_goes_to_another_record_with_its_history(admin, actionplan):
    uuid = stored(admin)
    exported = admin.simulate_get(f"/v2/plans/{uuid}/export")
    assert exported.json == json.loads(actionplan.good("export", uuid))
    assert is_problem(post(admin, "/v2/imports", exported.json), 409, "already in the record")
    actionplan.record.unlink()
    other = administrators(actionplan)
    made = post(other, "/v2/imports", exported.json)
    assert (made.status_code, made.json["uuid"]) == (201, uuid)
    verbs = [entry["verb"] for entry in other.simulate_get("/v2/history").json["items"]]
    assert sorted(verbs) == ["create", "import"]
    broken = {**exported.json, "version": "9", "more": 1}
    assert is_problem(post(other, "/v2/imports", broken), 400, "version")


def test_durations_are_listed_exported_and_imported(admin):
    document = {"durations": [{"action_type": "migrate", "seconds": [60, 90]}]}
    told = post(admin, "/v2/durations", document).json["messages"]
    assert ["2 durations" in text for text in told] == [True]
    [entry] = admin.simulate_get("/v2/history").json["items"]
    assert (entry["verb"], "2 durations" in entry["why"]) == ("import", True)
    [known] = admin.simulate_get("/v2/durations").json["items"]
    assert (known["action_type"], known["imported"]) == ("migrate", 2)
    assert admin.simulate_get("/v2/durations/export").json == {"durations": []}
    wrong = post(admin, "/v2/durations", {"durations": [{"action_type": "migrate"}]})
    assert is_problem(wrong, 400, "seconds")


def test_old_plans_are_purged(admin):
    uuid = stored(admin)
    assert admin.simulate_delete(f"/v2/plans/{uuid}").status_code == 204
    for year, told in ((2020, "0 plans deleted for good."), (2999, "1 plan deleted for good.")):
        purged = post(admin, "/v2/purge", {"before": f"{year}-01-01T00:00:00Z"})
        assert purged.json == {"more": False, "messages": [told]}
    assert admin.simulate_get(f"/v2/plans/{uuid}").status_code == 404


def test_only_an_administrator_may(api):
    refused = [api.simulate_get(f"/v2/plans/{stored(api)}/export")]
    refused += [post(api, f"/v2/{path}", {}) for path in ("imports", "purge", "durations")]
    assert [answer.status_code for answer in refused] == [403] * 4
