"""The database store when a deadlock or a broken line gets in its way."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pytest
import sqlalchemy as sa

from applier.errors import PlanNotFound, StoreError
from applier.storage import schema
from applier.storage.connection import parse
from applier.storage.sql import SqlStore
from applier.testing.databases import mysql_url, postgresql_url  # noqa: F401
from applier.testing.plans import MADE, new_plan
from applier.testing.runs import ME, NOW, claimed, starts, succeeds
from planner.states import ActionState, PlanState


@pytest.mark.server
def test_a_batch_that_met_a_deadlock_is_written_again(postgresql_url):  # noqa: F811
    schema.upgrade(postgresql_url)
    plan = new_plan("a")
    row = {"plan": plan.uuid}
    hold_action = sa.text("UPDATE actionplan_action SET position = 0 WHERE plan = :plan")
    hold_plan = sa.text("UPDATE actionplan_plan SET wishes = 0 WHERE uuid = :plan")
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with closing(SqlStore(postgresql_url)) as store, store._engine.connect() as other:
        claim = claimed(store, plan)
        other.execute(sa.text("SET LOCAL deadlock_timeout = '60s'"))  # the store is to notice it
        other.execute(hold_action, row)
        tries = count_calls(store, "_written")
        batch = [starts(plan.actions[0])]
        run = threading.Thread(
            target=store.commit, args=(plan.uuid, claim, batch), kwargs={"now": NOW}
        )
        run.start()  # it holds the plan, and waits for the action
        with store._engine.connect() as watch:
            while not watch.execute(waiting).scalar():
                watch.rollback()
        other.execute(hold_plan, row)
        other.commit()
        run.join(30)
        assert len(tries) == 2
        (action,) = store.load_plan(plan.uuid).actions
    assert (action.state, action.attempts) == (ActionState.ONGOING, 1)


def count_calls(store, name):
    """Note every call of a method; gives the list of notes."""
    method, calls = getattr(store, name), []

    def noted(*arguments):
        calls.append(arguments)
        return method(*arguments)

    setattr(store, name, noted)
    return calls


class Gateway:
    """Stands between a store and its server, and cuts the line around the next COMMIT."""

    def __init__(self, url: str) -> None:
        server = parse(url)
        port = server.port or {"postgresql": 5432, "mysql": 3306}[server.get_backend_name()]
        self.server = (server.host, port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        here = server.set(host="127.0.0.1", port=self.listener.getsockname()[1])
        self.url = here.render_as_string(hide_password=False)
        #: "before" the server hears of a COMMIT, or "after" it has answered.
        self.cut = None
        #: How many COMMITs pass before that.
        self.passes = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.server)
            for line in (client, server):
                line.settimeout(20)  # a test that waits for nothing fails
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()
            threading.Thread(target=self.pass_back, args=(client, server), daemon=True).start()

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


@pytest.mark.server
@pytest.mark.parametrize("server", ["postgresql_url", "mysql_url"])
@pytest.mark.parametrize("cut", ["before", "after"])
class TestLostConnection:
    @pytest.fixture
    def gateway(self, request, server):
        url = request.getfixturevalue(server)
        schema.upgrade(url)
        gateway = Gateway(url)
        yield gateway
        gateway.listener.close()

    @pytest.fixture
    def store(self, gateway):
        with closing(SqlStore(gateway.url)) as store:
            yield store

    def test_a_batch_is_written_once(self, store, gateway, cut):
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=MADE)
        gateway.cut = cut
        store.commit(plan.uuid, claim, [succeeds(a, output="done"), starts(b)], now=NOW)
        assert gateway.cut is None
        a, b = store.load_plan(plan.uuid).actions
        assert (a.state, a.ended_at, b.state, b.attempts) == ("SUCCEEDED", NOW, "ONGOING", 1)
        assert store.output(plan.uuid, a.uuid) == "done"

    def test_a_claim_is_the_claimants_and_a_move_is_made_once(self, store, gateway, cut):
        plan = new_plan("a")
        store.save_plan(plan)
        gateway.cut, gateway.passes = cut, 1  # a move reads the plan before it writes
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        gateway.cut, gateway.passes = cut, 0
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        gateway.cut, gateway.passes = cut, 1
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        assert gateway.cut is None
        assert store.load_plan(plan.uuid).state is PlanState.PAUSED

    def test_a_save_says_that_the_connection_was_lost(self, store, gateway, cut):
        plan = new_plan("a")
        gateway.cut = cut
        with pytest.raises(StoreError):
            store.save_plan(plan)
        if cut == "after":
            assert store.load_plan(plan.uuid) == plan
        else:
            with pytest.raises(PlanNotFound):
                store.load_plan(plan.uuid)
