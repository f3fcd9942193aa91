# SPDX-License-Identifier: Apache-2.0
"""The name of the user of this process."""

from __future__ import annotations

import getpass
import os


def user() -> str:
    """Return the name of the user of this process, as it is recorded."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
