"""Ask a URL whether it answers as it should."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner.states import Outcome

_STATUS = {"type": "integer", "minimum": 100, "maximum": 599}
#: Seconds that one request may take where nothing is said.
PATIENCE_S = 10.0


class HttpCheck(ActionPlugin):
    """Succeed if a GET of ``url`` is answered with ``status`` (200) in ``seconds`` (10).

    Redirects are followed. How often it is tried again is the action's ``retries``.
    """

    TYPE = "http_check"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {
            "url": {
                "type": "string",
                "title": "an HTTP URL, without a password",
                "pattern": "^https?://[^/@\\s]+([/?]\\S*)?$",
            }
        },
        optional={
            "status": {
                "anyOf": [_STATUS, {"type": "array", "items": _STATUS, "minItems": 1}],
                "description": "the status that is right, or several; 200 where left out",
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
        """Say ``check http://192.0.2.10:8080/health``."""
        return one_line(f"check {text(parameters, 'url') or 'a URL'}")

    def execute(self, stop: StopSignal) -> Outcome:
        """Ask once; changes nothing."""
        url = self.parameters["url"]
        if stop.is_set():
            raise ActionFailed("stopped before it asked")
        status = self._status(url)
        right = self.parameters.get("status", 200)
        if status not in (right if isinstance(right, list) else [right]):
            raise ActionFailed(f"{url} answered {status}, and {right} is right")
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
        """Nothing is lost by asking again."""
        return Verified.NOT_DONE
