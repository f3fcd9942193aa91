# SPDX-License-Identifier: Apache-2.0
"""The authenticated user of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The authenticated user who sends a request, or the anonymous one, and the roles of that user.

    ``address`` is the IP address of the peer of the connection, which may be a proxy.
    ``request_id`` identifies the request in logs, in the history and in the response. ``project``
    is None unless Keystone authenticates.
    """

    user: str
    roles: frozenset[str]
    address: str
    request_id: str
    project: str | None = None
