# SPDX-License-Identifier: Apache-2.0
"""A test without the mark ``slow`` that starts a process fails, and says so."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(["true"], check=True),
        lambda: os.system("true"),  # noqa: S605
        lambda: os.popen("true"),  # noqa: S605
        lambda: os.spawnlp(os.P_WAIT, "true", "true"),  # noqa: S606
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: pty.spawn(["true"]),
    ],
    ids=["run", "system", "popen", "spawn", "posix_spawn", "pty"],
)
def test_a_process_without_the_mark_is_refused(start):
    with pytest.raises(RuntimeError, match=r"test_fast_loop.* starts a process: mark it as slow"):
        start()
