# SPDX-License-Identifier: Apache-2.0
"""Plugins of one's own: in a file that the configuration names, and in a new package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "etc/examples/my_actions.py"
DOCUMENT = """\
kind: rollout
name: restart
nodes: [web-1]
steps:
  - {name: restart, restart: {service: haproxy}}
"""


def test_an_action_type_in_a_file_runs(actionplan):
    folder = actionplan.folder
    (folder / "site").mkdir()
    shutil.copy(EXAMPLE, folder / "site")
    (folder / "p.yaml").write_text(DOCUMENT, encoding="utf-8")
    (folder / "systemctl").write_text("#!/bin/sh\necho $*\n", encoding="utf-8")
    (folder / "systemctl").chmod(0o755)
    (folder / "site/watcher.conf").write_text("[actionplan]\nplugins = my_actions.py\n")
    path = f"{folder}:/usr/bin:/bin"
    named = ("--config-file", "site/watcher.conf")
    assert "restart" in actionplan.program("action", "type", "list", *named).out
    assert actionplan.program("apply", "p.yaml", "--yes", *named, PATH=path).code == 0
    shown = actionplan.program("action", "show", "last", "web-1/restart", *named).out
    assert "restart haproxy" in shown


def test_files_that_cannot_be_used_are_refused_all_at_once(actionplan):
    folder = actionplan.folder
    files = {
        "broken.py": "x = (",
        "empty.py": "x = 1\n",
        "two.py": "x = 1\n",
        "no_python.txt": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = "missing.py, broken.py, empty.py, no_python.txt"
    (folder / "own.conf").write_text(f"[actionplan]\nplugins = {names}\n", encoding="utf-8")
    refused = actionplan.program("list", "--config-file", "own.conf")
    assert refused.code == 1
    facts = ("missing.py", "broken.py", "SyntaxError", "empty.py", "no_python.txt", "own.conf:2")
    assert all(fact in refused.err for fact in facts), refused.err
    assert "Traceback" not in refused.err
    refused = actionplan.program("list", OS_ACTIONPLAN__PLUGINS="empty.py")
    assert (refused.code, "not an absolute path" in refused.err) == (1, True)


def test_one_name_in_two_files_is_an_error_that_names_both(actionplan):
    for name in ("one.py", "two.py"):
        shutil.copy(EXAMPLE, actionplan.folder / name)
    (actionplan.folder / "own.conf").write_text("[actionplan]\nplugins = one.py, two.py\n")
    told = actionplan.program("action", "type", "show", "restart", "--config-file", "own.conf").err
    assert "one.py:restart" in told
    assert "two.py:restart" in told


def test_a_new_package_passes_its_tests(actionplan):
    assert actionplan("plugin", "new", "my_site").code == 0
    folder = actionplan.folder / "my_site"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    tried = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout
    for name in ("my_site", "class", "../x", "Upper"):
        assert actionplan("plugin", "new", name).code == 1
