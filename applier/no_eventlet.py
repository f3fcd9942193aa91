# SPDX-License-Identifier: Apache-2.0
"""Keeps eventlet out of our own programs, none of which uses it.

taskflow and futurist import it wherever it is installed, and oslo.messaging installs it. Its import
takes longer than theirs, and warns on standard error.
"""

from __future__ import annotations

import sys
from typing import Any, cast


def keep_out() -> None:
    """Let every later import of eventlet fail, as if it were not installed."""
    cast("dict[str, Any]", sys.modules).setdefault("eventlet", None)
