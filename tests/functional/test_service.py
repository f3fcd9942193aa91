# SPDX-License-Identifier: Apache-2.0
"""``actionplan-applier`` as processes of its own: told to end, its log, what the machine lacks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import CommandLine, wait_until
from worker_processes import PROGRAMS

from planner.plan.states import ActionState, PlanState

PROGRAM = "actionplan-applier"


@contextmanager
def service(actionplan: CommandLine, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Start a service with these options in the section DEFAULT."""
    actionplan.configure(
        DEFAULT=options, watcher_applier={"heartbeat_interval_s": 0.2, "workers": 1}
    )
    with subprocess.Popen(
        [PROGRAMS / PROGRAM],
        cwd=actionplan.folder,
        env=actionplan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    """Read the log of a service until a line has a text."""
    assert any(text in line for line in process.stdout), f"it never said {text!r}"


def started(actionplan: CommandLine) -> None:
    """Start a plan whose first action waits for a file ``go``, and whose second one follows."""
    waits = 'echo a >> effects; while [ -d "$PWD" ] && [ ! -e go ]; do sleep 0.05; done'
    actions = [
        {
            "name": name,
            "action_type": "shell",
            "touches": ["node:n"],
            "input_parameters": {"command": command, "cwd": str(actionplan.folder)},
        }
        for name, command in (("a", waits), ("b", "echo b >> effects"))
    ]
    actionplan.good("create", actionplan.document("plan.yaml", *actions))
    actionplan.good("start", "last")


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    """Interrupt a service as a terminal does: the main process and its worker."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize(
    "tell", [subprocess.Popen.terminate, pytest.param(press_ctrl_c, marks=pytest.mark.long)]
)
def test_a_service_that_is_told_to_end_lets_another_go_on(actionplan, tell):
    started(actionplan)
    with service(actionplan) as first:
        wait_until((actionplan.folder / "effects").exists)
        tell(first)
        wait_for_line(first, "1 plans are handed back")
        (actionplan.folder / "go").touch()
        first.communicate()
        assert first.returncode == 0
    with actionplan.store() as store:
        assert store.services() == []
    plan = actionplan.plan()
    assert (plan.state, [a.state for a in plan.actions]) == ("PENDING", ["SUCCEEDED", "PENDING"])
    with service(actionplan):
        actionplan.wait_for(PlanState.SUCCEEDED)
    assert (actionplan.folder / "effects").read_text().split() == ["a", "b"]


@pytest.mark.long
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_service_at_once_that_is_told_to_end(actionplan, first):
    started(actionplan)
    with service(actionplan) as ending:
        actionplan.wait_for(a=ActionState.ONGOING)
        worker = actionplan.claimant().pid
        ending.send_signal(first)
        wait_for_line(ending, "1 plans are handed back")
        ending.send_signal(signal.SIGINT)
        ending.communicate()
        assert ending.returncode == 1
        wait_until(lambda: not Path(f"/proc/{worker}").exists())
    assert actionplan.plan().state is PlanState.ONGOING
    (actionplan.folder / "go").touch()


def test_programs_refuse_a_configuration_in_a_sentence_and_know_their_help(tmp_path):
    def told(program: str, *words: str | Path) -> tuple[int, str]:
        command = [PROGRAMS / program, *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    file = tmp_path / "watcher.conf"
    file.write_text("[watcher_actions.migrate]\nretries = often\n", encoding="utf-8")
    code, text = told("actionplan-applier", "--config-file", file)
    assert code == 1
    assert f"actionplan-applier: {file}:2: [watcher_actions.migrate] retries: " in text
    record = f"[actionplan]\nconnection = sqlite:///{tmp_path}/plans.db\n"
    file.write_text(f"{record}[workers]\nbroker = amqp://127.0.0.1//\n", encoding="utf-8")
    code, text = told("actionplan-worker", "--config-file", file)
    assert code == 1
    assert "workers need a record on a server" in text
    code, text = told("actionplan-applier", "--help")
    assert code == 0
    assert '"actionplan start" queued' in text


# Its log


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


# What the machine is short of


ACTIONS = 24


@pytest.mark.parametrize("files", [24, 48])
def test_with_few_files_to_open_all_commands_run(tmp_path, files):
    commands = [
        {"name": f"s{i}", "action_type": "shell", "input_parameters": {"command": "sleep 0.1"}}
        for i in range(ACTIONS)
    ]
    document = {"options": {"parallelization": {"shell": ACTIONS}}, "actions": commands}
    (tmp_path / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "a.conf").write_text(
        f"[watcher_workflow_engines.taskflow]\nmax_workers = {ACTIONS}\n"
        f"[actionplan]\nconnection = sqlite:///{tmp_path}/a.db\n",
        encoding="utf-8",
    )

    def run(*arguments: str, few: bool = False) -> str:
        return subprocess.run(
            [PROGRAMS / "actionplan", "--config-file", tmp_path / "a.conf", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
            if few
            else None,
        ).stdout

    run("create", "plan.json")
    run("apply", "last", "--yes", few=True)
    states = {action["state"] for action in json.loads(run("action", "list", "last", "-f", "json"))}
    assert states == {"SUCCEEDED"}


@pytest.mark.parametrize("files", [8, 9, 11])
def test_a_service_that_cannot_start_ends_with_a_sentence(tmp_path, files):
    ended = subprocess.run(
        [PROGRAMS / PROGRAM],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        timeout=120,
    )
    assert ended.returncode == 1
    assert "Too many open files" in ended.stderr
    assert "Traceback" not in ended.stderr
