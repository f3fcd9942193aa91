# SPDX-License-Identifier: Apache-2.0
"""Processes of a lab are gone when the lab is, however the tests ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from guarded_process import PATIENCE_S, GuardedProcess

pytestmark = pytest.mark.slow

#: Makes a process group of its own, as Watcher's services do, prints its number and stays.
SERVICE = """
import os, signal
os.setpgid(0, 0)
print(os.getpid(), flush=True)
signal.pause()
"""
#: Tests that start a service.
TESTS = """
import os, signal, sys
from pathlib import Path
from guarded_process import GuardedProcess

GuardedProcess([sys.executable, "-c", sys.argv[1]], Path(sys.argv[2]), dict(os.environ))
signal.pause()
"""


def service(folder: Path) -> GuardedProcess:
    """Start the service; it is there when this returns."""
    output = folder / "out"
    made = GuardedProcess([sys.executable, "-c", SERVICE], output, dict(os.environ))
    made.wait_until("number", lambda: output.read_text().endswith("\n"))
    return made


def has_ended(number: int) -> bool:
    """Wait for the end of a process; return False if it stays."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        return bool(ended.poll(1000 * PATIENCE_S))
    finally:
        os.close(handle)


def test_a_service_is_killed(tmp_path: Path) -> None:
    started = service(tmp_path)
    started.kill()
    assert has_ended(int(started.last_output()))


def test_a_service_is_asked_to_end(tmp_path: Path) -> None:
    started = service(tmp_path)
    started.terminate()
    assert started.has_ended
    started.kill()


def test_a_service_does_not_outlive_tests_that_are_killed(tmp_path: Path) -> None:
    output = tmp_path / "out"
    folder = str(Path(__file__).parent)
    tests = subprocess.Popen(
        [sys.executable, "-c", TESTS, SERVICE, str(output)],
        env={**os.environ, "PYTHONPATH": folder},
        stdin=subprocess.DEVNULL,
    )
    while not (output.exists() and output.read_text().endswith("\n")):
        assert tests.poll() is None
    tests.send_signal(signal.SIGKILL)
    tests.wait()
    assert has_ended(int(output.read_text()))
