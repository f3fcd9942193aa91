# SPDX-License-Identifier: Apache-2.0
"""The name of the user of this process, as the system knows it: no variable can change it."""

from __future__ import annotations

import os
import pwd


def user() -> str:
    """Return the name of the user of this process, as it is recorded; without one, the number."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
