# SPDX-License-Identifier: Apache-2.0
"""Changes with an Idempotency-Key happen once: one after the other, at once, and after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa
from api_client import HOST, JSON, client_of, configured
from command_line import CommandLine
from falcon.testing import Result, TestClient
from scratch_database import empty_record_on
from test_api_archives import administrators
from test_api_v2 import DOCUMENT, is_problem, post, stored

from applier import configuration
from applier.api import routing
from applier.assembly import Assembly
from applier.storage.sql import SqlStore
from applier.storage.tables import answers

AT_ONCE = 8
KEY = {"Idempotency-Key": "k1"}
WHY = {"why": "looked at"}


@pytest.fixture
def actionplan(actionplan: CommandLine) -> CommandLine:
    """Return a command line with a record in a file."""
    return configured(actionplan)


@pytest.fixture
def api(actionplan: CommandLine) -> TestClient:
    """Return a client of the API."""
    return client_of(actionplan)


def record_on(actionplan: CommandLine, url: str) -> None:
    """Use an empty record on a server."""
    empty_record_on(url)
    own = {"connection": url, "simulator": actionplan.simulator, "simulator_speed": 1000}
    actionplan.configure(actionplan=own)


@contextmanager
def closed_client(actionplan: CommandLine) -> Iterator[TestClient]:
    """Yield a client of an application of its own; close its connections."""
    with closing(Assembly(configuration.load([str(actionplan.configuration)]))) as assembly:
        yield TestClient(routing.make(assembly), headers={"Host": HOST})


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
    history = api.simulate_get(f"/v2/plans/{plan}/history").json["history"]
    return [entry["verb"] for entry in history]


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(None, id="sqlite"),
        pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    ],
)
def test_of_many_at_once_one_has_an_effect_and_all_get_its_answer(
    actionplan: CommandLine, server: str | None, request: pytest.FixtureRequest
) -> None:
    if server:
        record_on(actionplan, request.getfixturevalue(server))
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
    assert len(api.simulate_get(f"/v2/plans/{uuid}/approvals").json["approvals"]) == 1


def test_a_key_with_another_body_or_query_is_refused(api: TestClient) -> None:
    uuid = stored(api)
    assert post(api, "/v2/plans", DOCUMENT, **KEY).status_code == 201
    assert post(api, f"/v2/plans/{uuid}/approve", WHY, **KEY).status_code == 200
    others: list[tuple[str, Any]] = [
        ("/v2/plans", {**DOCUMENT, "name": "day"}),
        ("/v2/plans?set=on_failure=pause", DOCUMENT),
        ("/v2/plans?dry_run=true", DOCUMENT),
        (f"/v2/plans/{uuid}/approve", {"why": "not looked at"}),
    ]
    for path, body in others:
        assert is_problem(post(api, path, body, **KEY), 422, "was used before")
    assert verbs(api, uuid) == ["create", "approve"]
    assert api.simulate_get("/v2/plans").json["total"] == 2


def test_an_answer_that_changed_nothing_is_repeated_as_well(
    actionplan: CommandLine,
) -> None:
    api = administrators(actionplan)
    uuid = stored(api)
    ended = {"path": "/v2/purge", "body": json.dumps({"before": "2999-01-01T00:00:00Z"})}
    first = api.simulate_post(**ended, headers={**JSON, **KEY})
    api.simulate_delete(f"/v2/plans/{uuid}")
    assert first.status_code == 200, first.text
    assert api.simulate_post(**ended, headers={**JSON, **KEY}).json == first.json
    assert api.simulate_get("/v2/plans", params={"state": "DELETED"}).json["total"] == 1


def test_a_refusal_is_not_kept(api: TestClient) -> None:
    uuid = stored(api, {**DOCUMENT, "guards": {"approvals": 1}})
    assert post(api, f"/v2/plans/{uuid}/start", **KEY).status_code == 409
    assert post(api, f"/v2/plans/{uuid}/approve", WHY).status_code == 200
    assert post(api, f"/v2/plans/{uuid}/start", **KEY).status_code == 200


def test_a_plan_is_removed_once(api: TestClient) -> None:
    uuid = stored(api)
    for _ in range(2):
        assert api.simulate_delete(f"/v2/plans/{uuid}", headers=KEY).status_code == 204
    assert verbs(api, uuid) == ["create", "delete"]


def test_a_crash_between_a_change_and_its_answer_does_not_double_it(
    api: TestClient, actionplan: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    engine = sa.create_engine(f"sqlite:///{actionplan.record}")
    with engine.begin() as database:
        database.execute(sa.update(answers).values(at=sa.text("'2026-01-01 00:00:00.000000'")))
    engine.dispose()
    later = post(api, path, WHY, **KEY)
    assert (later.status_code, later.json["state"]) == (200, "RECOMMENDED")
    assert verbs(api, uuid) == ["create", "approve"]
