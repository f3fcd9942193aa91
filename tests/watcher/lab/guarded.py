# SPDX-License-Identifier: Apache-2.0
"""Runs a command for as long as standard input stays open: ``python guarded.py COMMAND...``.

A byte of the input is the number of a signal for the command. When the input is closed, which is
also how the end of whoever opened it is noticed, the whole process group of the command is killed.
When this ends, none of the group is left, not even one that still closes what it listened on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

#: From linux/prctl.h: children of processes that have ended become children of this one.
PR_SET_CHILD_SUBREAPER = 36


def main(command):
    """Run the command; return its exit code when its input is closed or it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A service that is the leader of a group stays in it; others make one of their own.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    threading.Thread(target=pass_signals, args=(child,), daemon=True).start()
    code = child.wait()
    end_group(child.pid)
    await_group(child.pid)
    return code


def pass_signals(child):
    """Pass on signals, and kill the group when no more can come."""
    while number := os.read(0, 1):
        child.send_signal(number[0])
    end_group(child.pid)


def end_group(group):
    """Kill what is left of a process group."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def await_group(group):
    """Wait until all of a process group have ended."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
