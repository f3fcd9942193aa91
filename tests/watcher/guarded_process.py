# SPDX-License-Identifier: Apache-2.0
"""Processes that do not outlive the tests, however the tests end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GUARD = Path(__file__).parent / "lab" / "guarded.py"
#: How long is waited for what never comes.
PATIENCE_S = 240


class GuardedProcess:
    """A command in a group of its own, whose output goes to a file.

    It is killed with all of its group by ``kill``, and when this process ends, by whatever signal.
    """

    def __init__(
        self, command: Sequence[str | Path], output: Path, environment: Mapping[str, str]
    ) -> None:
        self.output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                start_new_session=True,
                bufsize=0,
                env=environment,
            )
        assert self._process.stdin is not None
        self._input = self._process.stdin

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended by itself."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill all processes of its group with signal 9; they are gone when this returns."""
        self._input.close()
        self._process.wait(PATIENCE_S)

    def terminate(self) -> None:
        """Ask the command to end, as a service manager does, and wait until it has ended."""
        self.signal(signal.SIGTERM)
        self._process.wait(PATIENCE_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command, not to what it has started."""
        self._input.write(bytes([number]))

    def wait_until(self, what: str, holds: Callable[[], bool]) -> None:
        """Return once something holds; raises AssertionError when the process ends before."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert not self.has_ended, f"it ended without {what}: {self.last_output()}"
            assert time.monotonic() < end, f"no {what} in {PATIENCE_S} s: {self.last_output()}"
            time.sleep(0.1)

    def whole_output(self) -> str:
        """Return what it has printed."""
        return self.output.read_text(errors="replace")

    def last_output(self) -> str:
        """Return the end of what it printed."""
        return self.whole_output()[-2000:]
