# SPDX-License-Identifier: Apache-2.0
"""Who may ask, what is refused before anybody is asked, and what is logged of requests."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Thread

import bcrypt
import pytest
from api_client import (
    HOST,
    JSON,
    basic,
    client_of,
    configured,
    is_problem,
    users_of,
)
from falcon.testing import TestClient
from reserved_port import ReservedPort

from applier import configuration
from applier.api import keystone, routing
from applier.api.access import Caller, Policy
from applier.api.server import Server
from applier.assembly import Assembly
from applier.errors import ConfigurationError

DOCUMENT = json.dumps({"actions": [{"name": "one", "action_type": "nop"}]})


def test_users_of_a_file_do_what_their_role_may_and_are_on_record(actionplan):
    """One that no role is given to may look, and nothing else."""
    options = users_of(actionplan, "ada", "bob", "prometheus")
    api = client_of(configured(actionplan, **options, roles="ada:admin, bob:operator"))
    refused = [basic("ada", "wrong"), basic("eve", "right"), basic("ada", "x" * 100), {}]
    for path in ("/v2/plans", "/v1/action_plans"):
        codes = {api.simulate_get(path, headers=headers).status_code for headers in refused}
        assert codes == {401}
    given = {"command": "x"}
    shell = json.dumps({"actions": [{"action_type": "shell", "input_parameters": given}]})
    found = {}
    for user in ("ada", "bob", "prometheus"):
        headers = {**JSON, **basic(user, "right")}
        found[user] = [
            api.simulate_get("/v2/plans", headers=headers).status_code,
            api.simulate_get("/metrics", headers=headers).status_code,
            api.simulate_post("/v2/plans", body=shell, headers=headers).status_code,
            api.simulate_post("/v2/plans", body=DOCUMENT, headers=headers).status_code,
        ]
    assert found == {
        "ada": [200, 200, 201, 201],
        "bob": [200, 200, 403, 201],
        "prometheus": [200, 200, 403, 403],
    }
    bob, why = basic("bob", "right"), json.dumps({"why": "by hand"})
    path = "/v2/plans/last/actions/one"
    assert api.simulate_post(f"{path}/skip", body=why, headers=bob).status_code == 200
    shown = api.simulate_get(path, headers=bob).json
    assert shown["status_message"] == "skipped by bob: by hand"


def test_with_keystone_only_those_read_who_are_named(actionplan):
    """Every member of any project has the role reader."""
    for named, seen in (({}, False), ({"reader_role": "auditor"}, True)):
        configured(actionplan, auth_strategy="keystone", **named)
        policy = Policy(configuration.load([str(actionplan.configuration)]))
        roles = (("member", "reader"), ("operator",), ("admin",), ("member", "auditor"))
        callers = (Caller(user="u", roles=frozenset(r), address="", request_id="r") for r in roles)
        allowed = [policy.allows(caller, "plan:read") for caller in callers]
        assert allowed == [False, True, True, seen]


class Maintenance(BaseHTTPRequestHandler):
    """Answers all requests with a page, as a server in front of Keystone may."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>Back soon</html>")

    do_POST = do_GET  # noqa: N815


@contextmanager
def maintenance():
    with ThreadingHTTPServer(("127.0.0.1", 0), Maintenance) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def plain_client(application):
    """Return a client of what has a signature that falcon cannot tell."""
    return TestClient(lambda environ, start_response: application(environ, start_response))


@pytest.mark.filterwarnings("ignore")
def test_a_token_that_keystone_does_not_answer_about_is_not_called_invalid(actionplan, monkeypatch):
    monkeypatch.setattr(keystone, "ANSWER_S", 0.2)
    with (
        closing(ReservedPort()) as refusing,
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
        maintenance() as answering_pages,
    ):
        for port in (refusing.port, silent.getsockname()[1], answering_pages):
            configured(actionplan, auth_strategy="keystone")
            url = f"http://127.0.0.1:{port}/v3"
            with actionplan.configuration.open("a") as file:
                file.write(
                    f"[keystone_authtoken]\nauth_type = password\nauth_url = {url}\n"
                    f"www_authenticate_uri = {url}\nhttp_request_max_retries = 0\n"
                    "username = a\npassword = x\nproject_name = service\n"
                    "user_domain_id = default\nproject_domain_id = default\n"
                )
            conf = configuration.load([str(actionplan.configuration)])
            with closing(Assembly(conf)) as assembly:
                api = plain_client(routing.make(assembly))
                away = api.simulate_get("/v2/plans", headers={"Host": HOST, "X-Auth-Token": "a"})
                assert is_problem(away, 503, "Keystone does not answer")
                assert away.headers["Retry-After"] == "5"
                assert api.simulate_get("/v1/action_plans", host="localhost").status_code == 401


