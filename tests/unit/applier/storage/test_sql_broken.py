# SPDX-License-Identifier: Apache-2.0
"""The database store when a deadlock or a broken line gets in its way, also while it is opened."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pytest
from scratch_database import connected, run
from store_checks.running_plans import (
    LATER,
    ME,
    NOW,
    claimed,
    ends,
    retries,
    starts,
)

from applier.errors import PlanConflict, StoreError
from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.refusals import Refused, translate_errors
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan
from planner.plan.states import ActionState, PlanState


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


class Gateway:
    """Stands between a store and its server, and cuts the line around the next COMMIT."""

    def __init__(self, url: str) -> None:
        server = parse(url)
        port = server.port or {"postgresql": 5432, "mysql": 3306}[server.kind]
        self.server = (server.host, port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        here = server._replace(host="127.0.0.1", port=self.listener.getsockname()[1])
        self.url = here.with_password()
        #: "before" the server hears of a COMMIT, or "after" it has answered.
        self.cut = None
        #: How many COMMITs pass before that.
        self.passes = 0
        #: How many connections are dropped before one is let through again.
        self.drops = 0
        self.lines = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.drops > 0:
                self.drops -= 1
                hang_up(client)
                continue
            server = socket.create_connection(self.server)
            self.lines += [client, server]
            for line in (client, server):
                line.settimeout(20)  # a test that waits for nothing fails
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()
            threading.Thread(target=self.pass_back, args=(client, server), daemon=True).start()

    def go_away(self, drops):
        """Cut every line, and drop the next connections."""
        self.drops = drops
        lines, self.lines = self.lines, []
        hang_up(*lines)

    def pass_on(self, client, server):
        while data := self.receive(client):
            if self.cut and data.rstrip(b"\0").endswith(b"COMMIT"):
                self.passes -= 1
                if self.passes < 0 and self.cut == "after":
                    self.cut = "answer"
                    server.sendall(data)
                    return  # the other thread hangs up
                if self.passes < 0:
                    self.cut = None
                    break
            server.sendall(data)
        hang_up(client, server)

    def pass_back(self, client, server):
        while data := self.receive(server):
            if self.cut == "answer":
                self.cut = None
                break
            client.sendall(data)
        hang_up(client, server)

    def receive(self, line):
        try:
            return line.recv(65536)
        except OSError:
            return b""


def hang_up(*lines):
    for line in lines:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        line.close()


@pytest.fixture(params=["postgresql_url", "mysql_url"])
def gateway(request):
    url = request.getfixturevalue(request.param)
    schema_version.upgrade(url)
    gateway = Gateway(url)
    yield gateway
    gateway.listener.close()


@pytest.mark.server
class TestServerThatIsAway:
    def test_a_store_without_patience_works_again_as_soon_as_the_server_is_back(self, gateway):
        with closing(SqlStore(gateway.url, patience_s=0)) as store:
            plan = new_plan("a")
            claim = claimed(store, plan)
            gateway.go_away(20)
            refused = []
            while True:
                try:
                    store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
                    break
                except StoreError as error:
                    refused.append(str(error))
            # A call takes one connection, or two when it finds a broken one first.
            assert 10 <= len(refused) <= 20
            assert all("is the server running?" in sentence for sentence in refused)
            assert gateway.drops == 0
            assert len(store.attempts(plan.uuid, plan.actions[0].uuid)) == 1

    @pytest.mark.parametrize("cut", ["before", "after"])
    def test_a_call_made_again_after_a_store_error_is_written_once(self, gateway, cut):
        with closing(SqlStore(gateway.url, patience_s=0)) as store:

            def twice(call, passes=0):
                gateway.cut, gateway.passes = cut, passes
                with pytest.raises(StoreError):
                    call(NOW)
                assert gateway.cut is None
                return call(LATER)

            plan = new_plan("a")
            (a,) = plan.actions
            store.save_plan(plan)
            uuid = plan.uuid
            twice(lambda now: store.move_plan(uuid, PlanState.PENDING, now=now), 1)
            claim = twice(lambda now: store.claim_plan(uuid, ME, now=now))
            twice(lambda now: store.reserve(uuid, claim, ["node:a"], now=now))
            twice(lambda now: store.commit(uuid, claim, [starts(a)], now=now))
            again = [retries(a), starts(a)]  # its second time would fit as well
            twice(lambda now: store.commit(uuid, claim, again, now=now))
            began = NOW if cut == "after" else LATER
            assert [t.started_at for t in store.attempts(uuid, a.uuid)] == [began] * 2
            unknown = [ends(a, ActionState.UNKNOWN)]
            twice(lambda now: store.commit(uuid, claim, unknown, now=now))
            twice(lambda now: store.move_claimed(uuid, claim, PlanState.FAILED, now=now), 1)
            failed = ActionState.FAILED
            twice(lambda now: store.settle_action(uuid, a.uuid, failed, now=now, message=""))
            twice(lambda now: store.resume_plan(uuid, [a.uuid], now=now), 1)
            (waits,) = store.load_plan(uuid).actions
            assert (waits.state, waits.attempts) == (ActionState.PENDING, 2)
            twice(lambda now: store.skip_action(uuid, a.uuid, now=now, message=""))

    def test_a_server_may_not_think_for_ever(self, gateway):
        with (
            closing(SqlStore(gateway.url)) as store,
            closing(store._database._transactions.connector.open()) as database,
        ):
            if parse(gateway.url).kind == "postgresql":
                assert database.execute("SHOW statement_timeout").fetchone() == ("30s",)
            else:
                assert database._read_timeout == 30


@pytest.mark.server
def test_a_save_says_that_the_connection_was_lost(gateway):
    with closing(SqlStore(gateway.url)) as store:
        for gateway.cut in ("before", "after"):
            plan, is_there = new_plan("a"), gateway.cut == "after"
            with pytest.raises(StoreError):
                store.save_plan(plan)
            assert (plan.uuid in [found.uuid for found in store.list_plans()]) is is_there


# A connection that is cut while the record is opened, after each answer of the server.

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
