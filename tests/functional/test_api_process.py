# SPDX-License-Identifier: Apache-2.0
"""``actionplan-api`` as a process: what clients may cost, what is before it, and how it ends."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from api_client import HOST, JSON, api_process, basic, configured, users_of
from command_line import PATIENCE_S, wait_until
from programs import find
from reserved_port import ReservedPort

ETC = Path(__file__).parents[2] / "etc"
DOCUMENT = json.dumps({"actions": [{"name": "one", "action_type": "nop"}]}).encode()


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


HEAD = b"POST /v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


#: Requests that are malformed below the application, and the status of the answer.
MALFORMED = [
    (400, HEAD + b"Content-Length: -5\r\n\r\n{}"),
    (400, HEAD + b"Content-Length: +2\r\n\r\n{}"),
    (400, HEAD + b"Content-Length: two\r\n\r\n{}"),
    (400, CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    (400, CHUNKED + b"2\r\n{}XX0\r\n\r\n"),
    (400, CHUNKED + b"5\r\n{}\r\n0\r\n\r\n"),
    (400, CHUNKED + b"-2\r\n{}\r\n"),
    (400, CHUNKED + b"2\r\n{}\r\n0\r\nTRACE / HTTP/1.1\r\n\r\n"),
    (408, HEAD + b"Content-Length: 5\r\n\r\n{}"),
    (413, CHUNKED + b"ffffffffff\r\n{}"),
]


def test_wrong_lengths_and_chunks_are_refused_and_nothing_after_them_is_a_request(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        place = urlsplit(api.url)
        for status, request in MALFORMED:
            with socket.create_connection((place.hostname, place.port), PATIENCE_S) as connection:
                connection.sendall(request)
                if status != 413:  # the others would be waited for
                    connection.shutdown(socket.SHUT_WR)
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                assert (answer.status, answer.read() != b"") == (status, True), request
                assert connection.recv(1) == b"", request
        assert api("/v2/plans").json == {"items": [], "total": 0}


def test_watch_serves_a_page_to_those_who_know_its_address(actionplan):
    file = actionplan.document("night.yaml", {"action_type": "nop"}, name="night")
    configured(actionplan).good("create", file)
    with actionplan.start("watch", "last", "--web") as served:
        address = served.stdout.readline().removeprefix("Open ").strip()
        assert "Ctrl-C ends the page, not the plan." in served.stdout.readline()
        known = rf"http://127\.0\.0\.1:\d+/plans/{actionplan.plan().uuid}\?token=[-\w]{{32}}"
        assert re.fullmatch(known, address)
        assert "night" in requests.get(address, timeout=PATIENCE_S).text
        refused = requests.get(address.partition("?")[0], timeout=PATIENCE_S)
        assert refused.status_code == 403
        served.send_signal(signal.SIGINT)
        _, err = served.communicate(timeout=PATIENCE_S)
        assert (served.returncode, err) == (0, "")
