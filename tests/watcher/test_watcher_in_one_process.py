# SPDX-License-Identifier: Apache-2.0
"""Watcher's own planner and engine in one process: what ours are compared with."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from environments import Environment
from watcher_lab import PROGRAMS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stock(
    watcher_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Return how the plans of ``stock_engine.py`` ended."""
    ended = subprocess.run(
        [
            watcher_environment.python,
            *("-W", "ignore"),
            PROGRAMS / "stock_engine.py",
            tmp_path_factory.mktemp("stock"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_weights_of_watcher_conf_order_the_plan(stock: dict[str, Any]) -> None:
    planned = [(a["type"], a["parents"]) for a in stock["recommended"]["actions"]]
    assert planned == [("sleep", []), ("nop", [0]), ("nop", [1])]


def test_a_plan_that_was_scheduled_succeeds(stock: dict[str, Any]) -> None:
    assert stock["planned"]["state"] == "SUCCEEDED"
    assert {action["state"] for action in stock["planned"]["actions"]} == {"SUCCEEDED"}


def test_the_stock_engine_runs_what_needs_a_failed_action(stock: dict[str, Any]) -> None:
    states = [action["state"] for action in stock["failing"]["actions"]]
    assert states == ["FAILED", "SUCCEEDED", "SKIPPED"]
    assert stock["failing"]["state"] == "FAILED"


def test_the_notifications_of_the_stock_engine_are_counted(stock: dict[str, Any]) -> None:
    sent = {kind: n for kind, n in stock["sent"].items() if kind.startswith("action.")}
    assert sent == {
        "action.update": 7,
        "action.execution.start": 2,
        "action.execution.end": 1,
        "action.execution.error": 1,
    }
