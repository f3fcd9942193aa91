# SPDX-License-Identifier: Apache-2.0
"""``openstack optimize`` of OpenStack's own client does all it can with our HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import environments
import pytest
from our_api import Api, Client, rows
from sample_plans import new_plan

from applier.contracts import Claimant
from applier.run.this_process import this_host
from applier.storage import schema_version
from applier.storage.sql_store import SqlStore
from applier.store import Service
from planner.plan.states import PlanState

pytestmark = pytest.mark.slow

AUDIT = str(uuid4())
DOCUMENT = """
name: two
actions:
  - {name: a, action_type: nop, input_parameters: {message: first}}
  - {name: b, action_type: nop, input_parameters: {message: second}}
"""


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)],
)
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of an empty record."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('record')}/plans.db"
    url = str(request.getfixturevalue("postgresql_url"))
    schema_version.upgrade(url)
    return url


@pytest.fixture(scope="module")
def store(record: str) -> Iterator[SqlStore]:
    """Return the record."""
    with closing(SqlStore(record)) as store:
        yield store


@pytest.fixture(scope="module")
def api(record: str, store: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Return the service on the record."""
    with Api(tmp_path_factory.mktemp("api"), record) as api:
        yield api


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client that knows no service yet: one for all records."""
    environments.require_made(environments.WATCHER)
    with Client(tmp_path_factory.mktemp("client")) as session:
        yield session


@pytest.fixture
def client(session: Client, api: Api) -> Client:
    """Return the client of the service."""
    session.url = api.url
    return session


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a document with two actions."""
    path = tmp_path_factory.mktemp("documents") / "two.yaml"
    path.write_text(DOCUMENT)
    return path


@pytest.fixture
def plan(api: Api, store: SqlStore, document: Path) -> str:
    """Make a plan by our command line; return its uuid."""
    api.actionplan("create", str(document))
    return store.find_plan("last")


def test_a_plan_is_listed_shown_and_started(client: Client, plan: str) -> None:
    for words in (("list",), ("list", "--detail"), ("list", "--limit", "0")):
        assert plan in [p["UUID"] for p in client.json("actionplan", *words)]
        [row] = [r for r in rows(client.table("actionplan", *words)) if r["UUID"] == plan]
        assert row["State"] == "RECOMMENDED"
    shown = client.json("actionplan", "show", plan)
    assert (shown["UUID"], shown["State"], shown["Status Message"]) == (plan, "RECOMMENDED", None)
    assert client.shown("actionplan", "show", plan)["UUID"] == plan
    assert client.shown("actionplan", "start", plan)["State"] == "PENDING"
    assert json.loads(client.alone("actionplan", "show", plan, "-f", "json").out)["State"] == (
        "PENDING"
    )
    assert "PENDING" in client.alone("actionplan", "list").out
    said = client.refused("actionplan", "start", plan)
    assert "Couldn't start when state is 'PENDING'. (HTTP 400) (Request-ID: req-" in said
    assert "Couldn't delete when state" in client.refused("actionplan", "delete", plan)
    assert client.shown("actionplan", "cancel", plan)["State"] == "CANCELLED"
    assert "(CANCELLED -> CANCELLED)" in client.refused("actionplan", "cancel", plan)
    assert client.table("actionplan", "delete", plan) == ""
    said = client.refused("actionplan", "show", plan)
    assert f"ActionPlan {plan} could not be found (HTTP 404)" in said


def test_a_plan_is_started_by_an_update_and_cancelled_while_it_runs(
    client: Client, plan: str, store: SqlStore
) -> None:
    updated = client.json("actionplan", "update", plan, "replace", "state=PENDING")
    assert updated["State"] == "PENDING"
    me = Claimant(host=this_host(), pid=1, user="wanda")
    claim = store.claim_plan(plan, me, now=datetime.now(UTC))
    assert client.json("actionplan", "show", plan)["Hostname"] == me.host
    assert client.json("actionplan", "cancel", plan)["State"] == "CANCELLING"
    assert [request.verb for request in store.requests(plan)] == ["cancel"]
    for state in (PlanState.CANCELLING, PlanState.CANCELLED):
        store.move_claimed(plan, claim, state, now=datetime.now(UTC))
    said = client.refused("actionplan", "update", plan, "replace", "state=BOGUS")
    assert "Invalid state: BOGUS (HTTP 400)" in said
    said = client.refused("actionplan", "update", plan, "remove", "state")
    assert "State transition not allowed" in said


