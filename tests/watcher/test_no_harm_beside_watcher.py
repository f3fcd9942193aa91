# SPDX-License-Identifier: Apache-2.0
"""Installed beside Watcher, the product changes nothing for it, and works itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import watcher_configuration
from environments import ROOT, Environment
from watcher_lab import PROGRAMS

pytestmark = pytest.mark.slow

#: What the product adds to Watcher's groups of entry points: names that Watcher has not.
ADDED = {"watcher_planners": {"actionplan"}, "watcher_workflow_engines": {"actionplan"}}
GROUPS = (
    "watcher_actions",
    "watcher_cluster_data_model_collectors",
    "watcher_goals",
    "watcher_planners",
    "watcher_scoring_engine_containers",
    "watcher_scoring_engines",
    "watcher_strategies",
    "watcher_workflow_engines",
)


def run(*command: str | Path, **environment: str) -> str:
    """Run a command to its end; return what it prints."""
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=environment.get("HOME"),
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def plugins(watcher_environment: Environment) -> dict[str, Any]:
    """Return what Watcher's loaders find."""
    printed = run(watcher_environment.python, "-W", "ignore", PROGRAMS / "watcher_plugins.py")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def test_no_loader_of_watcher_is_forgotten(plugins: dict[str, Any]) -> None:
    assert sorted(plugins) == sorted(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_loader_lists_and_loads_what_it_did(plugins: dict[str, Any], group: str) -> None:
    found = plugins[group]
    assert found["own"].items() <= found["listed"].items()
    assert found["listed"] == found["loaded"]
    assert found["listed"].keys() - found["own"].keys() == ADDED.get(group, set())


def test_no_requirement_is_broken(watcher_environment: Environment) -> None:
    run(sys.executable, "-m", "uv", "pip", "check", "--python", watcher_environment.python)


@pytest.mark.parametrize("namespaces", [["watcher"], ["watcher", "actionplan"]], ids="+".join)
def test_the_sample_configuration_of_watcher_is_written(
    watcher_environment: Environment, tmp_path: Path, namespaces: list[str]
) -> None:
    program = watcher_environment.program("oslo-config-generator")
    words = [word for name in namespaces for word in ("--namespace", name)]
    run(program, *words, "--output-file", tmp_path / "watcher.conf.sample")
    sample = (tmp_path / "watcher.conf.sample").read_text()
    assert {"[watcher_planners.weight]", "[watcher_workflow_engines.taskflow]"} <= set(
        sample.splitlines()
    )


@pytest.fixture
def actionplan(watcher_environment: Environment, tmp_path: Path) -> Any:
    """Run our command with a watcher.conf as Watcher's services have it; its JSON is returned."""
    sections = watcher_configuration.base(
        tmp_path, "mysql://root@127.0.0.1/watcher", "rabbit://", "http://127.0.0.1:5000", 9090
    )
    own = {"actionplan": {"simulator_speed": "1000"}}
    path = tmp_path / "watcher.conf"
    watcher_configuration.write(path, watcher_configuration.merged(sections, own))
    program = watcher_environment.program("actionplan")

    def call(*words: str) -> str:
        home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        return run(program, "--config-file", path, *words, **home)

    return call


def test_our_planners_are_listed_and_those_of_watcher_are_not(actionplan: Any) -> None:
    listed = json.loads(actionplan("planner", "list", "-f", "json"))
    assert {"weight", "deployment"} <= {planner["name"] for planner in listed}
    assert not any("watcher." in json.dumps(planner) for planner in listed)


def test_a_plan_is_created_applied_and_listed(actionplan: Any) -> None:
    actionplan("create", str(ROOT / "etc" / "examples" / "host-maintenance.yaml"))
    [created] = json.loads(actionplan("list", "-f", "json"))
    assert created["state"] == "RECOMMENDED"
    actionplan("apply", created["uuid"], "--yes")
    [applied] = json.loads(actionplan("list", "-f", "json"))
    assert applied["state"] == "SUCCEEDED"
