# SPDX-License-Identifier: Apache-2.0
"""Middleware that answers HEAD as GET, without the body."""

from __future__ import annotations

from typing import Any

import falcon


class Heads:
    """Middleware that must come first: whoever comes later sees GET."""

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:  # noqa: ARG002
        """Treat HEAD as GET."""
        request.context.is_head = request.method == "HEAD"
        if request.context.is_head:
            request.method = "GET"

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,  # noqa: ARG002
        resource: Any,  # noqa: ARG002
        succeeded: bool,  # noqa: ARG002
    ) -> None:
        """Leave the body out, by the method that was asked for."""
        if request.context.is_head:
            request.method = "HEAD"
