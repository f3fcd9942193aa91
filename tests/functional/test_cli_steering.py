# SPDX-License-Identifier: Apache-2.0
"""A running plan steered from another terminal: pause, limits, abort, why; and what it records."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from command_line import ROOT, CommandLine, Gate, wait_until

from planner.states import ActionState, PlanState


def test_pause_reaches_whoever_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    out = actionplan.good("pause", "last", "--reason", "network work")
    assert "has been asked to pause it." in out
    watched = actionplan.start("watch", "last")
    with watched:
        # Once the request has been read nothing starts; to be sure of that the plan tells so.
        running.send_signal(signal.SIGINT)
        gate.let_go()
        assert running.wait() == 5
        assert watched.wait() == 5
    actionplan.wait_for(PlanState.PAUSED, first=ActionState.SUCCEEDED, second=ActionState.PENDING)
    assert "is PAUSED already" in actionplan.good("pause", "last")


def test_limits_reach_whoever_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    words = ("--limit", "node:*=1", "--max-workers", "2", "--reason", "slow disks")
    out = actionplan.good("set", "last", *words)
    assert "has been asked for node:*=1, max_workers=2." in out
    shown = actionplan.good("show", "last")
    assert "Requested: limit node:*=1 max_workers=2, by operator" in shown
    assert "at most 2 at once; limits: node:* 1 (planned: none)" in shown
    value = json.loads(actionplan.good("show", "last", "-f", "json"))
    assert value["limits_now"] == {"node:*": 1, "max_workers": 2}
    gate.let_go()
    assert running.wait() == 0
    assert "planned: none" not in actionplan.good("show", "last")
    assert "limits_now" not in json.loads(actionplan.good("show", "last", "-f", "json"))


def test_an_action_that_runs_can_be_aborted(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    out = actionplan.good("action", "abort", "last", "first", "--reason", "it hangs")
    assert "has been asked to abort first." in out
    running.wait()
    plan = actionplan.wait_for(first=ActionState.CANCELLED)
    assert plan.state is PlanState.FAILED


def test_why_says_what_an_action_waits_for(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    assert "first runs since" in actionplan.good("why", "last", "first")
    assert actionplan.good("why", "last", "second").splitlines() == [
        "second waits:",
        "  for first, running",
    ]


def test_why_names_who_holds_the_limit(actionplan: CommandLine, gate: Gate) -> None:
    other = {**gate.action("other"), "touches": ["node:n"]}
    first = {**gate.action("first"), "touches": ["node:n"]}
    options = {"parallelization": {"shell": 2}}
    actionplan.document("p.yaml", first, other, options=options, limits={"node:*": 1})
    with actionplan.start("apply", "p.yaml", "--yes") as process:
        gate.wait()
        names = {a.state: str(a.name) for a in actionplan.plan().actions}
        holder, waits = names[ActionState.ONGOING], names[ActionState.PENDING]
        out = actionplan.good("why", "last", waits)
        assert f"for token node:n (at most 1 at once), held by {holder}" in out
        gate.leave_open()
        gate.let_go()
        assert process.wait() == 0


def test_watch_tells_what_apply_tells(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    with actionplan.start("watch", "last") as watching:
        assert watching.stdout
        lines = [watching.stdout.readline() for _ in range(3)]
        assert lines[0] == "Cloud: simulated: nothing real is touched, except by shell\n"
        assert "plan ONGOING" in lines[1]
        assert "start      first" in lines[2]
        gate.let_go()
        out, err = watching.communicate()
    assert (watching.returncode, err) == (0, "")
    assert "SUCCEEDED (changed) [4/4] fourth" in out
    assert "RECAP" in out
    assert running.wait() == 0


def test_a_plan_that_waits_is_watched_from_its_start(actionplan: CommandLine, gate: Gate) -> None:
    actionplan.document("p.yaml", gate.action("first"))
    actionplan.good("create", "p.yaml")
    actionplan.good("start", "last")
    with actionplan.start("watch", "last") as watching:
        assert watching.stdout
        lines = [watching.stdout.readline() for _ in range(4)]
        assert lines[0].startswith("Cloud: simulated: nothing real is touched")
        assert "To run the plan here:" in lines[1]
        assert lines[2].startswith("actionplan apply ")
        assert "plan PENDING" in lines[3]
        with actionplan.start("apply", "last", "--yes") as process:
            assert "plan ONGOING" in watching.stdout.readline()
            assert "start      first" in watching.stdout.readline()
            gate.let_go()
            assert process.wait() == 0
        assert watching.wait() == 0


def test_a_watch_that_is_interrupted_leaves_the_plan_alone(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    with actionplan.start("watch", "last") as watching:
        assert watching.stdout
        watching.stdout.readline()
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        out, _ = watching.communicate()
    assert watching.returncode == 130
    assert "Stopped watching" in out
    gate.let_go()
    assert running.wait() == 0


def test_a_watch_ends_when_whoever_ran_the_plan_is_gone(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    with actionplan.start("watch", "last") as watching:
        assert watching.stdout
        watching.stdout.readline()
        running.kill()
        running.wait()
        out, _ = watching.communicate()
    assert watching.returncode == 5
    assert "Nobody runs it any more. Continue it: actionplan resume" in out


def test_watching_on_a_terminal_shows_the_block(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    with actionplan.on_terminal("watch", "last") as terminal:
        terminal.wait_for("0/4 ended")
        gate.let_go()
        terminal.wait_for("RECAP")
        assert terminal.end() == 0
    assert running.wait() == 0


@pytest.fixture
def crashed(actionplan: CommandLine, running: subprocess.Popen[str]) -> None:
    """Leave the plan behind by a process that was killed."""
    running.kill()
    running.wait()


@pytest.mark.usefixtures("crashed")
def test_what_was_cut_off_is_resumed(actionplan: CommandLine, gate: Gate) -> None:
    out = actionplan.good("resume", "last", "--dry-run")
    assert out.splitlines()[0] == "0 actions done, 1 to verify first, 3 to do."
    assert out.splitlines()[-1] == "Cloud: simulated: nothing real is touched, except by shell"
    assert actionplan.plan().state is PlanState.ONGOING
    out = actionplan.good("resume", "last", "--reason", "power is back")
    assert "is PENDING. Run it: actionplan apply" in out
    assert out.splitlines()[-1] == "Cloud: simulated: nothing real is touched, except by shell"
    # A shell command that was killed cannot be verified: it is in doubt, the operator is asked.
    (pid,) = (actionplan.record.parent / "jobs").glob("*/pid")
    os.killpg(int(pid.read_text().split()[0]), signal.SIGKILL)
    gate.leave_open()
    assert actionplan("apply", "last", "--yes").code == 5
    plan = actionplan.wait_for(PlanState.FAILED, first=ActionState.UNKNOWN)
    assert "action set PLAN first --state" in str(plan.actions[0].status_message)
    words = ("action", "set", "last", "first", "--state", "succeeded", "--reason", "looked")
    assert "first is SUCCEEDED." in actionplan.good(*words)
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    done = ActionState.SUCCEEDED
    plan = actionplan.wait_for(PlanState.SUCCEEDED, first=done, fourth=done)
    assert plan.actions[0].attempts == 1


def test_what_somebody_runs_is_not_resumed(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    for words in ((), ("--dry-run",)):
        ended = actionplan("resume", "last", *words)
        assert (ended.code, ended.out) == (1, "")
        watched, refused = ended.err.splitlines()
        assert "may be alive: waiting for its next heartbeat, for up to 30s" in watched
        assert refused.startswith("Refused: ")
    assert actionplan.plan().state is PlanState.ONGOING
    gate.let_go()
    assert running.wait() == 0


def test_every_try_is_shown_with_what_it_printed(actionplan: CommandLine) -> None:
    script = "test -e there && echo found || { echo missing; exit 3; }"
    shell = {"action_type": "shell", "input_parameters": {"command": script}}
    actionplan.document("plan.yaml", {"name": "a", **shell})
    assert actionplan("apply", "plan.yaml", "--yes").code == 3
    actionplan.good("resume", "last")
    (actionplan.folder / "there").touch()
    assert actionplan("apply", "last", "--yes").code == 0
    out = actionplan.good("action", "show", "last", "a")
    assert "attempt 1" in out
    assert "FAILED (failed)" in out
    assert "  | missing" in out
    assert "attempt 2" in out
    assert "  | found" in out
    tries = json.loads(actionplan.good("action", "show", "last", "a", "-f", "json"))
    assert [t["state"] for t in tries["attempts_made"]] == ["FAILED", "SUCCEEDED"]


def test_a_try_in_vain_is_told_as_such(actionplan: CommandLine) -> None:
    script = "test -e there || { touch there; exit 3; }"
    shell = {"action_type": "shell", "input_parameters": {"command": script}}
    actionplan.document("plan.yaml", {"name": "a", "retries": 1, **shell})
    ended = actionplan("apply", "plan.yaml", "--yes")
    assert ended.code == 0
    assert "retry: a: " in ended.out
    assert "SUCCEEDED (changed) [1/1] a" in ended.out


def test_a_rollback_is_a_plan_to_read_first(actionplan: CommandLine) -> None:
    stop = {"action_type": "stop", "resource_id": "6a1f0001-0000-4000-8000-000000000001"}
    actionplan.document("plan.yaml", {"name": "halt", **stop})
    actionplan.good("apply", "plan.yaml", "--yes")
    done = actionplan.plan()
    out = actionplan.good("rollback", "last")
    assert f"It undoes what plan {done.uuid[:8]} did." in out
    made = actionplan.plans()[0]
    assert (made.state, len(made.actions)) == (PlanState.RECOMMENDED, 1)
    assert f"Next: actionplan apply {made.uuid[:8]}" in out
    actionplan.good("apply", made.uuid, "--yes")
    undone = actionplan.plans()[1]
    assert undone.uuid == done.uuid
    assert [(a.state, a.status_message) for a in undone.actions] == [
        (ActionState.REVERTED, f"undone (rollback plan {made.uuid[:8]})")
    ]
    again = actionplan("rollback", undone.uuid)
    assert again.code == 1
    assert "nothing that it did can be undone" in again.err


def test_what_a_rollback_undid_is_done_again_by_resume(actionplan: CommandLine) -> None:
    stop = {"action_type": "stop", "resource_id": "6a1f0001-0000-4000-8000-000000000001"}
    actionplan.document("plan.yaml", {"name": "halt", **stop})
    actionplan.good("apply", "plan.yaml", "--yes")
    done = actionplan.plan().uuid
    assert actionplan("resume", done).code == 1
    actionplan.good("rollback", done)
    actionplan.good("apply", "last", "--yes")
    do_again = f"a rollback undid some of it; do that again: actionplan resume {done[:8]}"
    for words in (("start", done), ("apply", done, "--yes")):
        told = actionplan(*words)
        assert told.code == 1
        assert do_again in told.err
    assert "0 actions done, 0 to verify first, 1 to do." in actionplan.good("resume", done)
    actionplan.good("apply", done, "--yes")
    (again,) = (plan for plan in actionplan.plans() if plan.uuid == done)
    assert (again.state, again.actions[0].state) == (PlanState.SUCCEEDED, ActionState.SUCCEEDED)
    assert actionplan("resume", done).code == 1


def test_a_maintenance_is_rolled_back_though_its_host_was_disabled(
    actionplan: CommandLine,
) -> None:
    actionplan.good("apply", str(ROOT / "etc/examples/host-maintenance.yaml"), "--yes")
    done = actionplan.plan()
    actionplan.good("rollback", "last")
    out = actionplan.good("apply", "last", "--yes")
    assert actionplan.plans()[0].state is PlanState.SUCCEEDED, out
    states = {a.action_type: a.state for a in actionplan.plans()[1].actions}
    assert actionplan.plans()[1].uuid == done.uuid
    assert states["change_nova_service_state"] is ActionState.REVERTED
    assert states["migrate"] is ActionState.REVERTED


def test_services_are_listed(actionplan: CommandLine) -> None:
    assert "No applier service has reported" in actionplan.good("service", "list")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pause", "last"), "only a running plan can be paused"),
        (("set", "last", "--max-workers", "2"), "limits are changed while somebody runs it"),
        (("set", "last"), "one of them is needed"),
        (("set", "last", "--limit", "type:nopp=1"), "did you mean 'type:nop'?"),
        (("set", "last", "--limit", "type:nop"), "TOKEN=N is expected"),
        (("action", "abort", "last", "a"), "only ONGOING actions can be aborted"),
        (("watch", "last"), "nobody runs it"),
        (("resume", "last", "--dry-run"), "it has not been started yet; run it: "),
        (
            ("action", "set", "last", "a", "--state", "failed", "--reason", "x"),
            "only UNKNOWN can be set to FAILED",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    actionplan: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop", "touches": ["node:n"]})
    actionplan.good("create", "plan.yaml")
    ended = actionplan(*words)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Refused: ")
    assert sentence in ended.err
    assert wait_until(lambda: actionplan.plan().state is PlanState.RECOMMENDED)
