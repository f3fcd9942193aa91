# SPDX-License-Identifier: Apache-2.0
"""Commands outlive their applier: whoever takes the plan over follows them to their end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_until
from sshd import lives

from applier.machines import local_jobs
from applier.machines.job_names import is_permit
from planner.states import ActionState, PlanState

#: Begins, says so, waits until it is let go, and ends with exit code 7, which is accepted.
COMMAND = """\
echo begin >> effects; echo first; echo $$ > number
while [ -d . ] && [ ! -e go ]; do sleep 0.02; done
echo end >> effects; echo last; exit 7
"""


def action(name: str, folder: Path, command: str = COMMAND, **more: Any) -> Mapping[str, Any]:
    given = {"command": command, "cwd": str(folder), "changed_exit_codes": [7], **more}
    return {"name": name, "action_type": "shell", "input_parameters": given}


def kill(applier: subprocess.Popen[str]) -> None:
    applier.kill()
    applier.communicate()


def begin(actionplan: CommandLine, *actions: Mapping[str, Any], **fields: Any) -> None:
    """Apply a plan, and kill the applier once its first command has begun."""
    actionplan.document("plan.yaml", *actions, **fields)
    with actionplan.start("apply", "plan.yaml", "--yes") as applier:
        wait_until(lambda: number_of(actionplan))
        kill(applier)


def number_of(actionplan: CommandLine) -> int | None:
    """Return the number of the process that the command has written, once it is whole."""
    file = actionplan.folder / "number"
    text = file.read_text() if file.exists() else ""
    return int(text) if text.endswith("\n") else None


def jobs(actionplan: CommandLine) -> list[str]:
    place = actionplan.record.parent / "jobs"
    names = sorted(path.name for path in place.iterdir()) if place.exists() else []
    return [name for name in names if not is_permit(name)]


def effects(actionplan: CommandLine) -> list[str]:
    return (actionplan.folder / "effects").read_text().split()


def shown(actionplan: CommandLine, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        actionplan.good("action", "show", "last", name, "-f", "json")
    )
    return found


@pytest.fixture
def command_ends(actionplan: CommandLine) -> Any:
    """Let the command of a test that failed end, too."""
    yield
    (actionplan.folder / "go").touch()


pytestmark = pytest.mark.usefixtures("command_ends")


def test_a_command_that_outlived_its_applier_is_followed_to_its_end(actionplan):
    """One begin, one end, its exit code and its whole output; what it holds stays held."""
    folder = actionplan.folder
    limits = {"parallelization": {"shell": 1}}
    other = action("second", folder, "cat effects; exit 7")
    begin(actionplan, action("first", folder), other, options=limits)
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        (folder / "go").touch()
        out, err = taker.communicate()
        assert taker.returncode == 0, out + err
    assert " taken over first " in out
    assert effects(actionplan) == ["begin", "end"]
    plan = actionplan.plan()
    assert plan.state is PlanState.SUCCEEDED
    assert [(a.state, a.outcome, a.attempts) for a in plan.actions] == [
        ("SUCCEEDED", "changed", 1),
        ("SUCCEEDED", "changed", 1),
    ]
    assert shown(actionplan, "first")["output"] == "first\nlast\n"
    assert shown(actionplan, "second")["output"] == "begin\nend\n", "it has waited for the first"
    assert jobs(actionplan) == []


def test_a_command_whose_program_has_removed_itself_is_followed_to_its_end(actionplan):
    script = actionplan.folder / "upgrade.sh"
    script.write_text(f'#!/bin/sh\nrm "$0"\n{COMMAND}')
    script.chmod(0o755)
    given = {"argv": [str(script)], "cwd": str(actionplan.folder), "changed_exit_codes": [7]}
    begin(actionplan, {"name": "first", "action_type": "shell", "input_parameters": given})
    assert not script.exists()
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        (actionplan.folder / "go").touch()
        out, err = taker.communicate()
    assert taker.returncode == 0, out + err
    assert effects(actionplan) == ["begin", "end"]


def test_a_command_that_ended_meanwhile_decides_by_its_exit_code(actionplan):
    folder = actionplan.folder
    begin(actionplan, action("first", folder, outcome_lines={"created": "last"}))
    (folder / "go").touch()
    (name,) = jobs(actionplan)
    wait_until((actionplan.record.parent / "jobs" / name / "rc").exists)
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert effects(actionplan) == ["begin", "end"]
    assert str(actionplan.plan().actions[0].outcome) == "created"
    assert shown(actionplan, "first")["output"] == "first\nlast\n"


def test_one_that_failed_meanwhile_is_a_failure_and_no_doubt(actionplan):
    begin(actionplan, action("first", actionplan.folder, changed_exit_codes=[0]))
    (actionplan.folder / "go").touch()
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 3
    (first,) = actionplan.plan().actions
    assert (first.state, first.outcome) == ("FAILED", "failed")
    assert first.status_message.endswith(": exit code 7: last")
    assert effects(actionplan) == ["begin", "end"]


def test_a_time_out_counts_from_the_start_and_reaches_it(actionplan):
    begin(actionplan, action("first", actionplan.folder, timeout_s=3600))
    number = number_of(actionplan)
    assert lives(number)
    # As if an hour had passed since.
    file = actionplan.record.parent / "jobs" / jobs(actionplan)[0] / "pid"
    pid, start, boot, up = file.read_text().split()
    file.write_text(f"{pid} {start} {boot} {float(up) - 3600:.2f}\n")
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 3
    (first,) = actionplan.plan().actions
    assert "had not ended after 3600 s, and was stopped: first" in first.status_message
    assert not lives(number)


@pytest.mark.parametrize("verb", ["abort", "cancel"])
def test_an_abort_and_a_cancel_reach_it(actionplan, verb):
    begin(actionplan, action("first", actionplan.folder))
    number = number_of(actionplan)
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        words = ["action", "abort", "last", "first"] if verb == "abort" else ["cancel", "last"]
        actionplan.good(*words)
        taker.communicate()
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.CANCELLED
    assert first.status_message.startswith("aborted: ")
    assert not lives(number)
    assert effects(actionplan) == ["begin"]
    assert jobs(actionplan) == []


#: Its child outlives a kill of its process group.
WITH_CHILD = "setsid sh -c 'echo $$ > number; echo child; exec sleep 1000' & wait"


def kill_shell_of_command(actionplan):
    """Kill the process group of the one command, but not its child; return the child's number."""
    number = number_of(actionplan)
    place = actionplan.record.parent / "jobs"
    os.killpg(int((place / jobs(actionplan)[0] / "pid").read_text().split()[0]), signal.SIGKILL)
    wait_until(lambda: local_jobs.find(place)[0].state == "killed")
    return number


