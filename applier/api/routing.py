# SPDX-License-Identifier: Apache-2.0
"""The WSGI application: endpoints and middleware."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, cast

import falcon
from prometheus_client import CollectorRegistry

from applier.api import authentication, errors, monitoring, pages, v1, v2
from applier.api.access import Access, Policy, Rates, Strategy
from applier.api.endpoints import Parts, resources_of
from applier.api.feed import EventFeed, LivePages
from applier.api.v1.versions import Versions
from applier.assembly import Assembly
from applier.monitoring import metrics_server

#: Answers with fewer bytes are not compressed.
LEAST_BYTES = 1000
#: The end of the tag of a compressed answer: what is not equal byte by byte has another strong tag.
CODED = '-gzip"'
#: The level of compression: higher ones take more time than they save.
_LEVEL = 3
#: The ends of the media types that are compressed.
_COMPRESSED = ("json", "xml", "html", "css", "javascript", "plain")
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
    registry = CollectorRegistry()
    metrics_server.describe_process(registry)
    endpoints = (*ENDPOINTS, *monitoring.endpoints(assembly, of_runs, registry))
    public = {endpoint.path for endpoint in endpoints if endpoint.rule is None}
    chosen = strategy or authentication.strategy(conf)
    rates = Rates(conf.api.requests_per_second)
    application: falcon.App[Any, Any] = falcon.App(
        middleware=[
            *(monitoring.Requests(registry), Gzip()),
            *(Access(chosen, rates, public), Versions()),
        ]
    )
    application.req_options.strip_url_path_trailing_slash = True
    errors.add_to(application)
    for path, resource in resources_of(parts, endpoints).items():
        application.add_route(path, resource)
    return application if strategy else authentication.guarded(conf, application)


class Gzip:
    """Middleware that compresses answers of some size for clients that accept it.

    A compressed answer has an ETag of its own: that of the content, with the end CODED.
    """

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:  # noqa: ARG002
        """Remove CODED from the ETags that a client sends back, so that others compare the rest."""
        for name in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
            given = request.env.get(name, "")
            if CODED in given:
                request.context.knows_coded = True
                request.env[name] = given.replace(CODED, '"')

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        """Compress the body, also one that is sent in pieces, but no stream of events."""
        kind = (response.content_type or "").partition(";")[0]
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            response.append_header("Vary", "Accept-Encoding")
            if getattr(request.context, "knows_coded", False):
                _mark(response)
            return
        if kind.startswith("text/event") or not kind.endswith(_COMPRESSED):
            return
        response.append_header("Vary", "Accept-Encoding")
        if not _accepts_gzip(request.get_header("Accept-Encoding") or ""):
            return
        if response.stream is not None:
            response.stream = _compressed(cast("Iterable[bytes]", response.stream))
        else:
            body = response.render_body() or b""
            if len(body) < LEAST_BYTES:
                return
            response.text, response.data = None, gzip.compress(body, _LEVEL, mtime=0)
        response.set_header("Content-Encoding", "gzip")
        _mark(response)


def _mark(response: falcon.Response) -> None:
    """Make the tag of an answer, if it is a strong one, that of the compressed answer."""
    tag = response.get_header("ETag") or ""
    if tag.startswith('"'):
        response.set_header("ETag", tag[:-1] + CODED)


def _accepts_gzip(header: str) -> bool:
    """Return whether a header Accept-Encoding names gzip, and does not exclude it.

    >>> [_accepts_gzip(text) for text in ("deflate, GZIP;q=0.5", "gzip; q=0", "br", "")]
    [True, False, False, False]
    """
    named = re.search(r"(?:^|,)\s*gzip\s*(?:;\s*q=([0-9.]+)\s*)?(?:,|$)", header, re.IGNORECASE)
    return named is not None and (named[1] is None or named[1].strip("0.") != "")


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, wbits=16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()
