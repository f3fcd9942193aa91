# SPDX-License-Identifier: Apache-2.0
"""A log that cannot be written: a sentence at the start, and later one line, while plans run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import CommandLine, wait_until

from planner.plan.states import PlanState

PROGRAM = Path(sys.executable).with_name("actionplan-applier")


@contextmanager
def service(actionplan: CommandLine, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Start a service with these options in the section DEFAULT."""
    actionplan.configure(
        DEFAULT=options, watcher_applier={"heartbeat_interval_s": 0.2, "workers": 1}
    )
    with subprocess.Popen(
        [PROGRAM],
        cwd=actionplan.folder,
        env=actionplan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_log_that_cannot_be_opened_is_one_sentence(actionplan):
    folder = actionplan.folder
    (folder / "bad.ini").write_text("[loggers\n")
    for option, value, named in (
        (
            "log_dir",
            "missing",
            f"{folder}/missing/actionplan-applier.log cannot be written: No such",
        ),
        ("log_config_append", "bad.ini", "log_config_append: "),
    ):
        with service(actionplan, **{option: folder / value}) as process:
            out, _ = process.communicate()
        assert process.returncode == 1
        assert out.startswith("actionplan-applier: ")
        assert (named in out, out.count("\n")) == (True, 1)


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["a full disk", "a folder that is gone"])
def test_a_log_that_cannot_be_written_later_is_said_once_and_plans_run_on(actionplan, trouble):
    folder = actionplan.folder / "logs"
    folder.mkdir()
    log = folder / "actionplan-applier.log"
    if trouble == "a full disk":
        log.symlink_to("/dev/full")
    for name in ("one.yaml", "two.yaml"):
        command = {"command": f"echo {name} >> effects", "cwd": str(actionplan.folder)}
        action = {"name": "first", "action_type": "shell", "input_parameters": command}
        actionplan.document(name, action)
    with service(actionplan, log_dir=folder) as process:
        if trouble == "a folder that is gone":
            wait_until(lambda: log.exists() and "Waiting for plans" in log.read_text())
            folder.rename(actionplan.folder / "moved")
            folder.touch()
        for name in ("one.yaml", "two.yaml"):
            actionplan.good("create", name)
            actionplan.good("start", "last")
            wait_until(lambda: actionplan.plans()[0].state is PlanState.SUCCEEDED)
        process.terminate()
        out, _ = process.communicate()
    assert process.returncode == 0, out
    assert (actionplan.folder / "effects").read_text() == "one.yaml\ntwo.yaml\n"
    assert "Traceback" not in out
    # The service and its worker are a process each.
    assert 1 <= out.count(f"The log {log} cannot be written: ") <= 2, out


def test_the_end_of_a_plan_says_what_was_planned_and_what_it_took(actionplan):
    """In the log of the service, and for those who watch."""
    action = {"name": "first", "action_type": "nop", "estimate_s": 60}
    actionplan.good("create", actionplan.document("plan.yaml", action))
    with service(actionplan) as process:
        actionplan.good("start", "last")
        uuid = actionplan.wait_for(PlanState.SUCCEEDED).uuid
        lines = iter(process.stdout.readline, "")
        assert any(f"Plan {uuid} is SUCCEEDED: planned 1m00s, took " in line for line in lines)
    assert "\nPlanned 1m00s, took " in actionplan.good("watch", "last")
