# SPDX-License-Identifier: Apache-2.0
"""Read by a Python that libfaketime gives another time of day; Python finds it by PYTHONPATH.

libfaketime 0.9.10 shifts the monotonic clock as well where Python's time.sleep names a point of it,
and the sleep fails with "Invalid argument". So sleep is made of another call of the system. What
this process starts has the clock of the machine. The files of libfaketime in /dev/shm lose their
names, so that a process that is killed leaves none.
"""

import os
import select
import time
from contextlib import suppress


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
for name in ("LD_PRELOAD", "FAKETIME", "FAKETIME_SHARED", "PYTHONPATH"):
    os.environ.pop(name, None)
for kind in ("faketime_shm", "sem.faketime_sem"):
    with suppress(FileNotFoundError):
        os.unlink(f"/dev/shm/{kind}_{os.getpid()}")  # noqa: S108
