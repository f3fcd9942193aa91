# SPDX-License-Identifier: Apache-2.0
"""What the machine of the applier is short of is no failure of an action: fewer run at once."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "actionplan"
ACTIONS = 24


@pytest.mark.slow
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
            [PROGRAM, "--config-file", tmp_path / "a.conf", *arguments],
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


@pytest.mark.slow
@pytest.mark.parametrize("files", [8, 9, 11])
def test_a_service_that_cannot_start_ends_with_a_sentence(tmp_path, files):
    ended = subprocess.run(
        [PROGRAM.with_name("actionplan-applier")],
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
