# SPDX-License-Identifier: Apache-2.0
"""Middleware that refuses requests whose headers are no addresses where addresses belong."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import falcon


class WellFormed:
    """Middleware that raises falcon.HTTPBadRequest, before anybody reads these headers."""

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:  # noqa: ARG002
        """Check the headers Host and Origin."""
        _require("Host", lambda: request.port, "HOST or HOST:PORT", request.get_header("Host"))
        origin = request.get_header("Origin")
        _require("Origin", lambda: urlsplit(origin), "SCHEME://HOST", origin)


def _require(name: str, read: Any, accepted: str, given: str | None) -> None:
    try:
        read()
    except ValueError:
        raise falcon.HTTPBadRequest(
            title="Invalid header", description=f"{name} is {given!r}; accepted: {accepted}"
        ) from None
