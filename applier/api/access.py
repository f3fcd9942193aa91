# SPDX-License-Identifier: Apache-2.0
"""Middleware that authenticates, authorizes and rate-limits requests, and sets common headers."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import falcon
from oslo_context import context

from applier.api.authentication import Strategy
from applier.api.policies import Policy
from applier.api.rates import Rates
from applier.wording import one_line

LOG = logging.getLogger(__name__)

#: The maximum size of the body of a request, in bytes.
MOST_BYTES = 16 * 1024 * 1024
#: The WSGI variable with the body of a request that was not read yet, which has a method
#: ``read_into``.
BODY = "actionplan.body"
#: How many characters of a path are logged.
_LONGEST_PATH = 200
#: Methods that change nothing.
SAFE = ("GET", "HEAD", "OPTIONS")
#: Headers of each response, unless its resource sets them: browsers guess no media type, run no
#: scripts, show the response in no frame, and store no copy.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Access:
    """Middleware that rejects requests that are not authenticated, not allowed, or too frequent.

    ``public`` are the paths that need no authentication. Every other resource has the attribute
    ``RULES``: the name of the policy rule for each HTTP method.
    """

    def __init__(self, strategy: Strategy, policy: Policy, rates: Rates, public: set[str]) -> None:
        self._strategy, self._policy, self._rates = strategy, policy, rates
        self._public = public

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Authenticate a request; store its caller and a new request id in ``request.context``.

        Raises falcon.HTTPError for a request that a page of another site sends (403), that is too
        large (413), that is not authenticated, or that exceeds the rate of its caller (429). A
        request to a public path gets only the request id.
        """
        request_id = request.context.request_id = f"req-{uuid4()}"
        request.context.began = time.monotonic()
        response.set_header("x-openstack-request-id", request_id)
        # From here on, each log record of this thread has the request id.
        context.RequestContext(request_id=request_id, overwrite=True)
        _refuse_malformed(request)
        if request.path in self._public:
            return
        _refuse_other_sites(request)
        if (request.content_length or 0) > MOST_BYTES:
            text = f"a request may have {MOST_BYTES} bytes"
            raise falcon.HTTPContentTooLarge(title="Too large", description=text)
        caller = request.context.caller = self._strategy(request, request_id)
        wait_s = self._rates.wait_s(f"{caller.user} {caller.address}")
        if wait_s:
            raise falcon.HTTPTooManyRequests(
                title="Too many requests",
                description="[api] requests_per_second bounds how often one caller may ask",
                retry_after=math.ceil(wait_s),
            )

    def process_resource(
        self,
        request: falcon.Request,
        response: falcon.Response,  # noqa: ARG002
        resource: Any,
        parameters: Any,  # noqa: ARG002
    ) -> None:
        """Raise falcon.HTTPForbidden if the policy does not allow the caller this method.

        If it does, the body of the request is read, in a server that has not read it before.
        """
        if resource is None or request.path in self._public or request.method == "OPTIONS":
            return
        # If the resource does not have the method, falcon responds with 405.
        if hasattr(resource, f"on_{request.method.lower()}"):
            self._policy.require(request.context.caller, resource.RULES[request.method])
            if BODY in request.env:
                request.env[BODY].read_into(request.env)

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,
        resource: Any,  # noqa: ARG002
        succeeded: bool,  # noqa: ARG002
    ) -> None:
        """Log the request, without its query, and set the HEADERS that the response lacks.

        Later logs have no request id.
        """
        if request.path not in self._public:
            caller = getattr(request.context, "caller", None)
            now = time.monotonic()
            LOG.info(
                '%s from %s: "%s %s" %s, %.3f s',
                one_line(caller.user) if caller else "nobody",
                request.remote_addr,
                request.method,
                one_line(request.path)[:_LONGEST_PATH],
                response.status_code,
                now - getattr(request.context, "began", now),
            )
        # oslo.context keeps it in a thread-local variable, and has no function that clears it.
        vars(context._request_store).pop("context", None)
        for name, value in HEADERS.items():
            if response.get_header(name) is None:
                response.set_header(name, value)


def _refuse_other_sites(request: falcon.Request) -> None:
    """Raise falcon.HTTPForbidden if a page of another site sends a changing request (CSRF)."""
    if request.method in SAFE:
        return
    origin = request.get_header("Origin")
    if request.get_header("Sec-Fetch-Site") in ("cross-site", "same-site"):
        raise falcon.HTTPForbidden(
            title="Other site", description="requests from pages of other sites are not accepted"
        )
    if origin is not None and urlsplit(origin).netloc != request.netloc:
        raise falcon.HTTPForbidden(
            title="Other site", description=f"requests from pages of {origin!r} are not accepted"
        )


def _refuse_malformed(request: falcon.Request) -> None:
    """Raise falcon.HTTPBadRequest for a header Host or Origin that is none."""
    _require_address("Host", lambda: request.port, "HOST or HOST:PORT", request.get_header("Host"))
    origin = request.get_header("Origin")
    _require_address("Origin", lambda: urlsplit(origin), "SCHEME://HOST", origin)


def _require_address(
    name: str, read: Callable[[], object], accepted: str, given: str | None
) -> None:
    try:
        read()
    except ValueError:
        raise falcon.HTTPBadRequest(
            title="Invalid header", description=f"{name} is {given!r}; accepted: {accepted}"
        ) from None
