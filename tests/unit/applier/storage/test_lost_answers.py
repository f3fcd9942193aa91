# SPDX-License-Identifier: Apache-2.0
"""A write is made once, though the connection is lost before its commit or before the answer."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest
from store_checks.running_plans import LATER, ME, NOW, claimed, ends, retries, starts

from applier.errors import StoreError
from applier.storage.refusals import ConnectionLost
from applier.storage.sql import SqlStore
from applier.storage.transactions import Transaction
from applier.testing.sample_plans import new_plan
from planner.plan.states import ActionState, PlanState


@pytest.fixture(params=["before", "after"])
def write_over_cut_line(request, monkeypatch):
    """Return a function that makes a write; the line is cut around the commit of its first try."""
    end, cuts = Transaction.__exit__, []

    def end_and_cut(transaction, kind, error, trace):
        if not cuts or error is not None or transaction._statement != "BEGIN IMMEDIATE":
            end(transaction, kind, error, trace)
            return
        if cuts.pop() == "after":
            end(transaction, None, None, None)
        else:
            end(transaction, ValueError, ValueError(), None)
        raise ConnectionLost

    monkeypatch.setattr(Transaction, "__exit__", end_and_cut)
    monkeypatch.setattr(threading.Event, "wait", lambda *_: False)

    def write(call):
        """Make a write; make it again, at a later time, if it is refused."""
        cuts.append(request.param)
        try:
            made = call(NOW)
        except StoreError:
            made = call(LATER)
        assert not cuts
        return made

    return write


@pytest.mark.parametrize("patience_s", [0, 60])
def test_each_write_is_made_once(tmp_path, write_over_cut_line, patience_s):
    twice = write_over_cut_line
    with closing(SqlStore(f"sqlite:///{tmp_path}/plans.db", patience_s=patience_s)) as store:
        plan = new_plan("a")
        (a,) = plan.actions
        uuid = plan.uuid
        store.save_plan(plan)
        twice(lambda now: store.move_plan(uuid, PlanState.PENDING, now=now))
        claim = twice(lambda now: store.claim_plan(uuid, ME, now=now))
        twice(lambda now: store.beat(uuid, claim, now=now))
        twice(lambda now: store.reserve(uuid, claim, ["node:a"], now=now))
        twice(lambda now: store.commit(uuid, claim, [starts(a)], now=now))
        again = [retries(a), starts(a)]  # a second time would fit as well
        twice(lambda now: store.commit(uuid, claim, again, now=now))
        assert [attempt.number for attempt in store.attempts(uuid, a.uuid)] == [1, 2]
        unknown = [ends(a, ActionState.UNKNOWN)]
        twice(lambda now: store.commit(uuid, claim, unknown, now=now))
        twice(lambda now: store.move_claimed(uuid, claim, PlanState.FAILED, now=now))
        failed = ActionState.FAILED
        twice(lambda now: store.settle_action(uuid, a.uuid, failed, now=now, message=""))
        twice(lambda now: store.resume_plan(uuid, [a.uuid], now=now))
        twice(lambda now: store.skip_action(uuid, a.uuid, now=now, message="by hand"))
        loaded = store.load_plan(uuid)
    assert loaded.state is PlanState.PENDING
    assert [(x.state, x.attempts) for x in loaded.actions] == [(ActionState.SKIPPED, 2)]


def test_the_same_batch_for_another_reason_is_another_write(tmp_path):
    with closing(SqlStore(f"sqlite:///{tmp_path}/plans.db")) as store:
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        for _ in range(3):  # every attempt fails at the same moment
            store.commit(plan.uuid, claim, [retries(a), starts(a)], now=NOW)
        assert len(store.attempts(plan.uuid, a.uuid)) == 4