def test_what_outlives_the_shell_of_its_command_is_followed_and_holds_its_place(actionplan):
    """Then the action is in doubt, because the exit code is lost; the next one starts."""
    actions = [action("first", actionplan.folder, WITH_CHILD), action("second", actionplan.folder)]
    (actionplan.folder / "go").touch()
    begin(actionplan, *actions, options={"parallelization": {"shell": 1}})
    number = kill_shell_of_command(actionplan)
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(
            PlanState.ONGOING, first=ActionState.ONGOING, second=ActionState.PENDING
        )
        assert lives(number)
        os.kill(number, signal.SIGKILL)
        taker.communicate()
    first, second = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert "command was killed together with its shell; it is not known" in first.status_message
    assert first.attempts == 1
    assert second.state is ActionState.SUCCEEDED
    assert first.ended_at <= second.started_at


def test_an_abort_reaches_what_outlives_the_shell_of_its_command(actionplan):
    begin(actionplan, action("first", actionplan.folder, WITH_CHILD))
    number = kill_shell_of_command(actionplan)
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        actionplan.good("action", "abort", "last", "first")
        taker.communicate()
    assert actionplan.plan().actions[0].state is ActionState.CANCELLED
    assert not lives(number)


def test_a_command_that_another_user_of_this_host_has_left_is_in_doubt(actionplan):
    """Their folders of jobs differ, and nobody sees what is in that of the other."""
    begin(actionplan, action("first", actionplan.folder))
    place = actionplan.record.parent / "jobs"
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        (left_in,) = record.execute("SELECT claimant_jobs FROM actionplan_plan").fetchone()
        record.execute("UPDATE actionplan_plan SET claimant_jobs = '/var/other/jobs'")
    assert left_in == str(place)
    place.rename(place.with_name("unseen"))
    actionplan.good("resume", "last")
    actionplan("apply", "last", "--yes")
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert f"left it in /var/other/jobs, and the commands of this user are in {place}" in (
        first.status_message
    )
    (actionplan.folder / "go").touch()


