# SPDX-License-Identifier: Apache-2.0
"""A start that is recorded, and whose applier is killed or frozen before the command, runs again.

So it does only if it is certain that the command never began, and never will.
"""

from __future__ import annotations

import functools
import getpass
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_until
from sshd import Sshd, state_of

from applier.engines.attempts_in_progress import AttemptsInProgress
from applier.machines.attempt_jobs import AttemptJobs, Permit
from applier.machines.job_names import is_permit
from applier.machines.local_jobs import LocalJob
from applier.run.interrupted_actions import InterruptedActions
from planner.plan.states import ActionState, PlanState

RECORDED, REACHED = "the start is recorded", "its command is reached"
ABOUT, USED = "the command is about to begin", "the permit is used"
LOOKED = "interrupted actions were looked at"
#: The points: an object, its function, and whether the point is after it.
POINTS: dict[str, tuple[Any, str, bool]] = {
    RECORDED: (AttemptsInProgress, "start", False),
    REACHED: (LocalJob, "_begin", False),
    ABOUT: (AttemptJobs, "begin", False),
    USED: (Permit, "use", True),
    LOOKED: (InterruptedActions, "verify", True),
}
HERE, NODE = "here", "on a node over SSH"


def stop_at(point: str, stop: Callable[[], None]) -> None:
    """Let the program call ``stop`` at a point."""
    place, name, is_after = POINTS[point]
    real = getattr(place, name)

    def stopping(*args: Any, **named: Any) -> Any:
        if not is_after:
            stop()
        result = real(*args, **named)
        if is_after:
            stop()
        return result

    setattr(place, name, stopping)


