# SPDX-License-Identifier: Apache-2.0
"""Signals while a plan runs, exit codes when it has stopped, and who runs it."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sample_plans import new_plan

from applier.cli.foreground import exit_code, signals, warnings_sent_to
from applier.engines import recorder
from applier.engines.recorder import write_patiently
from applier.errors import DamagedRecord, StoreError
from applier.run.runner import Runner
from applier.storage.sql_store import SqlStore
from planner.plan.model import Action
from planner.plan.states import ActionState, PlanState

from .conftest import Run

PLAN = new_plan("a")
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class Noted:
    """A runner that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pause(self, who: str) -> None:
        """Note a pause."""
        self.asked.append(f"pause {who}")

    def cancel(self, who: str) -> None:
        """Note a cancel."""
        self.asked.append(f"cancel {who}")


STORIES = [
    ([INT], ["pause SIGINT (Ctrl-C)"]),
    ([INT, INT], ["pause SIGINT (Ctrl-C)", "cancel SIGINT (Ctrl-C)"]),
    ([TERM, INT, INT, INT], ["pause SIGTERM", "cancel SIGINT (Ctrl-C)"]),
    ([HUP, HUP, HUP], ["pause SIGHUP (the terminal went away)"]),
    ([HUP, HUP, INT], ["pause SIGHUP (the terminal went away)", "cancel SIGINT (Ctrl-C)"]),
    ([INT, HUP], ["pause SIGINT (Ctrl-C)"]),
]


def test_the_first_signal_pauses_and_the_second_cancels() -> None:
    for numbers, asked in STORIES:
        runner, told = Noted(), []
        with signals(runner, PLAN, told.append):  # type: ignore[arg-type]
            for number in numbers:
                signal.raise_signal(number)
        assert runner.asked == asked
        assert told[0].startswith(f"{numbers[0].name}: pausing; ")
        assert len(told) == len(numbers) - max(0, numbers.count(HUP) - (numbers[0] is HUP))


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = signal.getsignal(INT)
    with signals(Noted(), PLAN, lambda _: None):  # type: ignore[arg-type]
        assert signal.getsignal(INT) is not before
    assert signal.getsignal(INT) is before


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(HUP, signal.SIG_IGN)
    try:
        with signals(Noted(), PLAN, lambda _: None):  # type: ignore[arg-type]
            assert signal.getsignal(HUP) is signal.SIG_IGN
    finally:
        signal.signal(HUP, before)


def test_a_record_that_is_away_is_told_once_and_when_it_is_there_again() -> None:
    answers: list[StoreError | None] = [StoreError("disk is full")] * 3 + [None]
    told: list[str] = []

    def attempt() -> None:
        if answer := answers.pop(0):
            raise answer

    with warnings_sent_to(recorder.LOG, told.append):
        write_patiently(attempt, lambda: False, 100.0, lambda _: None, lambda: 0.0)
    away, there = told
    assert away.endswith("; retrying for 100 s: disk is full")
    assert "again" in there


@pytest.mark.parametrize("method", ["load_plan", "claim_plan"])
def test_that_nothing_has_run_is_said_of_a_damaged_record(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    plan = new_plan("a", state=PlanState.PENDING)
    store.save_plan(plan)

    def damaged(*_: object, **__: object) -> object:
        raise DamagedRecord("the record", ["no such table"])

    monkeypatch.setattr(SqlStore, method, damaged)
    code, _, err = run("apply", plan.uuid, "--yes")
    assert code == 1
    assert err.startswith("Refused: the record is damaged: no such ")
    assert err.endswith(" Nothing has run\n")


#: Damages the one plan on record while it runs.
DAMAGES = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("UPDATE actionplan_plan SET limits = '{\\"x\\": 7}'")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("more", "state", "code"), [("", "SUCCEEDED", 0), ("1/0", "FAILED", 3)])
def test_the_end_that_is_on_record_counts_though_the_plan_cannot_be_read(
    run: Run, store: SqlStore, tmp_path: Path, more: str, state: str, code: int
) -> None:
    record = f"{tmp_path}/state/actionplan/actionplan.sqlite"
    argv = [sys.executable, "-c", f"{DAMAGES}\n{more}", record]
    only = Action(uuid="a", action_type="shell", input_parameters={"argv": argv})
    plan = replace(new_plan(), actions=(only,))
    store.save_plan(plan)
    ended, out, err = run("apply", plan.uuid, "--yes")
    assert (ended, "RECAP" in out) == (code, False)
    assert err.startswith(f"Plan {plan.uuid[:8]} is {state}, ")
    assert f"plan {plan.uuid[:8]} is damaged: " in err


def test_the_end_that_is_on_record_counts_though_the_record_is_away(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = new_plan("a")
    store.save_plan(plan)
    run_plan = Runner.run

    def away(*_: object) -> object:
        raise StoreError("connection refused")

    def run_and_lose(runner: Runner, uuid: str) -> PlanState:
        state = run_plan(runner, uuid)
        monkeypatch.setattr(SqlStore, "last_claimant", away)
        return state

    monkeypatch.setattr(Runner, "run", run_and_lose)
    code, _, err = run("apply", plan.uuid, "--yes")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"Plan {plan.uuid[:8]} is SUCCEEDED, ")
    assert err.endswith(": connection refused\n")


CODES = [
    (PlanState.SUCCEEDED, ActionState.SUCCEEDED, 0),
    (PlanState.FAILED, ActionState.FAILED, 3),
    (PlanState.FAILED, ActionState.UNKNOWN, 5),
    (PlanState.PAUSED, ActionState.PENDING, 5),
    (PlanState.CANCELLED, ActionState.CANCELLED, 5),
]


def test_the_exit_code_says_how_the_plan_stopped() -> None:
    for state, action, code in CODES:
        only = Action(uuid="a", action_type="nop", state=action)
        assert exit_code(replace(new_plan(), state=state, actions=(only,))) == code