def test_a_restart_of_the_machine_leaves_it_in_doubt_and_says_so(actionplan):
    begin(actionplan, action("first", actionplan.folder))
    (actionplan.folder / "go").touch()
    folder = actionplan.record.parent / "jobs" / jobs(actionplan)[0]
    wait_until((folder / "rc").exists)
    (folder / "rc").unlink()
    pid, start, _, up = (folder / "pid").read_text().split()
    (folder / "pid").write_text(f"{pid} {start} another-boot {up}\n")
    actionplan.good("resume", "last")
    actionplan("apply", "last", "--yes")
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert "the machine was restarted while its command ran" in first.status_message


def test_a_cancel_without_an_applier_ends_what_that_has_left(actionplan):
    begin(actionplan, action("first", actionplan.folder))
    number = number_of(actionplan)
    assert "is CANCELLED: the process that ran it is gone" in actionplan.good("cancel", "last")
    assert not lives(number)
    (first,) = actionplan.plan().actions
    assert (first.state, first.state_reason) == (ActionState.CANCELLED, "aborted")
    assert first.status_message == "aborted: its command was ended"
    (attempt,) = shown(actionplan, "first")["attempts_made"]
    assert attempt["state"] == "CANCELLED"
    actionplan.good("job", "clean")
    assert jobs(actionplan) == []


def test_a_cancel_of_a_plan_that_waits_again_ends_what_was_left_as_well(actionplan):
    begin(actionplan, action("first", actionplan.folder))
    number = number_of(actionplan)
    actionplan.good("resume", "last")
    told = actionplan.good("cancel", "last")
    assert "first is CANCELLED: aborted: its command was ended" in told
    assert not lives(number)
    assert actionplan.plan().actions[0].state is ActionState.CANCELLED


def test_a_command_that_had_ended_before_the_cancel_is_in_doubt_with_its_exit_code(actionplan):
    """Only a run evaluates an exit code: resume does."""
    begin(actionplan, action("first", actionplan.folder))
    (actionplan.folder / "go").touch()
    wait_until(lambda: local_jobs.find(actionplan.record.parent / "jobs")[0].code == 7)
    actionplan.good("cancel", "last")
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert "its command has ended with exit code 7" in first.status_message
    actionplan.good("resume", "last")
    actionplan.good("apply", "last", "--yes")
    assert actionplan.plan().actions[0].state is ActionState.SUCCEEDED


def test_a_cancel_says_what_it_cannot_see(actionplan):
    """The process that ran the plan was on another host."""
    begin(actionplan, action("first", actionplan.folder))
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        record.execute("UPDATE actionplan_plan SET claimant_host = 'elsewhere'")
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("unseen"))
    actionplan.good("resume", "last")
    actionplan.good("cancel", "last")
    place.with_name("unseen").rename(place)
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert "its command may still run on elsewhere" in first.status_message


