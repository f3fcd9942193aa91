# SPDX-License-Identifier: Apache-2.0
"""What is asked in the wrong way, or at the wrong time, gets an answer that helps; rehearsals."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from api_client import JSON, api_process, client_of, configured
from command_line import EXAMPLE, PATIENCE_S, CommandLine
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


def test_head_answers_as_get_without_a_body(actionplan):
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


def test_times_without_an_offset_are_refused(actionplan):
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


def test_what_watcher_has_and_actionplan_has_not_is_named(api):
    for path, text in (
        ("/v1/audits", "no audits"),
        ("/v1/audit_templates/detail", "no audit templates"),
        ("/v1/nope", "no such path"),
    ):
        answer = api.simulate_get(path)
        fault = json.loads(answer.json["error_message"])
        assert (answer.status_code, text in fault["faultstring"]) == (404, True)


def test_a_plan_that_has_not_run_cannot_be_rolled_back_yet(api):
    uuid = stored(api)
    assert is_problem(post(api, f"/v2/plans/{uuid}/rollback"), 409, "")
    post(api, f"/v2/plans/{uuid}/start")
    assert is_problem(post(api, f"/v2/plans/{uuid}/rollback"), 409, "it is PENDING")


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


def test_a_token_that_keystone_does_not_answer_about_is_not_called_invalid(actionplan):
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


HEAD = b"POST /v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

#: Requests that are malformed below the application.
MALFORMED = [
    HEAD + b"Content-Length: -5\r\n\r\n{}",
    HEAD + b"Content-Length: +2\r\n\r\n{}",
    HEAD + b"Content-Length: two\r\n\r\n{}",
    CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    CHUNKED + b"2\r\n{}XX0\r\n\r\n",
    CHUNKED + b"5\r\n{}\r\n0\r\n\r\n",
]


def test_wrong_lengths_and_chunks_are_refused(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        place = urlsplit(api.url)
        for request in MALFORMED:
            with socket.create_connection((place.hostname, place.port), PATIENCE_S) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                assert (answer.status, answer.read() != b"") == (400, True), request
        assert api("/v2/plans").json == {"plans": [], "total": 0}


def test_a_start_in_a_window_needs_windows(api):
    answer = post(api, f"/v2/plans/{stored(api)}/start", {"in_window": True})
    assert is_problem(answer, 400, "in_window")


def test_facts_of_a_cloud_that_is_not_configured_are_refused(api):
    document = {"kind": "solution", "actions": []}
    for cloud in ("openstack", "nope"):
        answer = api.simulate_post(
            "/v2/plans", body=json.dumps(document), headers=JSON, params={"facts_from": cloud}
        )
        assert answer.status_code in (400, 422), answer.text


def test_a_host_or_an_origin_that_is_none_is_refused(api):
    for path in ("/v2/plans", "/v1/action_plans", "/plans"):
        for name, value in (("Host", "127.0.0.1:abc"), ("Origin", "http://[::1")):
            answer = api.simulate_get(path, headers={name: value})
            assert (answer.status_code, name in answer.text) == (400, True)


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
