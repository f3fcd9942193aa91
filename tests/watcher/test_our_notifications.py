# SPDX-License-Identifier: Apache-2.0
"""Watcher's own classes can read the notifications that our service sends."""

from __future__ import annotations

import json
import subprocess

import pytest
from environments import Environment
from watcher_lab import PROGRAMS

pytestmark = pytest.mark.slow


def test_watchers_classes_read_what_our_service_sends(watcher_environment: Environment) -> None:
    ended = subprocess.run(
        [watcher_environment.python, "-W", "ignore", PROGRAMS / "read_notifications.py"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [
        "action.cancel.end",
        "action.execution.end",
        "action.execution.error",
        "action.execution.start",
        "action.update",
        "action_plan.cancel.end",
        "action_plan.cancel.start",
        "action_plan.create",
        "action_plan.delete",
        "action_plan.execution.end",
        "action_plan.execution.error",
        "action_plan.execution.start",
        "action_plan.update",
    ]
