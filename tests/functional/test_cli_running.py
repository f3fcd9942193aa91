# SPDX-License-Identifier: Apache-2.0
"""A plan that somebody runs, seen and steered from another terminal; before, and afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

from command_line import CommandLine

from planner.plan.states import ActionState, PlanState

DONE = ActionState.SUCCEEDED
NOP = {"name": "a", "action_type": "nop", "touches": ["node:n"]}


def short(actionplan: CommandLine) -> str:
    """Return the beginning of the plan's uuid."""
    return actionplan.plan().uuid[:8]


def runner(process: subprocess.Popen[str]) -> str:
    """Name the process as the program does, whatever this host is called."""
    return rf"operator on \S+, process {process.pid}"


# A plan under way


def test_a_plan_under_way_says_who_runs_it_and_is_left_to_that_process(actionplan, running, gate):
    out = actionplan.good("action", "skip", "last", "third", "--reason", "moved by hand")
    assert "has been asked to skip third." in out
    lines = actionplan.good("show", "last").splitlines()
    assert "ONGOING" in lines[0]
    assert re.fullmatch(f"Run by {runner(running)}", lines[2])
    assert lines[3].startswith("Run with at most 10 actions at once (default), on_failure = ")
    assert re.fullmatch(rf"Heard of \d+s ago, .*{actionplan.record.name}", lines[4])
    assert re.fullmatch(r"Requested: skip third, .*: moved by hand", lines[5])
    assert "nobody runs it" not in actionplan.good("list")
    uuid = short(actionplan)
    for words, why in (
        (("apply", "last", "--yes"), f"actionplan stop {uuid}"),
        (("action", "skip", "last", "first", "--reason", "x"), "first is ONGOING: only PENDING"),
        (("delete", "last"), f"actionplan stop {uuid} --cancel"),
        (("export", "last"), "only one that nobody runs"),
    ):
        ended = actionplan(*words)
        assert (ended.code, ended.out, why in ended.err) == (1, "", True), ended
    assert re.search(runner(running), actionplan("apply", "last", "--yes").err)
    assert "first runs since" in actionplan.good("why", "last", "first")
    assert "for first, running" in actionplan.good("why", "last", "second")
    # Nobody can tell when the request is read; paused and gone on with, it has been for certain.
    running.send_signal(signal.SIGINT)
    gate.let_go()
    assert running.wait() == 5
    actionplan.good("apply", "last", "--yes")
    actionplan.wait_for(PlanState.SUCCEEDED, second=DONE, third=ActionState.SKIPPED, fourth=DONE)
    row = json.loads(actionplan.good("action", "show", "last", "third", "-f", "json"))
    assert "moved by hand" in row["status_message"]


def test_pause_and_limits_reach_whoever_runs_the_plan_and_who_watches_it(actionplan, running, gate):
    actionplan.good("set", "last", "--limit", "node:*=1", "--max-workers", "2")
    assert "limits: node:* 1 (planned: none)" in actionplan.good("show", "last")
    value = json.loads(actionplan.good("show", "last", "-f", "json"))
    assert value["limits_now"] == {"node:*": 1, "max_workers": 2}
    asked = actionplan("stop", "last")
    assert (asked.code, asked.out.splitlines()[-1]) == (1, "Nothing was stopped.")
    assert "has been asked" not in asked.out
    out = actionplan.good("stop", "last", "--reason", "network work", stdin="p\n")
    assert "has been asked to pause it." in out
    with actionplan.start("watch", "last") as watched:
        # Once the request has been read nothing starts; to be sure of that the plan tells so.
        running.send_signal(signal.SIGINT)
        gate.let_go()
        assert running.wait() == 5
        assert watched.wait() == 5
    actionplan.wait_for(PlanState.PAUSED, first=DONE, second=ActionState.PENDING)
    assert "planned: none" not in actionplan.good("show", "last")


def test_who_waits_for_what_another_plan_works_on_says_so(actionplan, gate):
    one = {**gate.action("first"), "touches": ["instance:web-1"]}
    actionplan.document("one.yaml", one, name="one")
    actionplan.document("two.yaml", {**NOP, "touches": ["instance:web-1"]})
    with actionplan.start("apply", "one.yaml", "--yes") as works:
        gate.wait()
        with actionplan.start("apply", "two.yaml", "--yes") as waits:
            told = next(line for line in waits.stderr if "wait" in line)
            assert re.search(r"for instance:web-1, on which plan \w+ \(one\) of .* works", told)
            gate.let_go()
            assert (works.wait(), waits.wait()) == (0, 0)


# Watching