def test_pages_of_other_sites_change_nothing_and_too_many_requests_wait(actionplan):
    api = client_of(configured(actionplan))
    for foreign in (
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},  # as of a browser that was led here by this name
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        refused = api.simulate_post("/v2/plans", body=DOCUMENT, headers={**JSON, **foreign})
        assert refused.status_code == 403, foreign
    assert refused.json["title"] == "Other site"
    assert api.simulate_get("/v2/plans", headers={"Host": "evil.example"}).status_code == 403
    for path in ("/v2/plans", "/v1/action_plans", "/plans"):
        for name, value in (("Host", "127.0.0.1:abc"), ("Origin", "http://[::1")):
            answer = api.simulate_get(path, headers={name: value})
            assert (answer.status_code, name in answer.text) == (400, True)
    assert api.simulate_get("/v2/plans").json["total"] == 0
    own = {**JSON, "Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"}
    assert api.simulate_post("/v2/plans", body=DOCUMENT, headers=own).status_code == 201
    api = client_of(configured(actionplan, requests_per_second=0.01))
    answers = [api.simulate_get("/v2/plans") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 100


@pytest.fixture
def compared(monkeypatch):
    """Return the hashes with which passwords are compared."""
    found, compare = list[bytes](), bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda p, h: found.append(h) or compare(p, h))
    return found


def test_of_many_requests_at_once_with_a_right_password_one_is_compared(actionplan, compared):
    api, begun = client_of(configured(actionplan, **users_of(actionplan, "ada"))), Barrier(20)

    def ask(_: int) -> int:
        begun.wait()
        return int(api.simulate_get("/v2/plans", headers=basic("ada", "right")).status_code)

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask, range(20))) == [200] * 20
    assert len(compared) == 1


def test_wrong_passwords_are_logged_and_slowed_down_and_unknown_users_cost_as_much(
    actionplan, caplog, compared
):
    api = client_of(configured(actionplan, **users_of(actionplan, "ada")))

    def code(user: str, password: str) -> int:
        return int(api.simulate_get("/v2/plans", headers=basic(user, password)).status_code)

    assert code("ada", "right") == 200
    codes = [code(user, "guess") for user in ("ada", "eve") * 10]
    assert set(codes[:9]) == {401}
    assert 429 in codes
    assert len(compared) == 1 + codes.count(401), "what is too early costs nothing"
    assert {hashed[:7] for hashed in compared} == {b"$2b$04$"}
    assert "eve from" in caplog.text
    assert "guess" not in caplog.text
    assert code("ada", "right") == 200, "it is known already"


def test_each_request_is_logged_without_its_query(actionplan, caplog):
    caplog.set_level("INFO")
    api = client_of(configured(actionplan, **users_of(actionplan, "ada")))
    api.simulate_get("/v2/plans?limit=777", headers=basic("ada", "right"))
    api.simulate_head("/v2/plans", headers=basic("ada", "right"))
    api.simulate_get("/healthz")
    lines = [record.getMessage() for record in caplog.records if "/v2" in record.getMessage()]
    assert ['"GET' in line for line in lines] == ['"HEAD' not in line for line in lines]
    assert len(lines) == 2
    assert all(part in lines[0] for part in ("ada", "127.0.0.1", "/v2/plans", "200"))
    assert "777" not in caplog.text


# cheroot leaves sockets to the garbage collector when an address cannot be used.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_wrong_configuration_is_refused(actionplan):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, text in (
            ({"host": "0.0.0.0"}, "accepted only on a loopback address"),  # noqa: S104
            ({"auth_strategy": "http_basic", "http_basic_auth_user_file": "/gone"}, "/gone"),
            ({**users_of(actionplan, "ada"), "roles": "eve:admin"}, "eve"),
            ({"host": "192.0.2.1", "auth_strategy": "http_basic"}, "htpasswd"),
            ({"port": port}, f"port {port} cannot be used"),
        ):
            file = str(configured(actionplan, **options).configuration)
            with (
                closing(Assembly(configuration.load([file]))) as assembly,
                pytest.raises(ConfigurationError) as refused,
            ):
                Server(assembly.conf, routing.make(assembly)).open()
            assert text in str(refused.value)
