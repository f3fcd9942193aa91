# SPDX-License-Identifier: Apache-2.0
"""The WSGI application: endpoints and middleware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon

from applier.api import authentication, errors, monitoring, pages, v1, v2
from applier.api.access import Access, Policy, Rates, Strategy
from applier.api.endpoints import Parts, resources_of
from applier.api.feed import EventFeed, LivePages
from applier.api.v1.versions import Versions
from applier.assembly import Assembly

#: The endpoints of every configuration, besides those for monitoring.
ENDPOINTS = (*v1.ENDPOINTS, *v2.ENDPOINTS, *pages.ENDPOINTS)


def make(
    assembly: Assembly,
    strategy: Strategy | None = None,
    of_runs: Callable[[], bytes] | None = None,
) -> Callable[..., Any]:
    """Return the WSGI application of a configuration; raises ConfigurationError.

    ``strategy`` replaces the configured authentication strategy. ``of_runs`` returns the metrics of
    the process that runs plans, in the text format of Prometheus.
    """
    conf, feed = assembly.conf, EventFeed(lambda: assembly.store, assembly.conf.events.keep_s)
    policy, live = Policy(conf), LivePages(assembly, feed)
    parts = Parts(assembly=assembly, policy=policy, feed=feed, live=live)
    endpoints = (*ENDPOINTS, *monitoring.endpoints(assembly, of_runs))
    public = {endpoint.path for endpoint in endpoints if endpoint.rule is None}
    chosen = strategy or authentication.strategy(conf)
    rates = Rates(conf.api.requests_per_second)
    application: falcon.App[Any, Any] = falcon.App(
        middleware=[Heads(), Access(chosen, policy, rates, public), Versions()]
    )
    application.req_options.strip_url_path_trailing_slash = True
    errors.add_to(application)
    for path, resource in resources_of(parts, endpoints).items():
        application.add_route(path, resource)
    return application if strategy else authentication.guarded(conf, application)


class Heads:
    """Middleware that answers HEAD as GET, without the body; whoever comes after it sees GET."""

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
