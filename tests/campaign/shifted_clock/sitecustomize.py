# SPDX-License-Identifier: Apache-2.0
"""Read by a Python that libfaketime gives another time of day; Python finds it by PYTHONPATH.

libfaketime 0.9.10 shifts the monotonic clock as well where Python's time.sleep names a point of it,
and the sleep fails with "Invalid argument". So sleep is made of another call of the system.
"""

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
