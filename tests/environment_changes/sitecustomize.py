# SPDX-License-Identifier: Apache-2.0
"""Read by a Python whose changes of its environment are to be seen; Python finds it by PYTHONPATH.

Each start and each change is a line in the file that ENVIRONMENT_CHANGES names: the program, and
the variable with the threads that ran beside.
"""

import os
import sys
import threading

FILE = os.environ.get("ENVIRONMENT_CHANGES")


def _note(what: str) -> None:
    with open(str(FILE), "a", encoding="utf-8") as file:
        file.write(f"{os.path.basename(sys.argv[0])} {what}\n")


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("os.putenv", "os.unsetenv"):
        beside = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
        _note(f"{arguments[0]!r} beside {' '.join(beside) or 'nothing'}")


if FILE:
    _note("starts")
    sys.addaudithook(_hear)
