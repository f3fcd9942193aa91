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
from sshd import Sshd, make_key

from applier.engines.attempts import AttemptsInProgress
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.job_names import is_permit
from applier.machines.local_jobs import LocalJob
from applier.machines.permit import Permit
from applier.run import runner
from planner.plan.states import ActionState, PlanState

RECORDED, REACHED = "the start is recorded", "its command is reached"
ABOUT, USED = "the command is about to begin", "the permit is used"
LOOKED = "interrupted actions were looked at"


#: The points: an object, its function, and whether the point is after it.
POINTS: dict[str, tuple[Any, str, bool]] = {
    "the start is recorded": (AttemptsInProgress, "start", False),
    "its command is reached": (LocalJob, "_begin", False),
    "the command is about to begin": (AttemptJobs, "begin", False),
    "the permit is used": (Permit, "use", True),
    "interrupted actions were looked at": (runner, "verify_all", True),
}


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


def messages(actionplan: CommandLine) -> str:
    return actionplan.good("action", "show", "last", "once", "-f", "json")


@pytest.mark.parametrize("point", [RECORDED, REACHED, ABOUT])
def test_one_whose_applier_was_killed_before_its_command_runs_as_a_new_attempt(actionplan, point):
    saved(actionplan)
    killed(actionplan, point, "apply", "plan.yaml", "--yes")
    assert actionplan.plan().actions[0].state is ActionState.ONGOING
    assert resumed(actionplan) == 0
    assert ended(actionplan) == ("SUCCEEDED", 2)
    assert effects(actionplan) == "ran\n"
    assert "it had not begun: it runs again" in messages(actionplan)
    assert folders(actionplan) == []


def test_one_that_had_begun_goes_on_as_the_same_attempt(actionplan):
    """Its applier was killed after that, and before the shell of its command."""
    saved(actionplan)
    killed(actionplan, USED, "apply", "plan.yaml", "--yes")
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


@pytest.mark.long
@pytest.mark.parametrize("point", [RECORDED, REACHED, ABOUT, USED])
def test_a_frozen_applier_that_wakes_does_not_start_it_a_second_time(actionplan, point):
    """It runs once, whether the frozen one had begun it or not."""
    actionplan.configure(watcher_applier={"heartbeat_interval_s": 0.5})
    saved(actionplan)
    with stopped(actionplan, point, "hold", "apply", "plan.yaml", "--yes") as frozen:
        wait_until((actionplan.folder / "held").exists)
        with actionplan.locked():
            os.kill(frozen.pid, signal.SIGSTOP)
            wait_until(lambda: _is_stopped(frozen.pid))
        assert resumed(actionplan) == 0
        (actionplan.folder / "let-it-go-on").touch()
        frozen.send_signal(signal.SIGCONT)
        out, _ = frozen.communicate()
    assert frozen.returncode == 1, out
    assert "this run's claim has ended" in out
    assert "Traceback" not in out
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


def frozen_follower(actionplan: CommandLine, point: str) -> str:
    """Freeze whoever has taken the plan over, until another has ended it; return what it said."""
    actionplan.good("resume", "last")
    with stopped(actionplan, point, "hold", "apply", "last", "--yes") as frozen:
        wait_until((actionplan.folder / "held").exists)
        with actionplan.locked():
            os.kill(frozen.pid, signal.SIGSTOP)
            wait_until(lambda: _is_stopped(frozen.pid))
        (actionplan.folder / "gate").touch()
        assert resumed(actionplan) == 0
        (actionplan.folder / "let-it-go-on").touch()
        frozen.send_signal(signal.SIGCONT)
        out, _ = frozen.communicate()
    assert frozen.returncode == 1, out
    return str(out)


@pytest.mark.long
def test_a_frozen_one_that_had_taken_a_command_over_does_not_start_it_again(actionplan):
    """Meanwhile the command has ended, its end is on record, and its folder is removed."""
    actionplan.configure(watcher_applier={"heartbeat_interval_s": 0.5})
    left_running(actionplan)
    out = frozen_follower(actionplan, REACHED)
    assert "Traceback" not in out
    assert effects(actionplan) == "ran\n"
    assert ended(actionplan) == ("SUCCEEDED", 1)
    assert folders(actionplan) == []


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"


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


@pytest.fixture
def on_node(actionplan: CommandLine, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Parameters of a command on a node that is reached over SSH."""
    pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
    make_key(tmp_path / "id")
    with Sshd(tmp_path / "node", tmp_path / "id") as server:
        (actionplan.folder / "known_hosts").write_text(server.known())
        actionplan.configure(
            ssh={
                "known_hosts": actionplan.folder / "known_hosts",
                "key_files": actionplan.folder / "id",
                "connect_timeout_s": 120,
            },
            watcher_applier={"heartbeat_interval_s": 0.5},
        )
        yield {"node": "1", "address": f"{getpass.getuser()}@{server.address}"}


@pytest.mark.long
@pytest.mark.needs("sshd", "ssh-keygen")
@pytest.mark.parametrize("point", [RECORDED, ABOUT])
def test_a_command_for_a_node_that_was_not_sent_runs_as_a_new_attempt(actionplan, on_node, point):
    saved(actionplan, **on_node)
    killed(actionplan, point, "apply", "plan.yaml", "--yes")
    assert resumed(actionplan) == 0
    assert ended(actionplan) == ("SUCCEEDED", 2)
    assert effects(actionplan) == "ran\n"


@pytest.mark.long
@pytest.mark.needs("sshd", "ssh-keygen")
def test_one_that_may_have_been_sent_is_in_doubt(actionplan, on_node):
    saved(actionplan, **on_node)
    killed(actionplan, USED, "apply", "plan.yaml", "--yes")
    assert resumed(actionplan) == 5
    assert ended(actionplan) == ("UNKNOWN", 1)


@pytest.mark.long
@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_frozen_applier_that_wakes_does_not_send_it(actionplan, on_node):
    saved(actionplan, **on_node)
    with stopped(actionplan, ABOUT, "hold", "apply", "plan.yaml", "--yes") as frozen:
        wait_until((actionplan.folder / "held").exists)
        with actionplan.locked():
            os.kill(frozen.pid, signal.SIGSTOP)
            wait_until(lambda: _is_stopped(frozen.pid))
        assert resumed(actionplan) == 0
        (actionplan.folder / "let-it-go-on").touch()
        frozen.send_signal(signal.SIGCONT)
        out, _ = frozen.communicate()
    assert "Traceback" not in out
    assert effects(actionplan) == "ran\n"
    assert ended(actionplan) == ("SUCCEEDED", 2)


@pytest.mark.long
@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_frozen_one_that_had_taken_it_over_does_not_send_it_again(actionplan, on_node):
    left_running(actionplan, **on_node)
    out = frozen_follower(actionplan, ABOUT)
    assert "Traceback" not in out
    assert effects(actionplan) == "ran\n"
    assert ended(actionplan) == ("SUCCEEDED", 1)
