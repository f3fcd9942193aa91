# SPDX-License-Identifier: Apache-2.0
"""Serves the page of a plan on this machine, for a user without the service."""

from __future__ import annotations

import logging
import secrets
import signal
import threading
from typing import TYPE_CHECKING, Any

from applier.errors import ConfigurationError
from applier.run.user import user

if TYPE_CHECKING:
    from applier.cli.verb import Verb

#: Only programs on this machine reach it.
HOST = "127.0.0.1"


def show(verb: Verb, uuid: str) -> int:
    """Serve until Ctrl-C, and print the address; raises ConfigurationError."""
    try:
        from applier.api import routing
        from applier.api.server import Server
        from applier.api.token import PARAMETER, AddressWithToken
    except ImportError:
        raise ConfigurationError("watch --web: install actionplan[api], which it needs") from None
    logging.getLogger("cheroot").setLevel(logging.ERROR)
    assembly = verb.session.assembly
    token = secrets.token_urlsafe(24)
    strategy = AddressWithToken(token, user())
    application = strategy.around(routing.make(assembly, strategy))
    server = Server(assembly.conf, application, (HOST, 0))
    server.open()
    verb.say(f"Open {server.url}/plans/{uuid}?{PARAMETER}={token}")
    verb.say("Whoever has this address may do what you may. Ctrl-C ends the page, not the plan.")
    verb.app.stdout.flush()

    def end(_number: int, _frame: Any) -> None:
        # The server ends in a thread of its own: a handler of signals must not wait.
        threading.Thread(target=server.end, name="end").start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
