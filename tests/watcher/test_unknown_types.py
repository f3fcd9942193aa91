# SPDX-License-Identifier: Apache-2.0
"""An applier says once that it does not know what the actions of a type touch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from environments import Environment
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]


def test_an_unknown_type_is_named_once_in_the_life_of_an_applier(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [watcher_environment.python, "-W", "ignore", PROGRAMS / "unknown_types.py", tmp_path],
        env={**os.environ, "PYTHONPATH": str(PROGRAMS / "traced_type")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    unknown, known = json.loads(ended.stdout.splitlines()[-1])
    [told] = unknown
    assert "type traced " in told
    assert "[watcher_workflow_engines.actionplan]" in told
    assert known == []
