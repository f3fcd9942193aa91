# SPDX-License-Identifier: Apache-2.0
"""Becomes another program, with another time of day: ``python start.py +90s PROGRAM ARGUMENT...``.

The command ``faketime`` is not used: it, and each process that libfaketime is loaded into, makes
files in /dev/shm that are named after the process. Where a killed process left them, the next one
with its number ends at once. So they are removed first; this process keeps its number.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
#: Where the packages of Debian and Ubuntu put it; the loader of programs fills in ``$LIB``.
LIBRARY = "/usr/$LIB/faketime/libfaketime.so.1"


def main(clock: str, *command: str) -> None:
    """Replace this process by a program whose time of day is moved, and whose other clocks not."""
    for kind in ("faketime_shm", "sem.faketime_sem"):
        Path(f"/dev/shm/{kind}_{os.getpid()}").unlink(missing_ok=True)  # noqa: S108
    shifted = {
        "LD_PRELOAD": LIBRARY,
        "FAKETIME": clock,
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(HERE),
    }
    os.execve(command[0], command, os.environ | shifted)  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
