# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of several rooms of the applier."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def ended_pid():
    """Return the pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid
