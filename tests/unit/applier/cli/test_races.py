# SPDX-License-Identifier: Apache-2.0
"""Verbs on a plan that another process changes between two of their reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sample_plans import MADE, new_plan
from store_checks.running_plans import ends, starts

from applier.contracts import Claimant
from applier.storage.sql_store import SqlStore
from planner.plan.states import ActionState, Outcome, PlanState

from .conftest import Run

ELSEWHERE = Claimant(host="elsewhere", pid=1, user="wanda")


def before(monkeypatch: pytest.MonkeyPatch, method: str, happens: Callable[[], object]) -> None:
    """Let something happen right before the next call of a method of any store."""
    call = getattr(SqlStore, method)

    def late(*given: object, **named: object) -> object:
        monkeypatch.setattr(SqlStore, method, call)
        happens()
        return call(*given, **named)

    monkeypatch.setattr(SqlStore, method, late)


def saved(store: SqlStore, state: PlanState = PlanState.PENDING) -> str:
    plan = new_plan("a", state=state)
    store.save_plan(plan)
    return plan.uuid


def claim(store: SqlStore, uuid: str) -> str:
    return store.claim_plan(uuid, ELSEWHERE, now=MADE)


def test_a_cancel_reaches_the_applier_that_claimed_the_plan_a_moment_before(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = saved(store)
    before(monkeypatch, "move_plan", lambda: claim(store, uuid))
    code, out, err = run("stop", uuid, "--cancel")
    assert (code, err) == (0, "")
    assert "wanda on elsewhere, process 1 runs it" in out
    assert [request.verb for request in store.requests(uuid)] == ["cancel"]


def test_a_skip_reaches_the_applier_that_claimed_the_plan_a_moment_before(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = saved(store)
    before(monkeypatch, "skip_action", lambda: claim(store, uuid))
    code, out, err = run("action", "skip", uuid, "a", "--reason", "by hand")
    assert (code, err) == (0, "")
    assert out.count("No action needs a.") == 1
    assert [request.verb for request in store.requests(uuid)] == ["skip"]


def test_a_cancel_of_a_plan_that_was_handed_back_a_moment_before_cancels_it(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = saved(store)
    token = claim(store, uuid)
    back = PlanState.PENDING
    before(monkeypatch, "add_request", lambda: store.move_claimed(uuid, token, back, now=MADE))
    code, out, _ = run("stop", uuid, "--cancel")
    assert (code, store.load_plan(uuid).state) == (0, PlanState.CANCELLED)
    assert out.endswith("is CANCELLED.\n")


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_request_to_a_run_that_ended_a_moment_before_is_refused(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    uuid = saved(store)
    token, end = claim(store, uuid), PlanState.FAILED
    before(monkeypatch, "add_request", lambda: store.move_claimed(uuid, token, end, now=MADE))
    code, _, err = run("stop", uuid, f"--{verb}")
    assert code == 1
    assert f"plan {uuid[:8]} is FAILED: " in err


def test_the_second_of_two_who_start_a_plan_is_told_what_is_possible(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = saved(store, PlanState.RECOMMENDED)
    other = PlanState.PENDING
    before(monkeypatch, "start_plan", lambda: store.move_plan(uuid, other, now=MADE))
    code, _, err = run("start", uuid)
    assert code == 1
    assert "is PENDING" in err
    assert f"actionplan apply {uuid[:8]}" in err


@pytest.mark.parametrize("verb", ["watch", "show"])
def test_a_plan_that_ends_while_it_is_looked_at_has_not_lost_its_applier(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("applier.cli.watch.INTERVAL_S", 0.01)
    uuid = saved(store)
    token, end = claim(store, uuid), PlanState.SUCCEEDED
    before(monkeypatch, "claimant", lambda: store.move_claimed(uuid, token, end, now=MADE))
    code, out, err = run(verb, uuid)
    assert "nobody" not in out.lower()
    assert (code, err) == (0, "")


def test_a_report_is_not_kept_of_a_plan_that_another_purge_deletes_meanwhile(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The history is read late, and would be empty: that report must not replace the other's."""
    uuid = saved(store, PlanState.SUCCEEDED)
    before(monkeypatch, "history", lambda: store.purge_plans([uuid], MADE + timedelta(days=1)))
    words = ("purge", "--older-than", "0m", "--yes", "--keep-reports", str(tmp_path / "kept"))
    assert run(*words) == (0, "0 plans deleted for good.\n", "")
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_was_deleted_before_a_report_failed_is_told(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("applier.operations.removal.PLANS_AT_ONCE", 1)
    first, second = (saved(store, PlanState.SUCCEEDED) for _ in range(2))
    (tmp_path / f"{second}.html").mkdir()
    code, out, err = run("purge", "--older-than", "0m", "--yes", "--keep-reports", str(tmp_path))
    assert (code, out) == (1, "1 plan deleted for good.\n")
    assert f"--keep-reports {tmp_path}/{second}.html " in err
    assert "Is a directory" in err
    assert [plan.uuid for plan in store.list_plans()] == [second]
    assert first in (tmp_path / f"{first}.html").read_text()


def test_watch_of_a_resumed_plan_counts_from_the_beginning_of_its_last_run(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = new_plan("a", "b", state=PlanState.PENDING)
    store.save_plan(plan)
    first, second = plan.actions
    old, again = MADE, MADE + timedelta(hours=1)
    held = store.claim_plan(plan.uuid, ELSEWHERE, now=old)
    for report in (starts(first), ends(first, ActionState.SUCCEEDED, outcome=Outcome.CHANGED)):
        store.commit(plan.uuid, held, [report], now=old)
    store.move_claimed(plan.uuid, held, PlanState.PENDING, now=old)
    held = store.claim_plan(plan.uuid, ELSEWHERE, now=again)
    store.commit(plan.uuid, held, [starts(second)], now=again)
    monkeypatch.setattr("applier.cli.watch.now", lambda: again)
    before(
        monkeypatch,
        "claimant",
        lambda: store.move_claimed(plan.uuid, held, PlanState.FAILED, now=again),
    )
    _, out, _ = run("watch", plan.uuid)
    (start,) = (line for line in out.splitlines() if "  start  " in line)
    assert start.split()[0].startswith("0:")
