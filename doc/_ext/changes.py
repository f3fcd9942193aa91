# SPDX-License-Identifier: Apache-2.0
"""Directive ``unreleased``: the change log of the next release, from the fragments in changes/."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from from_the_code import Written
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]


class Unreleased(Written):
    """What ``towncrier build`` would put on top of CHANGELOG.rst."""

    def lines(self) -> Iterator[str]:
        for fragment in (ROOT / "changes").glob("*.rst"):
            self.env.note_dependency(str(fragment))
        options = ["--draft", "--version", "Next release", "--date", "not yet"]
        command = [sys.executable, "-m", "towncrier", "build", *options]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if told.returncode != 0:
            raise self.severe(f"no change log: {told.stderr or told.stdout}")
        yield from told.stdout.splitlines()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("unreleased", Unreleased)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