def test_what_was_in_doubt_goes_on_once_its_command_is_found(actionplan):
    """It ends as the same attempt: whoever put it in doubt could not see that it ran."""
    begin(actionplan, action("first", actionplan.folder))
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("unseen"))
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 5
    assert actionplan.plan().actions[0].state is ActionState.UNKNOWN
    shutil.rmtree(place, ignore_errors=True)
    place.with_name("unseen").rename(place)
    assert "its command has been running for" in actionplan.good("resume", "last", "--dry-run")
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        (actionplan.folder / "go").touch()
        taker.communicate()
        assert taker.returncode == 0
    (first,) = actionplan.plan().actions
    assert (first.state, first.attempts) == ("SUCCEEDED", 1)
    assert len(shown(actionplan, "first")["attempts_made"]) == 1
    assert effects(actionplan) == ["begin", "end"]


@pytest.mark.parametrize("rerun_safe", [False, True])
def test_a_command_on_the_host_of_another_applier_is_in_doubt_and_names_it(actionplan, rerun_safe):
    """Not even an action that may be repeated is started beside what may still run there."""
    folder = actionplan.folder
    if rerun_safe:
        (folder / "bin").mkdir()
        puppet = folder / "bin" / "puppet"
        puppet.write_text(f"#!/bin/sh\ncd {folder}\n{COMMAND}")
        puppet.chmod(0o755)
        actionplan.environment["PATH"] = f"{folder / 'bin'}:{actionplan.environment['PATH']}"
        given = {"manifest": "/site.pp"}
        begin(actionplan, {"name": "first", "action_type": "puppet", "input_parameters": given})
    else:
        begin(actionplan, action("first", folder))
    actionplan.good("resume", "last")
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        record.execute("UPDATE actionplan_plan SET claimant_host = 'control-7'")
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("on-control-7"))
    assert actionplan("apply", "last", "--yes").code == 5
    (first,) = actionplan.plan().actions
    assert first.state is ActionState.UNKNOWN
    assert "its command may still run on control-7, where process" in first.status_message
    assert effects(actionplan) == ["begin"]
    # The last applier was one of this host, which knows no more than before.
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 5
    assert actionplan.plan().actions[0].state is ActionState.UNKNOWN
    assert effects(actionplan) == ["begin"]
    actionplan.good("action", "set", "last", "first", "--state", "failed", "--reason", "looked")
    (actionplan.folder / "go").touch()
    actionplan.good("resume", "last")
    actionplan("apply", "last", "--yes")
    assert effects(actionplan).count("begin") == 2


def test_what_comes_after_a_command_that_may_run_elsewhere_is_not_begun(actionplan):
    """In each run, until somebody says what became of it."""
    folder = actionplan.folder
    names = ("second", "third")
    more = [action(name, folder, f"echo {name} >> effects; exit 7") for name in names]
    limits = {"parallelization": {"shell": 1}}
    begin(actionplan, action("first", folder), *more, options=limits)
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("on-another-host"))
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        record.execute("UPDATE actionplan_plan SET claimant_host = 'control-7'")
    for _ in range(2):
        actionplan.good("resume", "last")
        assert actionplan("apply", "last", "--yes").code == 5
        states = {a.name: (a.state, a.status_message) for a in actionplan.plan().actions}
        held = "its turn is held by first, which hangs or may still run"
        assert states["second"] == states["third"] == (ActionState.CANCELLED, held)
        assert states["first"][0] is ActionState.UNKNOWN
        assert effects(actionplan) == ["begin"]
    actionplan.good("action", "set", "last", "first", "--state", "succeeded", "--reason", "looked")
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert sorted(effects(actionplan)[1:]) == ["second", "third"]


