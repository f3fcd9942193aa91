# SPDX-License-Identifier: Apache-2.0
"""Serves Watcher's API: ``python watcher_api.py PORT OPTIONS``, by a Python that has Watcher.

The options are those of ``watcher-api``. One path is the lab's own: ``/lab/SECTION/HOST`` says 200
once the service of a section of watcher.conf answers over RPC on that host, else 503. A service is
ACTIVE in Watcher's table before its queue exists, and what is sent before that is lost.
"""

from __future__ import annotations

import sys

# oslo.messaging's import would choose eventlet for good.
from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

import threading  # noqa: E402

import oslo_messaging  # noqa: E402
from oslo_config import cfg  # noqa: E402
from wsgi_serving import reply, serve  # noqa: E402


def main(port):
    """Serve until the process is ended."""
    from watcher.wsgi.api import application

    def with_own_path(environ, start_response):
        _, first, *rest = environ["PATH_INFO"].split("/")
        if first != "lab":
            return application(environ, start_response)
        there = answers(*rest)
        return reply(start_response, "200 OK" if there else "503 Service Unavailable")

    serve(with_own_path, port)
    threading.Event().wait()


def answers(section, host):
    """Return whether a service answers."""
    from watcher.common import rpc

    topic = cfg.CONF[section].conductor_topic
    target = oslo_messaging.Target(topic=topic, server=host, version="1.0")
    client = oslo_messaging.get_rpc_client(rpc.TRANSPORT, target, timeout=1)
    try:
        client.call({}, "oslo_rpc_server_ping")
    except oslo_messaging.MessagingTimeout:
        return False
    return True


if __name__ == "__main__":
    port_asked_for = int(sys.argv.pop(1))
    sys.argv[0] = "watcher-api"
    main(port_asked_for)
