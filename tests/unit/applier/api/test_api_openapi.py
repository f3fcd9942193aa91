# SPDX-License-Identifier: Apache-2.0
"""The API against its description: what it takes, answers and refuses, its rules and its verbs."""

from __future__ import annotations

import json
import random
import re
from importlib.metadata import entry_points
from typing import Any

import pytest
import schemathesis
from api_client import HOST, administrators, configured, stored
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from applier import configuration
from applier.api import access, monitoring, routing, v2
from applier.assembly import Assembly
from applier.store.worker_jobs import Worker

EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
#: What is there, by the name of the part of a path.
KNOWN = {"worker": "w1", "plan": "kept", "action": "a1", "name": "migrate", "new": "kept"}
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
#: What a sender may write instead of what is asked for, in the parts of a request.
WRONG: tuple[Any, ...] = (
    *(None, -1, 10**400, 1e308, "", "\0", "%", "../../etc/passwd", [], "x" * 5000),
    *({"x": 1}, {"actions": None}, {"actions": [{}]}, {"why": []}, {"why": ""}),
)
BODIES = (*map(json.dumps, WRONG), "{", "\x00", "a: &a [*a]", "é")
QUERIES = ("limit=x", "state=%ff", "set=%00", "x=1", "x=1&x=%ff", "after=a1&after=a2")
KINDS = ("application/json", "application/yaml", "text/plain", "")
PLANS, ACTIONS = ("last", "kept", "nope", "%00", "\u202e", "*"), ("a1", "nope", "%2e%2e", "0")
WORKERS = ("nope", "a%2Fb", "%00", "%ff", "%2e%2e", "\u202e", "x" * 3000)
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH")


@pytest.fixture
def api(actionplan):
    """Return a client of an API whose record has a plan of three actions, and that lets all in."""
    made = administrators(actionplan, requests_per_second=10**6, command_role="operator")
    actions = [{"name": f"a{i}", "action_type": "nop"} for i in range(3)]
    stored(made, {"name": "kept", "actions": actions})
    words: dict[str, Any] = dict.fromkeys(("host", "user", "version"), "w")
    with actionplan.store() as store:
        own = Worker(KNOWN["worker"], pid=1, queues=["q"], types=[], places=1, **words)
        store.report_worker(own)
    return made


def test_the_description_is_valid_and_every_change_observes_an_idempotency_key(api):
    found = api.simulate_get("/v2/openapi.json").json
    assert found["openapi"] == "3.0.3"
    operations = [(m, o) for of_path in found["paths"].values() for m, o in of_path.items()]
    for method, operation in operations:
        assert operation["summary"].endswith("."), operation
        [tag] = operation["tags"]
        assert re.fullmatch(rf"{tag}\.[a-z_]+", operation["operationId"])
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert ("Idempotency-Key" in names) == (method != "get"), operation
    assert sum(method != "get" for method, _ in operations) > 15
    names = [operation["operationId"] for _, operation in operations]
    assert len(names) == len(set(names))
    assert found["security"] == []


@pytest.mark.slow
@pytest.mark.long
def test_answers_are_as_described(api):
    schema = schemathesis.openapi.from_wsgi("/v2/openapi.json", api.app, headers={"Host": HOST})
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:

        @EXAMPLES
        @given(case=operation.as_strategy(), is_known=st.booleans())
        def check(case: schemathesis.Case, is_known: bool) -> None:
            if is_known:
                case.path_parameters |= {k: KNOWN[k] for k in case.path_parameters}
            if case.path == "/v2/events":
                case.query = {**(case.query or {}), "wait_s": 0}
            answer = case.call(headers={"Host": HOST, "Accept-Encoding": "identity"})
            case.validate_response(answer, checks=list(CHECKS))

        check()


