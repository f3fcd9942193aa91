# SPDX-License-Identifier: Apache-2.0
"""The WSGI application: routes and middleware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import falcon

from applier.api import authentication, errors, monitoring, pages, v1, v2
from applier.api.access import Access
from applier.api.authentication import Strategy
from applier.api.parts import Parts
from applier.api.policies import Policy
from applier.api.rates import Rates
from applier.api.v1.versions import Versions
from applier.assembly import Assembly


def make(
    assembly: Assembly,
    strategy: Strategy | None = None,
    of_runs: Callable[[], bytes] | None = None,
) -> Callable[..., Any]:
    """Return the WSGI application of a configuration; raises ConfigurationError.

    ``strategy`` replaces the configured authentication strategy. ``of_runs`` returns the metrics of
    the process that runs plans, in the text format of Prometheus.
    """
    conf = assembly.conf
    parts = Parts(assembly=assembly, policy=Policy(conf), of_runs=of_runs)
    routes: Mapping[str, Any] = {
        **v1.routes(parts),
        **v2.routes(parts),
        **monitoring.routes(parts),
        **pages.routes(parts),
    }
    public = {path for path, resource in routes.items() if getattr(resource, "PUBLIC", False)}
    chosen = strategy or authentication.strategy(conf)
    rates = Rates(conf.api.requests_per_second)
    application: falcon.App[Any, Any] = falcon.App(
        middleware=[Heads(), Access(chosen, parts.policy, rates, public), Versions()]
    )
    application.req_options.strip_url_path_trailing_slash = True
    errors.add_to(application)
    for path, resource in routes.items():
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
