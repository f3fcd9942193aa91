# SPDX-License-Identifier: Apache-2.0
"""``apply`` on a terminal: the question, the live block, Ctrl-C, a terminal that hangs up."""

from __future__ import annotations

import os
import signal

import pytest
from command_line import CommandLine, Gate, plain, wait_until

from planner.plan.states import ActionState, PlanState


def nop(name: str) -> dict[str, object]:
    """Describe an action that does nothing."""
    return {"name": name, "action_type": "nop"}


@pytest.fixture
def two_steps(actionplan: CommandLine, gate: Gate) -> str:
    """Return a document whose first action runs until the gate lets it go."""
    weights = {"weights": {"shell": 90}}
    return actionplan.document("two.yaml", gate.action("first"), nop("second"), options=weights)


@pytest.mark.parametrize("answer", ["n\n", "\x04", "\x03"])
def test_any_answer_but_yes_keeps_the_plan_and_says_how_to_go_on(actionplan, two_steps, answer):
    with actionplan.on_terminal("apply", two_steps) as terminal:
        terminal.wait_for("[y/N]")
        wait_until(terminal.waits)
        terminal.type(answer)
        assert terminal.end() == 1
        assert f"The plan is stored: actionplan apply {actionplan.plan().uuid[:8]}" in plain(
            terminal.seen
        )
    assert actionplan.plan().state is PlanState.RECOMMENDED


def test_without_a_terminal_nothing_is_asked_and_nothing_is_kept(actionplan, two_steps):
    ended = actionplan("apply", two_steps, stdin="y\n")
    assert ended.code == 1
    assert "no terminal to ask on; add --yes" in ended.err
    assert actionplan.plans() == []


def test_the_first_ctrl_c_pauses_and_the_plan_goes_on_where_it_stopped(actionplan, two_steps, gate):
    with actionplan.on_terminal("apply", two_steps, "--yes") as terminal:
        gate.wait()
        terminal.type("\x03")
        terminal.wait_for("SIGINT: pausing")
        gate.let_go()
        assert terminal.end() == 5
        seen = plain(terminal.seen)
    assert "Left to do: second" in seen
    assert f"Continue: actionplan apply {actionplan.plan().uuid[:8]}" in seen
    actionplan.wait_for(PlanState.PAUSED, first=ActionState.SUCCEEDED, second=ActionState.PENDING)
    again = actionplan.good("apply", "last", "--yes")
    assert "start      first" not in again
    assert {a.attempts for a in actionplan.plan().actions} == {1}
    assert actionplan.plan().state is PlanState.SUCCEEDED


def test_the_second_ctrl_c_cancels_and_stops_what_runs(actionplan, two_steps, gate):
    with actionplan.on_terminal("apply", two_steps, "--yes") as terminal:
        gate.wait()
        terminal.type("\x03")
        terminal.wait_for("SIGINT: pausing")
        terminal.type("\x03")
        assert terminal.end() == 5
        seen = plain(terminal.seen)
    assert "cancelled by SIGINT (Ctrl-C); " in seen
    assert "by the applier" not in seen
    cancelled = ActionState.CANCELLED
    actionplan.wait_for(PlanState.CANCELLED, first=cancelled, second=cancelled)


def test_a_terminal_that_hangs_up_pauses_the_plan_and_loses_nothing(actionplan, two_steps, gate):
    with actionplan.on_terminal("apply", two_steps, "--yes") as terminal:
        gate.wait()
        terminal.wait_for("running")
        # Closing it sends SIGHUP; an interactive shell would send another one.
        terminal.hang_up()
        os.kill(terminal.pid, signal.SIGHUP)
        gate.let_go()
        assert terminal.end() == 5
    actionplan.wait_for(PlanState.PAUSED, first=ActionState.SUCCEEDED, second=ActionState.PENDING)
    actionplan.good("apply", "last", "--yes")
    actionplan.wait_for(PlanState.SUCCEEDED)


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_a_simple_terminal_gets_no_colours(actionplan, two_steps, gate, variable):
    actionplan.environment[variable] = "dumb" if variable == "TERM" else "1"
    gate.leave_open()
    with actionplan.on_terminal("apply", two_steps, "--yes") as terminal:
        assert terminal.end() == 0
    assert "\x1b[3" not in terminal.seen
    if variable == "TERM":
        assert "start      first" in terminal.seen


def test_a_reader_that_leaves_does_not_disturb_the_run(actionplan, two_steps, gate):
    process = actionplan.start("apply", two_steps, "--yes", "--set", "max_workers=1")
    assert process.stdout.readline().startswith("Plan ")
    process.stdout.close()
    gate.wait()
    gate.let_go()
    assert process.wait() == 0
    assert process.stderr.read() == ""
    process.stderr.close()
    actionplan.wait_for(PlanState.SUCCEEDED)


def test_what_is_typed_below_the_block_leaves_no_trace(actionplan, two_steps, gate):
    """Neither on the terminal, nor for the shell that reads from it afterwards."""
    with actionplan.on_terminal("apply", two_steps, "--yes") as terminal:
        terminal.wait_for("running")
        gate.wait()
        with actionplan.on_terminal("watch", "last") as watching:
            watching.wait_for("running")
            for one in (terminal, watching):
                assert not one.echoes
                one.type("\n\nrm -r here\n")
            gate.let_go()
            for one in (watching, terminal):
                assert one.end() == 0
                assert "rm -r" not in plain(one.seen)
                assert one.echoes


def test_the_terminal_echoes_again_when_ctrl_c_ends_the_command(actionplan, running):
    with actionplan.on_terminal("watch", "last") as watching:
        watching.wait_for("running")
        assert not watching.echoes
        os.kill(watching.pid, signal.SIGINT)
        assert watching.end() == 130
        assert watching.echoes
    assert running.poll() is None