def test_what_is_left_is_listed_and_what_nobody_needs_is_removed(actionplan):
    begin(actionplan, action("first", actionplan.folder))
    place = actionplan.record.parent / "jobs"
    (name,) = jobs(actionplan)
    old = place / "no-such-plan.a.1.1"
    old.mkdir()
    (old / "pid").write_text("1 1 another-boot 1\n")
    rows = json.loads(actionplan.good("job", "list", "-f", "json"))
    assert sorted((r["action"], r["attempt"], r["state"], r["leftover"]) for r in rows) == [
        ("a", 1, "restarted", "unknown plan"),
        ("first", 1, "runs", "no"),
    ]
    assert actionplan.good("job", "clean", "--yes") == "1 leftover removed, 1 kept.\n"
    assert jobs(actionplan) == [name]
    (actionplan.folder / "go").touch()
    wait_until((place / name / "rc").exists)
    assert actionplan.good("job", "clean") == "0 leftovers removed, 1 kept.\n"
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert "No commands are left" in actionplan("job", "list").out


def test_a_purge_removes_what_the_commands_of_purged_plans_left_here_and_nothing_else(actionplan):
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    actionplan.good("apply", "plan.yaml", "--yes")
    actionplan.good("create", "plan.yaml")
    kept, ended = sorted(actionplan.plans(), key=lambda plan: str(plan.state))
    place = actionplan.record.parent / "jobs"
    for uuid in (ended.uuid, kept.uuid, "plan-of-another-record"):
        folder = place / f"{uuid}.a.1.1"
        folder.mkdir(parents=True)
        (folder / "pid").write_text("1 1 another-boot 1\n")
    assert actionplan.good("purge", "--older-than", "0m", "--yes").splitlines() == [
        "1 plan deleted for good.",
        "1 leftover of commands removed from this machine.",
    ]
    assert sorted(jobs(actionplan)) == sorted(
        [f"{kept.uuid}.a.1.1", "plan-of-another-record.a.1.1"]
    )


def test_processes_that_outlived_the_shell_of_their_command_are_listed_and_keep_it(actionplan):
    """Nobody looks for the action any more, but its work may still be done."""
    begin(actionplan, action("first", actionplan.folder, WITH_CHILD))
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("unseen"))
    actionplan.good("resume", "last")
    actionplan("apply", "last", "--yes")
    actionplan.good("action", "set", "last", "first", "--state", "failed", "--reason", "seen")
    shutil.rmtree(place, ignore_errors=True)
    place.with_name("unseen").rename(place)
    number = str(kill_shell_of_command(actionplan))
    (name,) = jobs(actionplan)
    (row,) = json.loads(actionplan.good("job", "list", "-f", "json"))
    assert (row["state"], row["processes"], row["leftover"]) == ("killed", number, "no")
    told = actionplan.good("job", "clean")
    assert f"{name}: its shell was killed, and processes of it still run: {number}\n" in told
    assert told.endswith("0 leftovers removed, 1 kept.\n")
    os.kill(int(number), signal.SIGKILL)
    wait_until(lambda: not lives(int(number)))
    assert actionplan.good("job", "clean") == "2 leftovers removed, 0 kept.\n"  # with its permit


def test_a_running_job_of_an_attempt_that_is_recorded_is_not_removed(actionplan):
    """An operator has settled the action; its command still runs."""
    begin(actionplan, action("first", actionplan.folder))
    place = actionplan.record.parent / "jobs"
    place.rename(place.with_name("unseen"))
    actionplan.good("resume", "last")
    actionplan("apply", "last", "--yes")
    actionplan.good("action", "set", "last", "first", "--state", "failed", "--reason", "seen")
    shutil.rmtree(place, ignore_errors=True)
    place.with_name("unseen").rename(place)
    assert actionplan.good("job", "clean") == "0 leftovers removed, 1 kept.\n"
    (name,) = jobs(actionplan)
    (actionplan.folder / "go").touch()
    wait_until((place / name / "rc").exists)
    assert actionplan.good("job", "clean") == "2 leftovers removed, 0 kept.\n"  # with its permit
    assert jobs(actionplan) == []
