# SPDX-License-Identifier: Apache-2.0
"""What is asked in the wrong way, or at the wrong time, gets an answer that helps."""

from __future__ import annotations

import json
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from api_client import api_process, client_of, configured
from command_line import CommandLine
from falcon.testing import TestClient
from reserved_port import ReservedPort
from test_api_archives import administrators
from test_api_v2 import is_problem, post, stored
from test_cli_hosts import WEB, created, destination, move

from applier.clouds.simulated import SimulatedCloud


@pytest.fixture
def api(actionplan: CommandLine) -> TestClient:
    """Return a client of the API."""
    return client_of(configured(actionplan))


def test_head_answers_as_get_without_a_body(actionplan: CommandLine) -> None:
    api = administrators(actionplan)
    uuid = stored(api)
    paths = api.simulate_get("/v2/openapi.json").json["paths"]
    names = {"plan": uuid, "new": uuid, "action": "first", "name": "migrate", "worker": "w"}
    asked = [path.format(**names) for path, methods in paths.items() if "get" in methods]
    asked += ["/", "/v1", "/v1/action_plans", f"/plans/{uuid}", "/metrics", "/healthz", "/nope"]
    for path in asked:
        get, head = api.simulate_get(path), api.simulate_head(path)
        assert head.status_code == get.status_code, path
        assert head.content == b"", path
        same = {"content-type", "etag"} & get.headers.keys()
        assert {n: head.headers[n] for n in same} == {n: get.headers[n] for n in same}, path
    assert api.simulate_head("/v2/purge").status_code == 405


def test_times_without_an_offset_are_refused(actionplan: CommandLine) -> None:
    api = administrators(actionplan)
    uuid, time = stored(api), "2999-08-01T00:00:00"
    asked: list[tuple[str, str, Any]] = [
        ("POST", f"/v2/plans/{uuid}/start", {"at": time}),
        ("POST", "/v2/purge", {"before": time}),
        ("GET", f"/v2/plans?since={time}", None),
        ("GET", f"/v2/plans?until={time}", None),
    ]
    for method, path, body in asked:
        for good in (False, True):
            given = json.dumps(body).replace(time, f"{time}Z" if good else time)
            answer = api.simulate_request(
                method,
                f"{path}Z" if good and body is None else path,
                body=given if body else "",
                headers={"Content-Type": "application/json"},
            )
            if good:
                assert answer.status_code == 200, answer.text
            else:
                assert is_problem(answer, 400, "has no offset"), path


def test_what_watcher_has_and_actionplan_has_not_is_named(api: TestClient) -> None:
    for path, text in (
        ("/v1/audits", "no audits"),
        ("/v1/audit_templates/detail", "no audit templates"),
        ("/v1/nope", "no such path"),
    ):
        answer = api.simulate_get(path)
        fault = json.loads(answer.json["error_message"])
        assert (answer.status_code, text in fault["faultstring"]) == (404, True)


def test_a_plan_that_has_not_run_cannot_be_rolled_back_yet(api: TestClient) -> None:
    uuid = stored(api)
    assert is_problem(post(api, f"/v2/plans/{uuid}/rollback"), 409, "")
    post(api, f"/v2/plans/{uuid}/start")
    assert is_problem(post(api, f"/v2/plans/{uuid}/rollback"), 409, "it is PENDING")


def test_a_start_on_a_cloud_that_has_changed_says_what_differs_and_may_go_on(
    api: TestClient, actionplan: CommandLine
) -> None:
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


def test_a_token_that_keystone_does_not_answer_about_is_not_called_invalid(
    actionplan: CommandLine,
) -> None:
    actionplan.environment["PYTHONWARNINGS"] = "ignore"
    configured(actionplan, port=0, auth_strategy="keystone")
    with closing(ReservedPort()) as kept:
        keystone = f"http://127.0.0.1:{kept.port}/v3"
        with actionplan.configuration.open("a") as file:
            file.write(
                f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone}\n"
                f"www_authenticate_uri = {keystone}\nhttp_request_max_retries = 0\n"
                "username = a\npassword = x\nproject_name = service\n"
                "user_domain_id = default\nproject_domain_id = default\n"
            )
        with api_process(actionplan) as api:
            for path in ("/v2/plans", "/v1/action_plans"):
                away = api(path, headers={"X-Auth-Token": "a"})
                assert (away.status, away.headers["Retry-After"]) == (503, "5"), away.body
                assert b"Keystone does not answer" in away.body
                assert api(path).status == 401


def test_answers_name_fields_of_the_api_and_no_options(api: TestClient) -> None:
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
