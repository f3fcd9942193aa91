# SPDX-License-Identifier: Apache-2.0
"""Requests that are none are refused with a sentence, not with an internal error."""

from __future__ import annotations

import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest
from api_client import JSON, api_process, client_of, configured
from command_line import PATIENCE_S, CommandLine
from falcon.testing import TestClient
from test_api_v2 import is_problem, post, stored

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


@pytest.fixture
def api(actionplan: CommandLine) -> TestClient:
    """Return a client of the API."""
    return client_of(configured(actionplan))


def test_wrong_lengths_and_chunks_are_refused(actionplan: CommandLine) -> None:
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


@pytest.mark.parametrize("path", ["/v2/plans", "/v1/action_plans", "/plans"])
def test_a_host_or_an_origin_that_is_none_is_refused(api: TestClient, path: str) -> None:
    for name, value in (("Host", "127.0.0.1:abc"), ("Origin", "http://[::1")):
        answer = api.simulate_get(path, headers={name: value})
        assert answer.status_code == 400
        assert name in answer.text


def test_a_start_in_a_window_needs_windows(api: TestClient) -> None:
    answer = post(api, f"/v2/plans/{stored(api)}/start", {"in_window": True})
    assert is_problem(answer, 400, "in_window")


def test_facts_of_a_cloud_that_is_not_configured_are_refused(api: TestClient) -> None:
    document = {"kind": "solution", "actions": []}
    for cloud in ("openstack", "nope"):
        answer = api.simulate_post(
            "/v2/plans", body=json.dumps(document), headers=JSON, params={"facts_from": cloud}
        )
        assert answer.status_code in (400, 422), answer.text
