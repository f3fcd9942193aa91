# SPDX-License-Identifier: Apache-2.0
"""A connection that is cut while the record is opened, after each answer of the server."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pytest

from applier.errors import PlanConflict, StoreError
from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.refusals import Refused, translate_errors
from applier.storage.sql import SqlStore

PORTS = {"postgresql": 5432, "mysql": 3306}
#: More answers than a server sends while the record is opened.
ANSWERS = 40


class Cutter:
    """Stands between a store and its server; cuts the line after ``left`` answers of the server."""

    def __init__(self, url: str) -> None:
        server = parse(url)
        self._server = (server.host, server.port or PORTS[server.kind])
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        here = server._replace(host="127.0.0.1", port=port)
        self.url, self.left = here.with_password(), ANSWERS
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if counted:
                    if self.left == 0:
                        break
                    self.left -= 1
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def refusal_of(url: str) -> str | None:
    """Open a record; return why it cannot be opened, None if it can."""
    try:
        SqlStore(url, patience_s=0).close()
    except StoreError as refusal:
        return str(refusal)
    return None


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("server", ["postgresql_url", "mysql_url"])
def test_it_is_told_in_a_sentence_and_the_next_try_works(server, request):
    url = request.getfixturevalue(server)
    schema_version.upgrade(url)
    with closing(Cutter(url)) as cutter:
        for answers in range(ANSWERS):
            cutter.left = answers
            refused = refusal_of(cutter.url)
            if refused is None:
                break
            assert "\n" not in refused
        assert 5 < answers < ANSWERS - 1
        cutter.left = ANSWERS * 10
        # Tests of other files may have left rows.
        with closing(SqlStore(cutter.url)) as store, closing(SqlStore(url)) as direct:
            assert store.services() == direct.services()


def test_an_error_of_another_kind_after_one_of_the_database_is_told_as_the_latter():
    """Libraries clean up after an error, and may fail at that in any way."""
    url = parse("postgresql://h/n")
    lost = Refused("server closed the connection unexpectedly")
    for later, told in (
        (NotImplementedError(), StoreError),
        (PlanConflict("p", "PENDING", "meanwhile"), PlanConflict),
    ):
        later.__context__ = lost
        with pytest.raises(told), translate_errors(url):
            raise later
    with pytest.raises(ZeroDivisionError), translate_errors(url):
        raise ZeroDivisionError
