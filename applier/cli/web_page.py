# SPDX-License-Identifier: Apache-2.0
"""``watch --web``: serves the page of a plan on this machine, without the API service."""

from __future__ import annotations

import logging
import secrets
import signal
import threading
from typing import TYPE_CHECKING, Any

from applier.errors import ConfigurationError
from applier.extras import MissingExtra
from applier.run.this_process import user

if TYPE_CHECKING:
    from applier.cli.verb import Verb

#: The address of the server, which only programs on this machine can reach.
HOST = "127.0.0.1"


def show(verb: Verb, uuid: str) -> int:
    """Print the address of the page, and serve it until Ctrl-C or SIGTERM; return 0.

    The address has a random token. Raises ConfigurationError, for example if actionplan[api] is not
    installed.
    """
    try:
        from applier.api import routing
        from applier.api.server import Server
        from applier.api.token import PARAMETER, AddressWithToken
    except ImportError:
        raise ConfigurationError(str(MissingExtra("watch --web", "api"))) from None
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
        # In a thread of its own: ``end`` waits for the server, and a signal handler must not block.
        threading.Thread(target=server.end, name="end").start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
