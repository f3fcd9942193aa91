# SPDX-License-Identifier: Apache-2.0
"""Check that a URL answers with the expected status."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner import ranges
from planner.states import Outcome

_STATUS = {"type": "integer", "minimum": 100, "maximum": 599}
#: Seconds that one request may take by default.
PATIENCE_S = 10.0


class HttpCheck(ActionPlugin):
    """Succeed if a GET of ``url`` is answered with ``status`` (200) in ``seconds`` (10).

    Redirects are followed. The action's ``retries`` say how often a failed check is repeated.
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

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``check http://192.0.2.10:8080/health``."""
        return one_line(f"check {text(parameters, 'url') or 'a URL'}")

    def execute(self, stop: StopSignal) -> Outcome:
        """Send one request; it changes nothing."""
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
        patience = self.parameters.get("seconds", PATIENCE_S)
        try:
            with urllib.request.urlopen(url, timeout=patience) as answer:  # noqa: S310 - HTTP only
                return int(answer.status)
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code
        except urllib.error.URLError as reason:
            raise ActionFailed(f"{url} does not answer: {reason.reason}") from reason
        except (OSError, ValueError) as reason:
            raise ActionFailed(f"{url} does not answer: {reason}") from reason

    def verify(self) -> Verified:
        """Return NOT_DONE: checking again does no harm."""
        return Verified.NOT_DONE
