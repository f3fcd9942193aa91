# SPDX-License-Identifier: Apache-2.0
"""``actionplan-api`` as a process: who may ask, what a client may cost, and how it ends."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Barrier
from urllib.parse import urlsplit

import bcrypt
import pytest
from api_client import HOST, JSON, PROGRAM, api_process, client_of, configured
from command_line import PATIENCE_S, CommandLine, wait_until
from programs import find
from reserved_port import ReservedPort

from applier import configuration
from applier.api import routing
from applier.api.access import Caller, Policy
from applier.api.server import Server
from applier.assembly import Assembly
from applier.errors import ConfigurationError

ETC = Path(__file__).parents[2] / "etc"
DOCUMENT = json.dumps({"actions": [{"name": "one", "action_type": "nop"}]}).encode()


def basic(user: str, password: str) -> dict[str, str]:
    """Return the headers of a JSON request of a user."""
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Content-Type": "application/json", "Authorization": f"Basic {token}"}


def test_it_serves_bounds_what_clients_cost_and_ends_at_a_signal(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        place = urlsplit(api.url)
        slow = [socket.create_connection((place.hostname, place.port)) for _ in range(200)]
        for one in slow:
            one.sendall(b"POST /v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
        assert api("/v2/plans", DOCUMENT).status == 201
        answer = api("/v2/plans")
        assert answer.json["total"] == 1
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        for one in slow:
            one.close()
        large = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        large.putrequest("POST", "/v2/plans")
        large.putheader("Content-Length", str(10**9))
        large.endheaders()
        with closing(large):
            assert large.getresponse().status == 413
        chunked = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        pieces = (b"x" * 2**20 for _ in range(64))
        with closing(chunked), pytest.raises(ConnectionError):
            chunked.request("POST", "/v2/plans", body=pieces, encode_chunked=True)
        assert api("/v2/plans").status == 200
        api.process.send_signal(signal.SIGTERM)
        assert api.process.wait(PATIENCE_S) == 0
    assert len(json.loads(actionplan.good("list", "-f", "json"))) == 1


def users_of(actionplan: CommandLine, *names: str) -> dict[str, object]:
    """Return the options of an API with these users, whose password is ``right``."""
    file = actionplan.folder / "htpasswd"
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    file.write_text("".join(f"{name}:{hashed}\n" for name in names), encoding="utf-8")
    return {"auth_strategy": "http_basic", "http_basic_auth_user_file": file}


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
    api.simulate_get("/healthz")
    lines = [record.getMessage() for record in caplog.records if "GET" in record.getMessage()]
    assert len(lines) == 1
    assert all(part in lines[0] for part in ("ada", "127.0.0.1", "/v2/plans", "200"))
    assert "777" not in caplog.text


def test_in_another_server_requests_are_logged_and_a_body_needs_its_length(actionplan):
    program = (
        "from applier.api import application; from falcon.testing import TestClient; "
        f"client = TestClient(application, headers={{'Host': '{HOST}'}}); "
        "client.simulate_get('/v2/planners'); "
        "client.simulate_post('/v2/plans', headers={'Transfer-Encoding': 'chunked'})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=configured(actionplan).environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"GET /v2/planners" 200' in ended.stderr
    assert '"POST /v2/plans" 411' in ended.stderr


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


#: What the configuration of a whole nginx has besides that of a site.
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {site}
}}
"""


@pytest.mark.long
@pytest.mark.needs("openssl", "nginx")
def test_behind_nginx_it_speaks_https_whoever_is_slow(actionplan):
    folder, kept = actionplan.folder, ReservedPort()
    certificate, key = folder / "api.pem", folder / "api.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-keyout", str(key), "-out", str(certificate), *subject),
        ],
        check=True,
        capture_output=True,
    )
    trusted = ssl.create_default_context(cafile=str(certificate))

    def status(headers: dict[str, str], body: bytes | None = None) -> int:
        method = "GET" if body is None else "POST"
        with closing(
            http.client.HTTPSConnection("127.0.0.1", kept.port, context=trusted, timeout=PATIENCE_S)
        ) as connection:
            connection.request(method, "/v2/plans", body, headers)
            answer = connection.getresponse()
            place = answer.getheader("Location")
            assert place is None or place.startswith(f"https://127.0.0.1:{kept.port}/v2/plans/")
            return answer.status

    options = users_of(actionplan, "ada") | {"roles": "ada:operator"}
    with api_process(configured(actionplan, port=0, **options)) as api, ExitStack() as open_until:
        site = (ETC / "nginx.conf").read_text(encoding="utf-8")
        for ours, here in (
            ("443", f"127.0.0.1:{kept.port}"),
            ("127.0.0.1:9322", urlsplit(api.url).netloc),
            ("/etc/actionplan/tls", str(folder)),
        ):
            assert ours in site
            site = site.replace(ours, here)
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, site=site), encoding="utf-8")
        program = [find("nginx") or "", "-c", str(folder / "nginx.conf"), "-p", str(folder)]
        nginx = open_until.enter_context(subprocess.Popen(program, stderr=subprocess.DEVNULL))
        open_until.callback(nginx.terminate)

        def answers() -> bool:
            with suppress(OSError):
                return status(basic("ada", "right")) == 200
            return False

        assert wait_until(answers), (folder / "nginx.log").read_text()
        for _ in range(400):  # none of them ever begins a handshake
            silent = socket.create_connection(("127.0.0.1", kept.port))
            open_until.callback(silent.close)
        assert status(basic("ada", "right"), DOCUMENT) == 201
        own = {**basic("ada", "right"), "Origin": f"https://127.0.0.1:{kept.port}"}
        assert status(own, DOCUMENT) == 201, "its own pages may change something"
        assert status({**own, "Origin": "https://evil.example"}, DOCUMENT) == 403
        assert status({}) == 401


def peak_bytes(process: subprocess.Popen[str]) -> int:
    """Return the most memory that a process has had."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+([0-9]+) kB", status)[1]) * 1024


@pytest.mark.slow
def test_the_bodies_of_whoever_may_not_ask_are_not_kept(actionplan):
    body, at_once = b"x" * (15 * 2**20), 16
    options = users_of(actionplan, "prometheus")
    with api_process(configured(actionplan, port=0, **options)) as api:
        assert api("/v2/plans").status == 401
        before = peak_bytes(api.process)
        codes: list[int] = []

        def post(headers: dict[str, str]) -> None:
            codes.append(api("/v2/plans", body, headers=headers).status)

        for headers, code in ((JSON, 401), (basic("prometheus", "right"), 403)):
            threads = [threading.Thread(target=post, args=(headers,)) for _ in range(at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert codes == [code] * at_once
            codes.clear()
        assert peak_bytes(api.process) - before < 2 * len(body)


@pytest.mark.long
def test_the_applier_service_answers_as_well(actionplan):
    program = PROGRAM.with_name("actionplan-applier")
    with api_process(configured(actionplan, port=0), program, "--with-api") as api:
        made = api("/v2/plans", DOCUMENT).json
        assert api(f"/v2/plans/{made['uuid']}/start", b"{}").status == 200
        path = f"/v2/plans/{made['uuid']}"
        wait_until(lambda: api(path).json["state"] == "SUCCEEDED")
        api.process.send_signal(signal.SIGTERM)
        assert api.process.wait(PATIENCE_S) == 0
