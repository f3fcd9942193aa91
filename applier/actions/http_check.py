# SPDX-License-Identifier: Apache-2.0
"""Check that a URL answers with the expected status."""

from __future__ import annotations

import fnmatch
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar
from urllib.parse import urlsplit

from oslo_config import cfg

from applier.actions import schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner.plan.states import Outcome
from planner.schemas import ranges

_STATUS = {"type": "integer", "minimum": 100, "maximum": 599}
#: Seconds that one request may take by default.
PATIENCE_S = 10.0


class HttpCheck(ActionPlugin):
    """Succeed if a GET of ``url`` is answered with ``status`` (200) in ``seconds`` (10).

    A redirect is an answer, and not followed. The action's ``retries`` say how often a failed check
    is repeated.
    """

    TYPE = "http_check"
    MAIN = "url"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {
            "url": {
                **ranges.ARGUMENT,
                "title": "an HTTP URL, without a password",
                "pattern": "^https?://[^/@\\s]+([/?]\\S*)?$",
            }
        },
        optional={
            "status": {
                "anyOf": [_STATUS, {"type": "array", "items": _STATUS, "minItems": 1}],
                "description": "the expected status, or a list of them; 200 by default",
            },
            "seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 3600,
                "description": "how long one answer may take",
            },
            **schemas.ANY_RESOURCE,
        },
        examples=[
            {"url": "http://192.0.2.10:8080/health"},
            {"url": "https://jobs.example.com/", "status": [200, 204], "seconds": 5},
        ],
    )

    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.ListOpt(
            "allowed",
            sample_default="192.0.2.0/24, *.example.org",
            help="The only hosts and networks that may be asked: names, with * for any part of "
            "one, and networks, which hold for each address of a name. Default: all.",
        ),
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        return one_line(f"check {text(parameters, 'url') or 'a URL'}")

    def execute(self, stop: StopSignal) -> Outcome:
        url = self.parameters["url"]
        if stop.is_set():
            raise ActionFailed("stopped before the request was sent")
        status = self._status(url)
        right = self.parameters.get("status", 200)
        if status not in (right if isinstance(right, list) else [right]):
            raise ActionFailed(f"{url} answered {status}; expected {right}")
        self.context.output(f"{url} answered {status}\n")
        return Outcome.OK

    def _status(self, url: str) -> int:
        patience_s = self.parameters.get("seconds", PATIENCE_S)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            is_https = parts.scheme == "https"
            with closing(http.client.HTTPConnection(host, port, timeout=patience_s)) as connection:
                port = port or (443 if is_https else 80)
                connection.sock = self._connected(host, port, patience_s)
                if is_https:
                    context = ssl.create_default_context()
                    connection.sock = context.wrap_socket(connection.sock, server_hostname=host)
                target = f"{parts.path or '/'}{'?' * bool(parts.query)}{parts.query}"
                connection.request("GET", target)
                return connection.getresponse().status
        except (OSError, ValueError, http.client.HTTPException) as reason:
            raise ActionFailed(f"{url} does not answer: {reason}") from reason

    def _connected(self, host: str, port: int, patience_s: float) -> socket.socket:
        """Connect to the first address of a host that may be asked and accepts it.

        The name is looked up once: what is asked is what was allowed. Raises ActionFailed, OSError.
        """
        allowed, last = self.context.options.get("allowed"), None
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if allowed is None or any(_is_in(host, str(address[0]), one) for one in allowed):
                try:
                    return socket.create_connection((str(address[0]), port), patience_s)
                except OSError as reason:
                    last = reason
        raise last or ActionFailed(f"[watcher_actions.http_check] allowed does not have {host}")

    def verify(self) -> Verified:
        """Return NOT_DONE: checking again does no harm."""
        return Verified.NOT_DONE


def _is_in(host: str, address: str, allowed: str) -> bool:
    """Return whether a host or its address is what a name or network allows.

    >>> [_is_in("a.example.org", "192.0.2.7", one) for one in ("*.example.org", "192.0.2.0/24")]
    [True, True]
    >>> _is_in("a.example.org", "127.0.0.1", "192.0.2.0/24")
    False
    """
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(allowed)
    except ValueError:
        return fnmatch.fnmatchcase(host, allowed.lower())
