# SPDX-License-Identifier: Apache-2.0
"""The health probe: asked before actions start, and a bad answer pauses the plan."""

from __future__ import annotations

import itertools
import os
import select
import socket
import sys
import threading

import pytest
from sample_plans import new_plan
from trials import Trial

from applier.engines.taskflow_engine import TaskFlowEngine
from applier.run import holdings
from applier.run.holdings import CombinedHolding, HealthProbe, asked
from planner.plan.states import PlanState


def run(answers, *names):
    """Run a plan, one action after the other; return its state, its actions and its message."""
    plan, left, count = new_plan(*names, state=PlanState.PENDING), list(answers), []

    def ask():
        count.append(None)
        return left.pop(0) if left else None

    def holding_of(_plan, pause):
        return CombinedHolding([HealthProbe(ask, pause)])

    engine = TaskFlowEngine(max_workers=1)
    with Trial(plan, engine, max_workers=1, holding_of=holding_of) as trial:
        state = trial.run()
        return state, "".join(s[0] for s in trial.states().values()), trial.plan(), len(count)


def test_it_is_asked_before_the_first_action_and_after_each_end():
    state, states, _, asked_times = run([None, None, None], *"abc")
    assert (state, states) == (PlanState.SUCCEEDED, "SSS")
    assert asked_times == 3


def test_a_bad_answer_pauses_the_plan_with_what_it_said():
    state, states, plan, _ = run([None, "disk is full"], *"abc")
    assert (state, states) == (PlanState.PAUSED, "SPP")
    assert "health probe: disk is full" in plan.status_message


def test_nothing_starts_where_nothing_is_well():
    state, states, plan, _ = run(["no route"], *"ab")
    assert (state, states) == (PlanState.PAUSED, "PP")
    assert {action.attempts for action in plan.actions} == {0}


@pytest.mark.slow
def test_a_command_has_to_end_with_0(tmp_path):
    script = tmp_path / "probe.py"
    script.write_text("import sys\nprint('first')\nprint('no quorum')\nsys.exit(3)\n")
    line = f"{sys.executable} {script}"
    assert asked(line) == f"{sys.executable} ended with 3: no quorum"
    assert asked("true") is None
    assert asked("false") == "false ended with 1"
    assert "/no/such cannot be run: " in asked("/no/such")
    assert "cannot be run" in asked("'")


def test_an_answer_that_does_not_come_pauses_the_plan():
    plan, never = new_plan("a", state=PlanState.PENDING), threading.Event()
    ticks = itertools.count(step=10.0)

    def holding_of(_plan, pause):
        def ask():
            never.wait()

        return HealthProbe(ask, pause, clock=lambda: next(ticks), patience_s=35.0)

    engine = TaskFlowEngine(max_workers=1)
    with Trial(plan, engine, max_workers=1, holding_of=holding_of) as trial:
        assert trial.run() is PlanState.PAUSED
        told = trial.plan().status_message
    never.set()
    assert "no answer after 35 s" in told


def test_a_probe_for_which_no_thread_is_left_pauses_the_plan(monkeypatch):
    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    paused = []
    probe = HealthProbe(lambda: None, lambda _, why: paused.append(why))
    assert probe.holds(new_plan("a").actions[0], begins=True)
    assert probe.holds(new_plan("a").actions[0], begins=True)
    assert paused == ["it cannot be run: can't start new thread"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_probe_that_breaks_pauses_the_plan():
    plan = new_plan("a", state=PlanState.PENDING)

    def ask():
        raise RuntimeError("a bug")

    engine = TaskFlowEngine(max_workers=1)
    with Trial(
        plan, engine, max_workers=1, holding_of=lambda _, pause: HealthProbe(ask, pause)
    ) as trial:
        assert trial.run() is PlanState.PAUSED
        assert "it broke" in trial.plan().status_message


@pytest.mark.slow
def test_what_hangs_is_killed_with_all_that_it_has_started(tmp_path, monkeypatch):
    monkeypatch.setattr(holdings, "PATIENCE_S", 1.0)
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    line = f"sh -c 'sleep 1000 > {pipe} & wait'"
    assert asked(line) == "sh has not ended after 1 s"
    # Whoever holds the pipe open is alive: its reader waits, and sees the end once nobody is.
    os.set_blocking(reader, True)
    assert select.select([reader], [], [], 60)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nx" + b"y" * 70000])
def test_what_speaks_something_else_is_told(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak():
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                connection.sendall(answer)

        speaker = threading.Thread(target=speak)
        speaker.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/healthy"
        assert asked(url).startswith(f"{url} does not answer: ")
        speaker.join()
    assert asked(url).startswith(f"{url} does not answer: "), "nobody is there any more"
