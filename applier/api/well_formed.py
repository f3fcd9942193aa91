# SPDX-License-Identifier: Apache-2.0
"""Refuses requests whose headers are no addresses where addresses belong."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import falcon


def require_well_formed(request: falcon.Request) -> None:
    """Raise falcon.HTTPBadRequest for a header Host or Origin that is none."""
    _require("Host", lambda: request.port, "HOST or HOST:PORT", request.get_header("Host"))
    origin = request.get_header("Origin")
    _require("Origin", lambda: urlsplit(origin), "SCHEME://HOST", origin)


def _require(name: str, read: Callable[[], object], accepted: str, given: str | None) -> None:
    try:
        read()
    except ValueError:
        raise falcon.HTTPBadRequest(
            title="Invalid header", description=f"{name} is {given!r}; accepted: {accepted}"
        ) from None
