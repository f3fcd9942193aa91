# SPDX-License-Identifier: Apache-2.0
"""Middleware: who asks, whether they may, how often, and what every answer carries."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import falcon
from oslo_context import context

from applier.api.authentication import Strategy
from applier.api.policies import Policy
from applier.api.rates import Rates

#: The most bytes that a request may have.
MOST_BYTES = 16 * 1024 * 1024
#: Methods that change nothing.
SAFE = ("GET", "HEAD", "OPTIONS")
#: What every answer carries: browsers guess no type, run nothing, and frame nothing.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Access:
    """Lets a request pass that a known caller may make.

    A resource has the attribute ``RULES``: the rule of the policy for each method. A resource with
    ``PUBLIC`` is open to everybody.
    """

    def __init__(self, strategy: Strategy, policy: Policy, rates: Rates, public: set[str]) -> None:
        self._strategy, self._policy, self._rates = strategy, policy, rates
        self._public = public

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Find out who asks; refuse what is too large, too often, or from another site."""
        request_id = request.context.request_id = f"req-{uuid4()}"
        response.set_header("x-openstack-request-id", request_id)
        # What is logged while this request is answered carries its id.
        context.RequestContext(request_id=request_id, overwrite=True)
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
        """Refuse what the caller may not do."""
        if resource is None or request.path in self._public or request.method == "OPTIONS":
            return
        # A method that the resource does not have is answered with 405.
        if hasattr(resource, f"on_{request.method.lower()}"):
            self._policy.require(request.context.caller, resource.RULES[request.method])

    def process_response(
        self,
        request: falcon.Request,  # noqa: ARG002
        response: falcon.Response,
        resource: Any,  # noqa: ARG002
        succeeded: bool,  # noqa: ARG002
    ) -> None:
        """Add what every answer carries, and forget the request in what this thread logs."""
        # The library keeps it in a variable of the thread, and offers nothing else to clear it.
        vars(context._request_store).pop("context", None)
        for name, value in HEADERS.items():
            if response.get_header(name) is None:
                response.set_header(name, value)


def _refuse_other_sites(request: falcon.Request) -> None:
    """Refuse a change that a browser sends for a page of another site."""
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
