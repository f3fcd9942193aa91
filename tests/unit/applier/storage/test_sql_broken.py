# SPDX-License-Identifier: Apache-2.0
"""The database store when a deadlock or a broken line gets in its way, also while it is opened."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pytest
from sample_plans import new_plan
from scratch_database import connected, run
from store_checks.running_plans import (
    NOW,
    claimed,
    starts,
)
from tcp_proxy import proxy
from test_sql_store import connection_of

from applier.errors import PlanConflict, StoreError
from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.database_errors import Refused, translate_errors
from applier.storage.sql_store import SqlStore
from planner.plan.states import ActionState

PORTS = {"postgresql": 5432, "mysql": 3306}


@pytest.mark.server
def test_a_batch_that_met_a_deadlock_is_written_again(postgresql_url):
    schema_version.upgrade(postgresql_url)
    plan = new_plan("a")
    row = {"plan": plan.uuid}
    hold_action = "UPDATE actionplan_action_state SET attempts = 0 WHERE plan = %(plan)s"
    hold_plan = "UPDATE actionplan_plan SET requests = 0 WHERE uuid = %(plan)s"
    waiting = (
        "SELECT pid FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with closing(SqlStore(postgresql_url)) as store, connected(postgresql_url) as other:
        claim = claimed(store, plan)
        other.execute("BEGIN")
        other.execute("SET LOCAL deadlock_timeout = '60s'")  # the store is to notice it
        other.execute(hold_action, row)
        batch = [starts(plan.actions[0])]
        applier = threading.Thread(
            target=store.commit, args=(plan.uuid, claim, batch), kwargs={"now": NOW}
        )
        applier.start()  # it holds the plan, and waits for the action
        while not run(postgresql_url, waiting):
            pass
        other.execute(hold_plan, row)
        other.commit()
        applier.join(120)
        (action,) = store.load_plan(plan.uuid).actions
    assert (action.state, action.attempts) == (ActionState.ONGOING, 1)


@pytest.mark.server
@pytest.mark.parametrize("server", ["postgresql_url", "mysql_url"])
def test_a_store_without_patience_works_again_as_soon_as_the_server_is_back(server, request):
    url = parse(request.getfixturevalue(server))
    schema_version.upgrade(url.with_password())
    with proxy(url.host, url.port or PORTS[url.kind]) as gate:
        here = url._replace(host="127.0.0.1", port=gate.port).with_password()
        with closing(SqlStore(here, patience_s=0)) as store:
            plan = new_plan("a")
            batch = plan.uuid, claimed(store, plan), [starts(plan.actions[0])]
            gate.go_away()
            for _ in range(3):
                with pytest.raises(StoreError, match="is the server running"):
                    store.commit(*batch, now=NOW)
            gate.come_back()
            store.commit(*batch, now=NOW)
            assert len(store.attempts(plan.uuid, plan.actions[0].uuid)) == 1


@pytest.mark.server
def test_a_server_may_not_think_for_ever(postgresql_url, mysql_url):
    for url, asked in ((postgresql_url, "SHOW statement_timeout"), (mysql_url, None)):
        schema_version.upgrade(url)
        with closing(SqlStore(url)) as store:
            driver = connection_of(store)
            found = driver.execute(asked).fetchone()[0] if asked else driver._read_timeout
            assert found == ("30s" if asked else 30)


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
