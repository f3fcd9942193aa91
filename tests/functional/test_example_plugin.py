# SPDX-License-Identifier: Apache-2.0
"""The package under etc/examples/plugin: installed as a third party's, chosen through watcher.conf.

A scratch environment sees what this one has installed, and the plugin besides; nothing is fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
PLUGIN = Path(__file__).parents[2] / "etc" / "examples" / "plugin"

CONFIGURATION = """
[watcher_planner]
planner = rack_by_rack

[watcher_planners.rack_by_rack]
racks = r2, r1

[watcher_workflow_engines.taskflow]
max_workers = 4

[actionplan]
simulator_speed = 100
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the plugin in it; gives its interpreter."""
    folder = tmp_path_factory.mktemp("third-party")
    source = shutil.copytree(PLUGIN, folder / "source")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # Unlike a line with a path, this also follows the .pth file of an editable install.
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    Path(own, "surroundings.pth").write_text(line, encoding="utf-8")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([python, "-m", "pip", "install", *offline, source], check=True)
    return python


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    """Return a function that runs a Python command line there, in an empty folder and home."""
    (tmp_path / "watcher.conf").write_text(CONFIGURATION, encoding="utf-8")
    variables = {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment, *arguments],
            cwd=tmp_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


PROGRAM = ("-c", "import sys; from applier.cli.main import main; sys.exit(main())")
CONFIGURED = (*PROGRAM, "--config-file", "watcher.conf")


@pytest.fixture
def document(tmp_path: Path) -> str:
    """Return the example's document without the name of a planner: the configuration decides."""
    text = (PLUGIN / "racks.yaml").read_text(encoding="utf-8")
    path = tmp_path / "racks.yaml"
    path.write_text(text.replace("planner: rack_by_rack\n", ""), encoding="utf-8")
    return str(path)


def test_its_own_tests_pass(run, environment):
    tests = environment.parents[2] / "source" / "tests"
    ended = run("-m", "pytest", "-q", "-W", "error", str(tests))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " passed" in ended.stdout


def test_watcher_conf_chooses_its_planner_and_the_options_of_both(run, document, tmp_path):
    for words, name in (
        (("planner", "list"), "rack_by_rack"),
        (("action", "type", "list"), "announce"),
    ):
        listed = run(*PROGRAM, *words, "-f", "value")
        assert name in listed.stdout, listed.stderr
    ended = run(*CONFIGURED, "create", document, "--dry-run", "-f", "json")
    assert ended.returncode == 0, ended.stderr
    plan = json.loads(ended.stdout)
    assert (plan["planner"], plan["warnings"]) == ("rack_by_rack", [])
    text = f"{CONFIGURATION}\n[watcher_actions.announce]\nsite = Berlin\n"
    (tmp_path / "watcher.conf").write_text(text, "utf-8")
    shown = run(*CONFIGURED, "action", "type", "show", "announce")
    assert "  here: Berlin\n" in shown.stdout, shown.stderr
    for _ in range(2):  # the second time it finds the lines there
        ended = run(*CONFIGURED, "apply", document, "--yes")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        lines = (tmp_path / "log-book.txt").read_text(encoding="utf-8").splitlines()
        assert set(lines[:2]) == {"Berlin: compute-3 is new", "Berlin: compute-4 is new"}
        assert set(lines[2:4]) == {"Berlin: compute-1 is new", "Berlin: compute-2 is new"}
        assert lines[4:] == ["Berlin: all racks are new"]
    (tmp_path / "watcher.conf").write_text(CONFIGURATION.replace("racks =", "rack ="), "utf-8")
    ended = run(*CONFIGURED, "create", document, "--dry-run")
    assert (ended.returncode, "did you mean 'racks'?" in ended.stderr) == (1, True)
