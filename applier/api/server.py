# SPDX-License-Identifier: Apache-2.0
"""The embedded HTTP server: cheroot, with limits on the size and the duration of requests."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cheroot import errors, wsgi
from cheroot.server import HTTPConnection
from cheroot.ssl.builtin import BuiltinSSLAdapter
from oslo_config import cfg

from applier.api.access import MOST_BYTES
from applier.api.v2.events import ENDING
from applier.errors import ConfigurationError

#: How many requests are answered at once; a thread that waits costs next to nothing.
THREADS = 256
#: The maximum seconds between two pieces of a request, for a whole request to arrive, and for
#: running requests when the server ends.
PIECE_S, ARRIVAL_S, GRACE_S = 10, 30.0, 10
MOST_HEADER_BYTES = 64 * 1024
QUEUE = 512


class Arrivals(threading.Thread):
    """Cuts off requests that take more than ARRIVAL_S to arrive, so that none blocks a thread."""

    def __init__(self) -> None:
        super().__init__(name="arrivals", daemon=True)
        #: By thread id: the deadline of the request that the thread reads, and its connection.
        self._reading: dict[int, tuple[float, Any]] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """Once a second, until :meth:`end`, stop the reading of requests that are late."""
        while not self._ended.wait(1.0):
            now = time.monotonic()
            late = [(t, c) for t, (until, c) in list(self._reading.items()) if now > until]
            for thread, connection in late:
                self._reading.pop(thread, (0.0, None))
                _stop_reading(connection.socket)

    def begin(self, connection: Any) -> None:
        """Set the deadline of the request that the calling thread begins to read."""
        self._reading[threading.get_ident()] = (time.monotonic() + ARRIVAL_S, connection)

    def arrived(self) -> None:
        """Remove the deadline of the calling thread: it has read its request, or given it up."""
        self._reading.pop(threading.get_ident(), None)

    def end(self) -> None:
        """Make the thread end within a second, without waiting for that."""
        self._ended.set()


def _stop_reading(connected: Any) -> None:
    """Shut down the read side of a socket: reads return end of file, writes still work."""
    try:
        socket.socket.shutdown(connected, socket.SHUT_RD)
    except OSError:
        return  # the client has closed it meanwhile


class Server:
    """Serves a WSGI application over HTTP, or HTTPS where a certificate is configured."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        application: Callable[..., Any],
        address: tuple[str, int] | None = None,
    ) -> None:
        """Prepare to serve at the configured address, or at ``address`` (host, port) without TLS.

        Nothing listens before :meth:`open`. Raises ConfigurationError for wrong options of TLS.
        """
        self._arrivals, self._ending = Arrivals(), threading.Event()
        self._server = wsgi.Server(
            address or (conf.api.host, conf.api.port),
            _whole(application, self._arrivals, self._ending),
            numthreads=THREADS,
            server_name="actionplan-api",
            request_queue_size=QUEUE,
            timeout=PIECE_S,
            shutdown_timeout=GRACE_S,
        )
        self._server.max_request_header_size = MOST_HEADER_BYTES
        self._server.max_request_body_size = MOST_BYTES
        self._server.ConnectionClass = _connection_class(self._arrivals)
        self._server.ssl_adapter = None if address else _tls(conf)

    @property
    def url(self) -> str:
        """The address at which the server listens, once it was opened."""
        host, port = self._server.bind_addr[:2]
        shown = f"[{host}]" if ":" in str(host) else host
        return f"{'https' if self._server.ssl_adapter else 'http'}://{shown}:{port}"

    def open(self) -> None:
        """Listen; raises ConfigurationError if the address cannot be used."""
        try:
            self._server.prepare()
        except OSError as reason:
            host, port = self._server.bind_addr[:2]
            # cheroot lists what it tried in one text.
            why = reason.strerror or str(reason).rpartition("] ")[2].rstrip(")")
            text = f"[api] host {host}, port {port} cannot be used: {why}"
            raise ConfigurationError(text) from reason
        self._arrivals.start()

    def serve(self) -> None:
        """Block and answer requests until another thread calls :meth:`end`."""
        try:
            self._server.serve()
        finally:
            self._arrivals.end()

    def end(self) -> None:
        """Accept no new request, and return when those that have arrived are answered.

        Requests that wait for events are answered at once. A connection that is still open after
        GRACE_S seconds is closed.
        """
        self._ending.set()
        self._server.stop()


def _connection_class(arrivals: Arrivals) -> type[HTTPConnection]:
    class Connection(HTTPConnection):
        """A connection whose requests have a deadline: see :class:`Arrivals`."""

        def communicate(self) -> Any:
            arrivals.begin(self)
            try:
                return super().communicate()  # type: ignore[no-untyped-call]
            finally:
                arrivals.arrived()

    return Connection


def _whole(
    application: Callable[..., Any], arrivals: Arrivals, ending: threading.Event
) -> Callable[..., Any]:
    """Return an application that reads the whole body of a request, and then calls the given one.

    It responds with 413 to a body that is too large, and with 408 to one that is incomplete.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        expected = environ.get("CONTENT_LENGTH")
        try:
            body = environ["wsgi.input"].read()
        except errors.MaxSizeExceeded:
            return _refused(start_response, "413 Content Too Large")
        finally:
            arrivals.arrived()
        if expected and len(body) < int(expected):
            return _refused(start_response, "408 Request Timeout")
        whole = {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), ENDING: ending}
        return application({**environ, **whole}, start_response)

    return answer


def _refused(start_response: Callable[..., Any], status: str) -> list[bytes]:
    start_response(status, [("Content-Length", "0"), ("Connection", "close")])
    return []


def _tls(conf: cfg.ConfigOpts) -> BuiltinSSLAdapter | None:
    certificate, key = conf.api.tls_certificate, conf.api.tls_key
    if not certificate and not key:
        return None
    if not (certificate and key):
        raise ConfigurationError("[api] tls_certificate and tls_key: set both, or none")
    for name in (certificate, key):
        if not Path(name).is_file():
            raise ConfigurationError(f"[api] {name} cannot be read: no such file")
    try:
        return BuiltinSSLAdapter(certificate, key)
    except OSError as reason:
        raise ConfigurationError(f"[api] tls_certificate {certificate}: {reason}") from reason
