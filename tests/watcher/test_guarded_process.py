# SPDX-License-Identifier: Apache-2.0
"""Processes of a lab are gone when the lab is, however the tests ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
#: Starts the other, and waits for it.
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]])
"""
CHILD = """
import os, signal
memory = bytearray(os.urandom(4096) * 2**16)
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


@contextmanager
def ends(number: int, within_s: int = PATIENCE_S) -> Iterator[None]:
    """Assert that a process that is alive ends during the block, or so many seconds after it."""
    handle = os.pidfd_open(number)
    try:
        yield
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        assert ended.poll(1000 * within_s)
    finally:
        os.close(handle)


def test_a_service_is_killed(tmp_path: Path) -> None:
    started = service(tmp_path)
    with ends(int(started.last_output())):
        started.kill()


def test_what_a_service_has_started_is_gone_with_it(tmp_path: Path) -> None:
    """It takes a while to die: the system gives back its memory first."""
    output = tmp_path / "out"
    command = [sys.executable, "-c", PARENT, CHILD]
    started = GuardedProcess(command, output, dict(os.environ))
    started.wait_until("number", lambda: output.read_text().endswith("\n"))
    with ends(int(output.read_text()), within_s=0):
        started.kill()


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
    with ends(int(output.read_text())):
        tests.send_signal(signal.SIGKILL)
        tests.wait()
