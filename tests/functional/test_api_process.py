# SPDX-License-Identifier: Apache-2.0
"""``actionplan-api`` as a process: who may ask, what a client may cost, and how it ends."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import closing
from urllib.parse import urlsplit

import bcrypt
import pytest
from api_client import PROGRAM, api_process, configured
from command_line import PATIENCE_S, CommandLine, wait_until

pytestmark = pytest.mark.slow

DOCUMENT = json.dumps({"actions": [{"name": "one", "action_type": "nop"}]}).encode()


def basic(user: str, password: str) -> dict[str, str]:
    """Return the headers of a JSON request of a user."""
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Content-Type": "application/json", "Authorization": f"Basic {token}"}


def refused(actionplan: CommandLine) -> str:
    """Start the program, which must refuse its configuration; return what it says."""
    ended = subprocess.run(
        [PROGRAM, "--config-file", str(actionplan.configuration)],
        # cheroot leaves sockets to the garbage collector when an address cannot be used.
        env={**actionplan.environment, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    return ended.stderr


def test_it_serves_and_ends_at_a_signal(actionplan: CommandLine) -> None:
    with api_process(configured(actionplan, port=0)) as api:
        assert api("/v2/plans", DOCUMENT).status == 201
        answer = api("/v2/plans")
        assert answer.json["total"] == 1
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        api.process.send_signal(signal.SIGTERM)
        assert api.process.wait(PATIENCE_S) == 0
    assert len(json.loads(actionplan.good("list", "-f", "json"))) == 1


def test_users_of_a_file_are_on_record(actionplan: CommandLine) -> None:
    file = actionplan.folder / "htpasswd"
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    file.write_text(f"# users\nada:{hashed}\n", encoding="utf-8")
    options = {"auth_strategy": "http_basic", "http_basic_auth_user_file": file, "port": 0}
    with api_process(configured(actionplan, **options)) as api:
        assert api("/v2/plans").status == 401
        assert api("/v2/plans", headers=basic("ada", "wrong")).status == 401
        assert api("/v2/plans", headers=basic("eve", "right")).status == 401
        assert api("/v2/plans", headers=basic("ada", "x" * 100)).status == 401
        assert api("/v1/action_plans").status == 401
        ada = basic("ada", "right")
        made = api("/v2/plans", DOCUMENT, headers=ada).json
        why = json.dumps({"why": "by hand"}).encode()
        path = f"/v2/plans/{made['uuid']}/actions/one/skip"
        assert api(path, why, headers=ada).status == 200
        shown = api(f"/v2/plans/{made['uuid']}", headers=ada).json
    assert shown["actions"][0]["status_message"] == "skipped by ada: by hand"


def test_a_policy_file_takes_roles_away(actionplan: CommandLine) -> None:
    policy = actionplan.folder / "policy.yaml"
    policy.write_text('"plan:create": "role:admin"\n', encoding="utf-8")
    configured(actionplan, port=0)
    with actionplan.configuration.open("a") as file:
        file.write(f"[oslo_policy]\npolicy_file = {policy}\n")
    with api_process(actionplan) as api:
        assert api("/v2/plans").status == 200
        answer = api("/v2/plans", DOCUMENT)
    assert (answer.status, answer.json["title"]) == (403, "Forbidden")
    assert "plan:create" in answer.json["detail"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"host": "0.0.0.0"}, "accepted only on a loopback address"),  # noqa: S104
        ({"auth_strategy": "http_basic", "http_basic_auth_user_file": "/gone"}, "/gone"),
        ({"tls_certificate": "/gone"}, "set both, or none"),
        ({"host": "192.0.2.1", "auth_strategy": "http_basic"}, "htpasswd"),
        ({"prt": 1}, "did you mean 'port'?"),
    ],
)
def test_a_wrong_configuration_is_refused_in_a_sentence(
    actionplan: CommandLine, options: dict[str, object], text: str
) -> None:
    assert text in refused(configured(actionplan, **options))


def test_a_port_in_use_is_named(actionplan: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} cannot be used" in refused(configured(actionplan, port=port))


def test_pages_of_other_sites_change_nothing(actionplan: CommandLine) -> None:
    with api_process(configured(actionplan, port=0)) as api:
        evil = {"Content-Type": "application/json", "Origin": "http://evil.example"}
        assert api("/v2/plans", DOCUMENT, headers=evil).status == 403
        rebound = {"Content-Type": "application/json", "Host": "evil.example"}
        assert api("/v2/plans", headers=rebound).status == 403
        assert api("/v2/plans").json["total"] == 0


def test_too_many_requests_are_told_when_to_come_back(actionplan: CommandLine) -> None:
    with api_process(configured(actionplan, port=0, requests_per_second=0.01)) as api:
        answers = [api("/v2/plans") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 100


def test_a_large_body_is_refused(actionplan: CommandLine) -> None:
    with api_process(configured(actionplan, port=0)) as api:
        place = urlsplit(api.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        connection.putrequest("POST", "/v2/plans")
        connection.putheader("Content-Length", str(10**9))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        chunked = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        pieces = (b"x" * 2**20 for _ in range(64))
        with closing(chunked), pytest.raises(ConnectionError):
            chunked.request("POST", "/v2/plans", body=pieces, encode_chunked=True)
        assert api("/v2/plans").status == 200


def test_slow_clients_hold_nobody_up(actionplan: CommandLine) -> None:
    with api_process(configured(actionplan, port=0)) as api:
        place = urlsplit(api.url)
        slow = [socket.create_connection((place.hostname, place.port)) for _ in range(200)]
        try:
            for one in slow:
                one.sendall(b"POST /v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
            assert api("/v2/plans").status == 200
        finally:
            for one in slow:
                one.close()


def test_two_processes_share_a_record(actionplan: CommandLine) -> None:
    configured(actionplan, port=0)
    with api_process(actionplan) as one, api_process(actionplan) as other:
        made = [
            threading.Thread(target=api, args=("/v2/plans", DOCUMENT))
            for api in (one, other)
            for _ in range(10)
        ]
        for thread in made:
            thread.start()
        for thread in made:
            thread.join()
        assert one("/v2/plans").json["total"] == other("/v2/plans").json["total"] == 20


@pytest.mark.needs("openssl")
def test_with_a_certificate_it_speaks_https(actionplan: CommandLine) -> None:
    certificate, key = actionplan.folder / "api.pem", actionplan.folder / "api.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-keyout", str(key), "-out", str(certificate), *subject),
        ],
        check=True,
        capture_output=True,
    )
    options = {"port": 0, "tls_certificate": certificate, "tls_key": key}
    with api_process(configured(actionplan, **options)) as api:
        place = urlsplit(api.url)
        trusted = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, context=trusted, timeout=60
        )
        connection.request("GET", "/v2/plans")
        assert (place.scheme, connection.getresponse().status) == ("https", 200)
        connection.close()


def test_the_applier_service_answers_as_well(actionplan: CommandLine) -> None:
    program = PROGRAM.with_name("actionplan-applier")
    with api_process(configured(actionplan, port=0), program, "--with-api") as api:
        made = api("/v2/plans", DOCUMENT).json
        assert api(f"/v2/plans/{made['uuid']}/start", b"{}").status == 200
        path = f"/v2/plans/{made['uuid']}"
        wait_until(lambda: api(path).json["state"] == "SUCCEEDED")
        api.process.send_signal(signal.SIGTERM)
        assert api.process.wait(PATIENCE_S) == 0
