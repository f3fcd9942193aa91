# SPDX-License-Identifier: Apache-2.0
"""Changes with an Idempotency-Key happen once: one after the other, at once, and after a crash."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from api_client import (
    DOCUMENT,
    administrators,
    closed_client,
    configured,
    is_problem,
    post,
    stored,
)
from command_line import CommandLine
from falcon.testing import Result, TestClient
from scratch_database import empty_record_on, run

from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import Worker

AT_ONCE = 8
KEY = {"Idempotency-Key": "k1"}
WHY = {"why": "looked at"}


@pytest.fixture
def actionplan(actionplan: CommandLine) -> CommandLine:
    """Return a command line with a record in a file."""
    return configured(actionplan)


@pytest.fixture(
    params=["", *(pytest.param(kind, marks=pytest.mark.server) for kind in ("postgresql", "mysql"))]
)
def record(actionplan, request):
    """Use an empty record in a file or on a server."""
    if request.param:
        url = request.getfixturevalue(f"{request.param}_url")
        empty_record_on(url)
        own = {"connection": url, "simulator": actionplan.simulator, "simulator_speed": 1000}
        actionplan.configure(actionplan=own)


def at_once(actionplan: CommandLine, path: str, body: Any = None, **headers: str) -> list[Result]:
    """Send one request AT_ONCE times, each to an application of its own; return what came back."""
    barrier = Barrier(AT_ONCE)

    def send(client: TestClient) -> Result:
        client.simulate_get("/v2/plans")
        barrier.wait()
        return post(client, path, body, **headers)

    with ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as threads:
        clients = [stack.enter_context(closed_client(actionplan)) for _ in range(AT_ONCE)]
        return list(threads.map(send, clients))


def verbs(api: TestClient, plan: str) -> list[str]:
    """Return what the history of a plan has."""
    history = api.simulate_get(f"/v2/plans/{plan}/history").json["items"]
    return [entry["verb"] for entry in history]


@pytest.mark.usefixtures("record")
def test_of_many_at_once_one_has_an_effect_and_all_get_its_answer(actionplan):
    made = at_once(actionplan, "/v2/plans", DOCUMENT, **KEY)
    assert {a.status_code for a in made} == {201}
    [uuid] = {a.json["uuid"] for a in made}
    with closed_client(actionplan) as api:
        _steer_at_once(actionplan, api, uuid)


def _steer_at_once(actionplan: CommandLine, api: TestClient, uuid: str) -> None:
    """Make changes, each AT_ONCE times with one key."""
    tag = {"If-Match": api.simulate_get(f"/v2/plans/{uuid}").headers["ETag"]}
    changes: list[tuple[str, Any, str]] = [
        ("approve", WHY, "approve"),
        ("actions/first/skip", WHY, "skip"),
        ("start", None, "start"),
        ("cancel", None, "cancel"),
        ("undelete", None, "undelete"),
    ]
    expected = ["create"]
    for path, body, verb in changes:
        if verb == "undelete":
            api.simulate_delete(f"/v2/plans/{uuid}")
            expected.append("delete")
        headers = {**KEY, **tag} if verb == "approve" else KEY
        done = at_once(actionplan, f"/v2/plans/{uuid}/{path}", body, **headers)
        given = [a.json for a in done if a.status_code == 200]
        assert given == given[:1] * len(given) != [], path
        for late in done:
            if late.status_code != 200:
                assert is_problem(late, 409, "is being carried out"), path
                assert late.headers["Retry-After"] == "1"
        again = post(api, f"/v2/plans/{uuid}/{path}", body, **KEY)
        assert (again.status_code, again.json) == (200, given[0])
        expected.append(verb)
        assert verbs(api, uuid) == expected
    assert len(api.simulate_get(f"/v2/plans/{uuid}/approvals").json["items"]) == 1


@pytest.mark.usefixtures("record")
def test_of_many_changes_of_one_tag_one_is_made(actionplan):
    with closed_client(actionplan) as api:
        uuid = stored(api)
        for path, body in (("approve", WHY), ("start", {"at": "2999-01-01T00:00:00Z"})):
            tag = {"If-Match": api.simulate_get(f"/v2/plans/{uuid}").headers["ETag"]}
            done = at_once(actionplan, f"/v2/plans/{uuid}/{path}", body, **tag)
            codes = Counter(a.status_code for a in done)
            assert codes == {200: 1, 412: AT_ONCE - 1}, path
        assert verbs(api, uuid) == ["create", "approve", "start"]


def changes(api: TestClient, actionplan: CommandLine) -> Iterator[tuple[str, Any]]:
    """Prepare each change that is not among those above; yield its path and body."""
    with actionplan.store() as store:
        store.report_worker(Worker("w1", "h", 1, "u", "1", ["q"], ["nop"], 1, 0))
    api.simulate_get("/v2/events")
    yield "/v2/plans", DOCUMENT
    uuid = stored(api)
    yield f"/v2/plans/{uuid}/approve", WHY
    exported = api.simulate_get(f"/v2/plans/{uuid}/export").json
    other = str(uuid4())
    yield "/v2/imports", json.loads(json.dumps(exported).replace(uuid, other))
    yield f"/v2/plans/{uuid}/start", {"at": "2999-01-01T00:00:00Z"}
    disable = {"resource_id": "compute-1", "state": "disabled"}
    kind = "change_nova_service_state"
    done = stored(api, {"actions": [{"action_type": kind, "input_parameters": disable}]})
    actionplan.good("apply", done, "--yes")
    yield f"/v2/plans/{done}/rollback", None
    yield "/v2/purge", {"before": "2000-01-01T00:00:00Z"}
    yield "/v2/durations", {"durations": [{"action_type": "migrate", "seconds": [60]}]}
    yield "/v2/subscriptions/remove", {"name": "readers"}
    yield "/v2/workers/w1/drain", {}


def test_each_change_is_made_once_for_a_key_and_another_body_is_refused(actionplan):
    api = administrators(actionplan)
    for number, (path, body) in enumerate(changes(api, actionplan)):
        key = {"Idempotency-Key": f"k{number}"}
        first = post(api, path, body, **key)
        assert first.status_code in (200, 201), (path, first.text)
        before = api.simulate_get("/v2/history", params={"limit": 1000}).json
        again = post(api, path, body, **key)
        assert (again.status_code, again.json) == (first.status_code, first.json), path
        assert api.simulate_get("/v2/history", params={"limit": 1000}).json == before, path
        assert is_problem(post(api, path, {**(body or {}), "x": 1}, **key), 422, "was used before")
        if path == "/v2/plans":
            refused = post(api, f"{path}?dry_run=true", body, **key)
            assert is_problem(refused, 422, "was used before")
    uuid = stored(api, {**DOCUMENT, "guards": {"approvals": 1}})
    # A refusal is not kept.
    assert post(api, f"/v2/plans/{uuid}/start", **KEY).status_code == 409
    assert post(api, f"/v2/plans/{uuid}/approve", WHY).status_code == 200
    assert post(api, f"/v2/plans/{uuid}/start", **KEY).status_code == 200
    removed = stored(api)
    for _ in range(2):
        assert api.simulate_delete(f"/v2/plans/{removed}", headers=KEY).status_code == 204


def test_a_crash_between_a_change_and_its_answer_does_not_double_it(api, actionplan, monkeypatch):
    def crash(*_: Any, **__: Any) -> bool:
        raise RuntimeError

    uuid = stored(api)
    path = f"/v2/plans/{uuid}/approve"
    with monkeypatch.context() as context:
        context.setattr(SqlStore, "keep_answer", crash)
        assert post(api, path, WHY, **KEY).status_code == 500
    soon = post(api, path, WHY, **KEY)
    assert is_problem(soon, 409, "its answer was lost")
    assert soon.headers["Retry-After"]
    long_ago = "UPDATE actionplan_answer SET at = '2026-01-01 00:00:00.000000'"
    run(f"sqlite:///{actionplan.record}", long_ago)
    later = post(api, path, WHY, **KEY)
    assert (later.status_code, later.json["state"]) == (200, "RECOMMENDED")
    assert verbs(api, uuid) == ["create", "approve"]