def kill() -> None:
    """End at once, as by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


def hold() -> None:
    """Make a file ``held``, and wait until there is another, ``let-it-go-on``."""
    Path("held").touch()
    while not Path("let-it-go-on").exists():
        time.sleep(0.01)


@contextmanager
def stopped(actionplan: CommandLine, point: str, how: str, *words: str) -> Iterator[Any]:
    """Start a program that is stopped at a point."""
    stop = functools.partial(stop_at, point, {"kill": kill, "hold": hold}[how])
    with actionplan.start(*words, before=stop, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def killed(actionplan: CommandLine, point: str, *words: str) -> None:
    with stopped(actionplan, point, "kill", *words) as process:
        out, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, out


def saved(actionplan: CommandLine, **given: Any) -> None:
    """Save a plan with an action whose effect is seen: it says of each run that it ran."""
    action = {"command": f"echo ran >> {actionplan.folder}/effects", **given}
    once = {"name": "once", "action_type": "shell", "input_parameters": action}
    actionplan.document("plan.yaml", once)


def effects(actionplan: CommandLine) -> str:
    file = actionplan.folder / "effects"
    return file.read_text() if file.exists() else ""


def folders(actionplan: CommandLine) -> list[str]:
    place = actionplan.record.parent / "jobs"
    return [path.name for path in place.iterdir()] if place.exists() else []


def ended(actionplan: CommandLine) -> tuple[str, int]:
    (action,) = actionplan.plan().actions
    return str(action.state), action.attempts


def resumed(actionplan: CommandLine) -> int:
    actionplan.good("resume", "last")
    return actionplan("apply", "last", "--yes").code


def frozen(
    actionplan: CommandLine, point: str, *words: str, then: Callable[[], object] = bool
) -> str:
    """Freeze an applier at a point, until another has ended its plan; return what it said."""
    with stopped(actionplan, point, "hold", *words) as process:
        wait_until((actionplan.folder / "held").exists)
        with actionplan.locked():
            os.kill(process.pid, signal.SIGSTOP)
            wait_until(lambda: state_of(process.pid) == "T")
        then()
        assert resumed(actionplan) == 0
        (actionplan.folder / "let-it-go-on").touch()
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate()
    assert process.returncode == 1, out
    assert "Traceback" not in out
    return str(out)


@pytest.fixture
def where(request, actionplan, tmp_path) -> Iterator[Mapping[str, str]]:
    """Parameters of a command here, or on a node that is reached over SSH."""
    beats = {"heartbeat_interval_s": 0.5}
    if request.param == HERE:
        actionplan.configure(watcher_applier=beats)
        yield {}
        return
    pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
    with Sshd(tmp_path / "node") as server:
        actionplan.configure(ssh=server.options(), watcher_applier=beats)
        yield {"node": "1", "address": f"{getpass.getuser()}@{server.address}"}


def at(*points: tuple[str, str], is_long: bool = False) -> pytest.MarkDecorator:
    """Run a test for commands at a place, stopped at a point."""
    marks = {HERE: [pytest.mark.long] * is_long}
    marks[NODE] = [pytest.mark.long, pytest.mark.needs("sshd", "ssh-keygen")]
    rows = [pytest.param(place, point, marks=marks[place]) for place, point in points]
    return pytest.mark.parametrize(("where", "point"), rows, indirect=["where"])


@at((HERE, RECORDED), (HERE, REACHED), (HERE, ABOUT), (NODE, RECORDED), (NODE, ABOUT))
def test_one_whose_applier_was_killed_before_its_command_runs_as_a_new_attempt(
    actionplan, where, point
):
    saved(actionplan, **where)
    killed(actionplan, point, "apply", "plan.yaml", "--yes")
    assert actionplan.plan().actions[0].state is ActionState.ONGOING
    assert resumed(actionplan) == 0
    assert ended(actionplan) == ("SUCCEEDED", 2)
    assert effects(actionplan) == "ran\n"
    told = actionplan.good("action", "show", "last", "once", "-f", "json")
    assert "it had not begun: it runs again" in told
    assert folders(actionplan) == []


@at((HERE, USED), (NODE, USED))
def test_one_that_had_begun_goes_on_as_the_same_attempt_and_is_in_doubt_if_it_may_have_been_sent(
    actionplan, where, point
):
    """Its applier was killed after that, and before the shell of its command."""
    saved(actionplan, **where)
    killed(actionplan, point, "apply", "plan.yaml", "--yes")
    if where:
        assert resumed(actionplan) == 5
        assert ended(actionplan) == ("UNKNOWN", 1)
        return
    assert resumed(actionplan) == 0
    assert ended(actionplan) == ("SUCCEEDED", 1)
    assert effects(actionplan) == "ran\n"
    assert folders(actionplan) == []


def test_whoever_takes_over_next_knows_it_too(actionplan):
    """The first of them was killed before it could record what it found."""
    saved(actionplan)
    killed(actionplan, RECORDED, "apply", "plan.yaml", "--yes")
    for _ in range(2):
        actionplan.good("resume", "last")
        killed(actionplan, LOOKED, "apply", "last", "--yes")
    assert resumed(actionplan) == 0
    assert ended(actionplan) == ("SUCCEEDED", 2)
    assert effects(actionplan) == "ran\n"
    assert folders(actionplan) == []


@pytest.mark.parametrize("lost", ["the folder", "the boot"])
def test_it_is_in_doubt_if_its_permit_may_have_been_lost_with_a_restart(actionplan, lost):
    """Its folder may have been made, and be lost with what the command did not write to disk."""
    saved(actionplan)
    killed(actionplan, RECORDED, "apply", "plan.yaml", "--yes")
    (permit,) = (actionplan.record.parent / "jobs").iterdir()
    if lost == "the folder":
        permit.rmdir()
    else:
        kind, _, *rest = permit.name.split(".")
        permit.rename(permit.with_name(".".join([kind, "the-boot-before", *rest])))
    assert resumed(actionplan) == 5
    assert ended(actionplan) == ("UNKNOWN", 1)
    assert effects(actionplan) == ""


@at(*((HERE, point) for point in (RECORDED, REACHED, ABOUT, USED)), (NODE, ABOUT), is_long=True)
def test_a_frozen_applier_that_wakes_does_not_start_it_a_second_time(actionplan, where, point):
    """It runs once, whether the frozen one had begun it or not."""
    saved(actionplan, **where)
    out = frozen(actionplan, point, "apply", "plan.yaml", "--yes")
    assert "this run's claim has ended" in out
    assert effects(actionplan) == "ran\n"
    assert ended(actionplan) == ("SUCCEEDED", 1 if point == USED else 2)
    assert folders(actionplan) == []


def left_running(actionplan: CommandLine, **given: Any) -> None:
    """Leave a plan whose applier was killed while its command runs.

    The command ends once there is a file ``gate``.
    """
    folder = actionplan.folder
    command = f"echo ran >> {folder}/effects; while [ ! -e {folder}/gate ]; do sleep 0.05; done"
    saved(actionplan, command=command, **given)
    with actionplan.start("apply", "plan.yaml", "--yes") as applying:
        wait_until(lambda: effects(actionplan) == "ran\n")
        applying.kill()


@at((HERE, REACHED), (NODE, ABOUT), is_long=True)
def test_a_frozen_one_that_had_taken_a_command_over_does_not_start_it_again(
    actionplan, where, point
):
    """Meanwhile the command has ended, its end is on record, and its folder is removed."""
    left_running(actionplan, **where)
    actionplan.good("resume", "last")
    frozen(actionplan, point, "apply", "last", "--yes", then=(actionplan.folder / "gate").touch)
    assert effects(actionplan) == "ran\n"
    assert ended(actionplan) == ("SUCCEEDED", 1)
    assert folders(actionplan) == []


def test_a_cancel_without_an_applier_leaves_no_doubt_of_it(actionplan):
    saved(actionplan)
    killed(actionplan, RECORDED, "apply", "plan.yaml", "--yes")
    actionplan.good("stop", "last", "--cancel")
    plan = actionplan.plan()
    assert plan.state is PlanState.CANCELLED
    assert [(a.state, a.status_message) for a in plan.actions] == [
        ("CANCELLED", "aborted before it began")
    ]
    assert [is_permit(name) for name in folders(actionplan)] == [True]
    assert "leftover" in actionplan.good("job", "list")
    assert actionplan.good("job", "clean") == "1 leftover removed, 0 kept.\n"
    assert folders(actionplan) == []