def test_a_watch_that_is_interrupted_leaves_the_plan_alone_until_an_action_is_aborted(
    actionplan, running
):
    with actionplan.start("watch", "last") as watching:
        watching.stdout.readline()
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        out, _ = watching.communicate()
    assert (watching.returncode, "Stopped watching" in out) == (130, True)
    with actionplan.on_terminal("watch", "last") as terminal:
        terminal.wait_for("0/4 ended")
        actionplan.good("stop", "last", "--abort", "first", "--reason", "it hangs")
        terminal.wait_for("RECAP")
        assert terminal.end() == 3
    assert running.wait() == 3
    actionplan.wait_for(PlanState.FAILED, first=ActionState.CANCELLED)


# A process that was killed


def test_a_process_that_was_killed_is_told_from_one_that_runs(actionplan, running):
    with actionplan.start("watch", "last") as watching:
        watching.stdout.readline()
        running.kill()
        running.wait()
        out, _ = watching.communicate()
    assert watching.returncode == 5
    assert "Nobody runs it any more" in out
    assert "that process is gone" in actionplan.good("show", "last")
    listed = actionplan.good("list").splitlines()
    assert "ONGOING, nobody runs it" in listed[2]
    assert listed[4:] == [f"Continue it: actionplan apply {short(actionplan)}"]
    assert actionplan.good("list", "-f", "value", "-c", "state") == "ONGOING\n"
    of_plan, of_action = actionplan.good("stop", "last", "--cancel").splitlines()
    assert of_plan.startswith(f"Plan {short(actionplan)} is CANCELLED: ")
    assert of_action.startswith("  first is CANCELLED: aborted: ")
    assert actionplan.plan().state is PlanState.CANCELLED


def test_apply_goes_on_with_a_plan_whose_applier_was_killed(actionplan, running, gate):
    running.kill()
    running.wait()
    gate.let_go()
    out = actionplan.good("apply", "last", "--yes", "--reason", "after the crash")
    assert "to verify first" in out
    assert actionplan.plan().state is PlanState.SUCCEEDED
    resumed, ran = json.loads(actionplan.good("history", "last", "-f", "json"))[-2:]
    assert (resumed["verb"], resumed["why"]) == ("resume", "after the crash")
    assert ran["why"].startswith("after the crash; process ")


def test_what_was_cut_off_is_resumed_and_what_is_in_doubt_is_settled(actionplan, running, gate):
    running.kill()
    running.wait()
    out = actionplan.good("resume", "last", "--dry-run").splitlines()
    assert re.findall(r"\d", out[0]) == ["0", "1", "3"]
    assert out[-1].endswith(", except by shell")
    assert actionplan.plan().state is PlanState.ONGOING
    assert actionplan.good("resume", "last").splitlines()[-1] == out[-1]
    assert actionplan.plan().state is PlanState.PENDING
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
    actionplan.good("apply", "last", "--yes")
    plan = actionplan.wait_for(PlanState.SUCCEEDED, first=DONE, fourth=DONE)
    assert plan.actions[0].attempts == 1


# A plan that nobody runs


def test_every_try_is_shown_with_what_it_printed(actionplan):
    tried = "test -e there && echo found || { echo missing; exit 3; }"
    shell = {"action_type": "shell", "input_parameters": {"command": tried}}
    retried = {"command": "test -e again || { touch again; exit 3; }"}
    again = {**shell, "name": "again", "retries": 1, "input_parameters": retried}
    actionplan.document("plan.yaml", {"name": "a", **shell}, again)
    ended = actionplan("apply", "plan.yaml", "--yes", "--set", "on_failure=continue")
    assert (ended.code, "retry: again: " in ended.out) == (3, True)
    assert "SUCCEEDED (changed) [2/2] again" in ended.out
    actionplan.good("resume", "last")
    (actionplan.folder / "there").touch()
    actionplan.good("apply", "last", "--yes")
    out = actionplan.good("action", "show", "last", "a")
    for text in ("attempt 1", "FAILED (failed)", "  | missing", "attempt 2", "  | found"):
        assert text in out
    tries = json.loads(actionplan.good("action", "show", "last", "a", "-f", "json"))
    assert [t["state"] for t in tries["attempts_made"]] == ["FAILED", "SUCCEEDED"]


def test_what_makes_no_sense_is_refused_with_a_sentence(actionplan):
    actionplan.good("create", actionplan.document("plan.yaml", NOP))
    actionplan.check_refusals(
        "steering_refused",
        "stop last",
        "stop last --pause",
        "stop last --abort a",
        "stop last --abort a --now",
        "set last --max-workers 2",
        "set last",
        "set last --limit type:nopp=1",
        "set last --limit type:nop",
        "action force-complete last a",
        "watch last",
        "resume last --dry-run",
        "action set last a --state failed --reason x",
        "undelete last",
        "start last --at tomorrow",
        "start last --at 2020-01-01T10:00",
        "start last --in-window",
    )
    assert actionplan.plan().state is PlanState.RECOMMENDED