def test_plans_come_page_by_page(client: Client, store: SqlStore) -> None:
    indicator = {"name": "g", "description": "d", "unit": "%", "value": 12.5}
    made = [new_plan(audit_uuid=AUDIT, global_efficacy=(indicator,)) for _ in range(3)]
    for each in made:
        store.save_plan(each)
    uuids = sorted(each.uuid for each in made)
    words = ("actionplan", "list", "--audit", AUDIT, "--sort-key", "uuid", "--sort-dir", "desc")
    found = client.json(*words, "--limit", "2")
    assert [p["UUID"] for p in found] == uuids[:0:-1]
    rest = client.table(*words, "--limit", "2", "--marker", uuids[1])
    assert [(r["UUID"], r["Audit"]) for r in rows(rest) if r["UUID"]] == [(uuids[0], AUDIT)]
    assert "12.50 %" in rest
    for key in ("audit_uuid", "state", "updated_at", "global_efficacy"):
        assert len(client.json("actionplan", "list", "--audit", AUDIT, "--sort-key", key)) == 3


def test_actions_are_listed_shown_and_skipped(client: Client, plan: str) -> None:
    of_plan = ("action", "list", "--action-plan", plan)
    first, second = client.json(*of_plan)
    assert (first["State"], first["Action"], first["Action Plan"]) == ("PENDING", "nop", plan)
    assert [r["UUID"] for r in rows(client.table(*of_plan))] == [first["UUID"], second["UUID"]]
    detailed = client.json(*of_plan, "--detail")
    assert [a["Parameters"]["message"] for a in detailed] == ["first", "second"]
    assert "second" in client.table(*of_plan, "--detail")
    assert first["UUID"] in [a["UUID"] for a in client.json("action", "list")]
    page = (*of_plan, "--sort-key", "uuid", "--sort-dir", "asc", "--limit", "1")
    low, high = sorted((first["UUID"], second["UUID"]))
    assert [a["UUID"] for a in client.json(*page)] == [low]
    assert [a["UUID"] for a in client.json(*page, "--marker", low)] == [high]
    assert client.json("action", "list", "--audit", str(uuid4())) == []
    one = first["UUID"]
    assert client.json("action", "show", one)["Parameters"] == {"message": "first"}
    assert client.shown("action", "show", one)["State"] == "PENDING"
    update = ("action", "update", one, "--state", "SKIPPED", "--reason", "by hand")
    said = client.refused(*update, version="1.4")
    assert "Action update is not supported in API version 1.4" in said
    assert client.shown(*update)["Status Message"] == "skipped by anonymous: by hand"
    two = ("action", "update", second["UUID"])
    said = client.refused(*two, "--state", "SUCCEEDED")
    assert "State transition not allowed: (PENDING -> SUCCEEDED) (HTTP 409)" in said
    said = client.refused(*two, "--reason", "x")
    assert "status_message update only allowed when action state is SKIPPED (HTTP 409)" in said
    unknown = str(uuid4())
    assert f"Action {unknown} could not be found" in client.refused("action", "show", unknown)


def test_services_are_listed_and_shown(client: Client, store: SqlStore) -> None:
    now = datetime.now(UTC)
    known = {"host": "h-1", "pid": 1, "user": "wanda", "cloud": "west", "started_at": now}
    store.report_service(Service(uuid=str(uuid4()), heartbeat_at=now, **known))
    [service] = client.json("service", "list")
    assert (service["Name"], service["Host"], service["Status"]) == (
        "watcher-applier",
        "h-1",
        "ACTIVE",
    )
    assert "h-1" in client.table("service", "list")
    [detailed] = client.json("service", "list", "--detail")
    assert detailed["Last seen up"].startswith(f"{now:%Y-%m-%dT%H:%M}")
    assert client.table("service", "list", "--detail").count("h-1") == 1
    assert client.json("service", "show", str(service["ID"]))["Host"] == "h-1"
    assert client.shown("service", "show", "watcher-applier")["Host"] == "h-1"
    assert "HTTP 404" in client.refused("service", "show", "nobody")


def test_versions_are_checked(client: Client, plan: str) -> None:
    said = client.refused("actionplan", "list", version="1.9")
    assert "Supported version range is 1.0 to 1.7" in said
    assert plan in client.table("actionplan", "list", version="1.7")
    old = client.json("actionplan", "show", plan, version="1.0")
    assert (old["UUID"], "Status Message" in old) == (plan, False)
