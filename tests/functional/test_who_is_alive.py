# SPDX-License-Identifier: Apache-2.0
"""Nobody who lives loses a plan: clocks apart, long intervals, frozen and killed appliers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import PROGRAM, CommandLine, Gate

from applier.contracts import Claimant, Report
from planner.plan.states import ActionState, PlanState

SHIFT = Path(__file__).parents[1] / "shifted_clock" / "start.py"
NOP = {"action_type": "nop", "input_parameters": {"message": "x"}}


@contextmanager
def applied(actionplan: CommandLine, gate: Gate, clock: str, interval_s: float):
    """Run a plan by an applier with a clock and an interval of its own, until its action runs."""
    applier = {"heartbeat_interval_s": interval_s}
    actionplan.configure(actionplan={"simulator_speed": 1000}, watcher_applier=applier)
    count = f"echo ran >> {actionplan.folder}/effects; {gate.command}"
    action = {**gate.action("first"), "input_parameters": {"command": count}}
    actionplan.document("plan.yaml", action)
    with subprocess.Popen(
        [sys.executable, SHIFT, clock, PROGRAM, "apply", "plan.yaml", "--yes"],
        cwd=actionplan.folder,
        env=actionplan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            gate.wait()
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.long
@pytest.mark.needs("faketime")
@pytest.mark.parametrize("clock", ["-3600s", "+0s", "+60s", "+3600s"])
def test_the_plan_of_a_living_applier_is_not_taken_whatever_its_clock_says(actionplan, gate, clock):
    # Six of its intervals without a heartbeat would be its death, on a machine however slow.
    with applied(actionplan, gate, clock, 2.0) as process:
        ended = actionplan("resume", "last")
        assert ended.code == 1
        assert "which was heard of just now" in ended.err
        with actionplan.start("watch", "last") as watching:
            assert watching.stdout.readline().startswith("Cloud: simulated")
            assert "plan ONGOING" in watching.stdout.readline()
            gate.let_go()
            assert process.wait() == 0
            assert watching.wait() == 0
    assert actionplan.plan().state is PlanState.SUCCEEDED
    assert (actionplan.folder / "effects").read_text() == "ran\n"


@pytest.mark.long
@pytest.mark.needs("faketime")
def test_a_long_interval_is_waited_for(actionplan, gate):
    """The last heartbeat looks an hour old, and the next comes only after two minutes.

    ``resume`` says at once whom it waits for, and for how long at most.
    """
    with (
        applied(actionplan, gate, "-3600s", 120.0),
        actionplan.start("resume", "last") as resuming,
    ):
        claimant = actionplan.claimant()
        told = resuming.stderr.readline()
        assert told.startswith(f"Process {claimant.pid} on {claimant.host} may be alive: ")
        assert "12m00s" in told
        assert resuming.poll() is None
        assert actionplan.plan().state is PlanState.ONGOING
        resuming.send_signal(signal.SIGINT)
        assert resuming.wait() == 130
        assert "This is a bug" not in resuming.stderr.read()


def test_a_duration_over_which_the_clock_was_set_back_is_not_known(actionplan):
    """It is no negative number anywhere: in lists, details and reports."""
    actionplan.good("create", actionplan.document("plan.yaml", NOP))
    uuid = actionplan.plan().uuid
    (action,) = actionplan.plan().actions
    at = datetime(2026, 1, 2, tzinfo=UTC)
    with actionplan.store() as store:
        store.start_plan(uuid, None, now=at)
        claim = store.claim_plan(uuid, Claimant(host="h", pid=1, user="eve"), now=at)
        states = (ActionState.PENDING, ActionState.ONGOING, ActionState.SUCCEEDED)
        for (old, new), now in zip(pairwise(states), (at, at - timedelta(days=1)), strict=True):
            report = Report(uuid=action.uuid, old=old, state=new)
            store.commit(uuid, claim, [report], now=now)
        store.move_claimed(uuid, claim, PlanState.SUCCEEDED, now=at)
    for words in (
        ("action", "list", "last"),
        ("action", "show", "last", action.label),
        ("show", "last"),
        ("report", "last", "--out", "report.html"),
    ):
        assert "-86" not in actionplan.good(*words), words
    assert "-86" not in (actionplan.folder / "report.html").read_text(encoding="utf-8")
    listed = json.loads(actionplan.good("action", "list", "last", "-f", "json"))
    assert listed[0]["took"] is None