def test_bad_requests_leave_the_record_as_it_was(api, actionplan):
    before = actionplan.good("show", "kept", "-f", "json")
    paths = sorted(api.simulate_get("/v2/openapi.json").json["paths"])
    chance, seen = random.Random(16), set()
    for _ in range(300):
        path = chance.choice(paths).replace("{plan}", chance.choice(PLANS))
        path = path.replace("{action}", chance.choice(ACTIONS)).replace("{name}", "nope")
        path = path.replace("{new}", chance.choice(PLANS))
        path = path.replace("{worker}", chance.choice(WORKERS))
        headers = {"Content-Type": chance.choice(KINDS), "If-Match": chance.choice(("*", "x"))}
        method, body = chance.choice(METHODS), chance.choice(BODIES)
        # Each body is wrong for each operation that changes anything.
        query = chance.choice(QUERIES if method == "GET" else (*QUERIES, ""))
        answer = api.simulate_request(method, path, query_string=query, body=body, headers=headers)
        sent = method, path, query, body, headers
        assert 400 <= answer.status_code < 500, (sent, answer.text)
        seen.add(answer.status_code)
    assert actionplan.good("show", "kept", "-f", "json") == before
    assert {400, 405, 415} <= seen


def test_every_method_has_a_rule_of_the_policy(actionplan):
    assembly = Assembly(configuration.load([str(configured(actionplan).configuration)]))
    endpoints = (*routing.ENDPOINTS, *monitoring.endpoints(assembly, None, CollectorRegistry()))
    known = {rule.name for rule in access.RULES}
    public = [endpoint for endpoint in endpoints if endpoint.rule is None]
    files = {f"/page/{name}" for name in ("report.css", "report.js", "live.js", "icon.svg")}
    assert {endpoint.path for endpoint in public} == {"/", "/healthz", "/readyz"} | files
    assert {endpoint.method for endpoint in public} == {"GET"}
    assert {endpoint.rule for endpoint in endpoints if endpoint not in public} <= known


PLAN, ACTION = "/v2/plans/{plan}", "/v2/plans/{plan}/actions/{action}"

#: What does over HTTP what a verb does with a record.
ROUTES = {
    **{f"action_{verb}": f"POST {ACTION}/{verb}" for verb in ("force-complete", "skip")},
    **{f"{what}_list": f"GET /v2/{what}s" for what in ["duration", "event", "planner", "worker"]},
    **{
        verb: f"POST {PLAN}/{verb}"
        for verb in ("approve", "resume", "rollback", "start", "undelete")
    },
    **{verb: f"GET {PLAN}/{verb}" for verb in ("export", "simulate")},
    "action_list": f"GET {PLAN}/actions",
    "action_set": f"POST {ACTION}/settle",
    "action_show": f"GET {ACTION}",
    "action_type_list": "GET /v2/action-types",
    "action_type_show": "GET /v2/schemas/{name}",
    "create": "POST /v2/plans",
    "delete": f"DELETE {PLAN}",
    "diff": f"GET {PLAN}/diff/{{new}}",
    "duration_export": "GET /v2/durations/export",
    "duration_import": "POST /v2/durations",
    "event_subscription_list": "GET /v2/subscriptions",
    "event_subscription_remove": "POST /v2/subscriptions/remove",
    "graph": f"GET {PLAN}/graph.svg",
    "history": "GET /v2/history",
    "import": "POST /v2/imports",
    "list": "GET /v2/plans",
    "purge": "POST /v2/purge",
    "report": f"GET {PLAN}/report.html",
    "schema": "GET /v2/schemas/{name}",
    "service_list": "GET /v2/services",
    "set": f"POST {PLAN}/limits",
    "show": f"GET {PLAN}",
    "stop": f"POST {PLAN}/cancel",  # or /pause, or /actions/{action}/abort
    "watch": "GET /v2/events",
    "why": f"GET {ACTION}/why",
    "worker_drain": "POST /v2/workers/{worker}/drain",
}

#: Verbs without a route. 'start' queues for a service what 'apply' runs in its own process; others
#: write a document of what the cloud holds, read files of the package or write some for developers,
#: or are about configuration, processes and database of their own machine.
WITHOUT = {
    *("apply", "drain", "undrain", "facts", "example_copy", "example_list", "example_show"),
    *("plugin_new", "config_show", "planner_show", "simulator_reset", "simulator_show"),
    *("job_clean", "job_list", "db_backup", "db_check", "db_upgrade"),
}


def test_each_verb_has_a_route_or_a_reason():
    verbs = {verb.name for verb in entry_points(group="actionplan.cli")}
    assert len(verbs) > 40
    assert verbs == ROUTES.keys() | WITHOUT
    assert not ROUTES.keys() & WITHOUT
    assert set(ROUTES.values()) <= {endpoint.route for endpoint in v2.ENDPOINTS}
