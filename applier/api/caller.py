# SPDX-License-Identifier: Apache-2.0
"""Who sends a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The user who sends a request, as far as it is proven.

    ``address`` is that of the other end of the connection. ``request_id`` identifies the request in
    logs, in the record and in the answer.
    """

    user: str
    roles: frozenset[str]
    address: str
    request_id: str
    project: str | None = None
