# SPDX-License-Identifier: Apache-2.0
"""The embedded HTTP server: cheroot, with limits on the size and the duration of requests."""

from __future__ import annotations

import io
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import falcon
from cheroot import errors, wsgi
from cheroot.server import HTTPConnection
from oslo_config import cfg

from applier.api.access import BODY, MOST_BYTES
from applier.api.feed import ENDING
from applier.errors import ConfigurationError

#: How many requests are answered at once; a thread that waits costs next to nothing.
THREADS = 256
#: The maximum seconds between two pieces of a request, for a whole request to arrive, and for
#: running requests when the server ends.
PIECE_S, ARRIVAL_S, GRACE_S = 10, 30.0, 10
MOST_HEADER_BYTES = 64 * 1024
QUEUE = 512
#: The WSGI variable with the request of cheroot, whose connection is closed if its body is wrong.
_REQUEST = "actionplan.cheroot_request"
#: How much of a body is read at once, in bytes.
_PIECE_BYTES = 64 * 1024


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
    """Serves a WSGI application over HTTP; TLS is the task of a server in front of it."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        application: Callable[..., Any],
        address: tuple[str, int] | None = None,
    ) -> None:
        """Prepare to serve at the configured address, or at ``address`` (host, port).

        Nothing listens before :meth:`open`.
        """
        self._arrivals, self._ending = Arrivals(), threading.Event()
        self._server = wsgi.Server(
            address or (conf.api.host, conf.api.port),
            _deferred(application, self._arrivals, self._ending),
            numthreads=THREADS,
            server_name="actionplan-api",
            request_queue_size=QUEUE,
            timeout=PIECE_S,
            shutdown_timeout=GRACE_S,
        )
        self._server.max_request_header_size = MOST_HEADER_BYTES
        self._server.max_request_body_size = MOST_BYTES
        self._server.ConnectionClass = _connection_class(self._arrivals)
        self._server.gateway = _Gateway

    @property
    def url(self) -> str:
        """The address at which the server listens, once it was opened."""
        host, port = self._server.bind_addr[:2]
        shown = f"[{host}]" if ":" in str(host) else host
        return f"http://{shown}:{port}"

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


class _Gateway(wsgi.Gateway_10):
    def get_environ(self) -> Any:
        return {**super().get_environ(), _REQUEST: self.req}  # type: ignore[no-untyped-call]


class _Body:
    """The body of a request, of which nothing is read before :meth:`read_into` is called.

    So a caller whom nobody knows costs no memory. The request has its deadline until then.
    """

    def __init__(self, environ: dict[str, Any], arrivals: Arrivals) -> None:
        self._arrivals, self._request = arrivals, environ[_REQUEST]
        self._input, self._expected = environ["wsgi.input"], environ.get("CONTENT_LENGTH")
        self._is_left = bool(self._expected) or "HTTP_TRANSFER_ENCODING" in environ
        if not self._is_left:
            arrivals.arrived()

    def read_into(self, environ: dict[str, Any]) -> None:
        """Read the whole body into ``wsgi.input`` of a request, which may be a copy of the first.

        Raises falcon.HTTPError: 413 for one that is too large, 408 for one that is incomplete, 400
        for a wrong length or wrong chunks. Nobody knows then where the next request begins, and the
        connection is closed after the answer.
        """
        pieces = io.BytesIO()
        self._copy(pieces.write)
        length = pieces.tell()
        pieces.seek(0)
        environ |= {"wsgi.input": pieces, "CONTENT_LENGTH": str(length)}

    def discard(self) -> None:
        """Read what was not read, and keep nothing of it; raises as :meth:`read_into`."""
        self._copy(len)

    def _copy(self, keep: Callable[[bytes], Any]) -> None:
        length, is_left, self._is_left = 0, self._is_left, False
        is_last, self._request.close_connection = self._request.close_connection, True
        try:
            if self._expected and not re.fullmatch("[0-9]+", self._expected):
                text = f"Content-Length is {self._expected!r}; accepted: a number of bytes"
                raise falcon.HTTPBadRequest(title="Invalid header", description=text)
            while is_left and (piece := self._input.read(_PIECE_BYTES)):
                length += len(piece)
                keep(piece)
        except (TimeoutError, ConnectionError):
            raise _incomplete() from None
        except (errors.MaxSizeExceeded, OSError):  # which one of a large chunk raises
            text = f"a request may have {MOST_BYTES} bytes"
            raise falcon.HTTPContentTooLarge(title="Too large", description=text) from None
        except ValueError:
            text = "the body does not consist of chunks, as Transfer-Encoding says"
            raise falcon.HTTPBadRequest(title="Invalid body", description=text) from None
        finally:
            self._arrivals.arrived()
        if is_left and self._expected and length < int(self._expected):
            raise _incomplete()
        # cheroot reads no trailers, and takes them for the next request.
        self._request.close_connection = is_last or self._request.chunked_read


def _incomplete() -> falcon.HTTPError:
    text = "the request did not arrive as a whole"
    return falcon.HTTPError(falcon.HTTP_408, title="Incomplete", description=text)


def _deferred(
    application: Callable[..., Any], arrivals: Arrivals, ending: threading.Event
) -> Callable[..., Any]:
    """Return an application that lets the given one read the body when it wants to.

    What is left of a body then is discarded before the answer is sent, because clients read it only
    when they have sent everything.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        began: list[Any] = []
        body = environ[BODY] = _Body(environ, arrivals)
        environ[ENDING] = ending
        answered = application(environ, lambda *head: began.append(head))
        try:
            body.discard()
        except falcon.HTTPError as reason:
            text = f"{reason.description}\n".encode()
            kind = ("Content-Type", "text/plain; charset=utf-8")
            start_response(reason.status, [kind, ("Content-Length", str(len(text)))])
            return [text]
        start_response(*began[0])
        return answered

    return answer
