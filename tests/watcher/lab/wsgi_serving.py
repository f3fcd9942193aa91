# SPDX-License-Identifier: Apache-2.0
"""Small WSGI applications on the loopback, each served by threads of this process."""

from __future__ import annotations

import json
import threading
from socketserver import ThreadingMixIn
from wsgiref import simple_server


class Server(ThreadingMixIn, simple_server.WSGIServer):
    """A server that answers each request in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128


class Handler(simple_server.WSGIRequestHandler):
    """A handler that prints nothing and asks no name server."""

    def log_message(self, *_):
        """Print nothing."""

    def address_string(self):
        """Return the address of the client, which is this machine."""
        return "127.0.0.1"


def serve(application, port):
    """Serve an application on a port; the port listens when this returns."""
    server = simple_server.make_server("127.0.0.1", port, application, Server, Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name=f"wsgi-{port}").start()


def body_of(environ):
    """Return the JSON of a request, {} if it has none."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return json.loads(environ["wsgi.input"].read(length) or b"{}") if length else {}


def reply(start_response, status, value=None, headers=()):
    """Answer a request with a value as JSON."""
    data = b"" if value is None else json.dumps(value).encode()
    length = ("Content-Length", str(len(data)))
    start_response(status, [("Content-Type", "application/json"), length, *headers])
    return [data]
