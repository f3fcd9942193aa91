# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that failed once more, each alone: tells a flaky test from one that fails.

As a plugin of pytest it writes what failed to a file:
``pytest -p tests.once_more --failures-to=FILE``. As a program it reads that file:
``python tests/once_more.py FILE [PYTEST-OPTION...]``. A test that passes now is printed as
``FLAKY: name`` with both outputs, and is to be mended or deleted in the next commit. It ends with 1
if a test fails again, or if so many failed that this is no matter of chance.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: If more tests than this have failed, none is run again.
MOST = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file."""
    parser.addoption(
        "--failures-to",
        help="append a line of JSON for each failure to this file; only with '=': what follows a "
        "space is a place of tests to pytest while it looks for its configuration",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Write failures where the file is named, but not in each process of xdist once more."""
    if (file := config.getoption("--failures-to")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(file)))


class Failures:
    """Appends each failure to a file: ``{"name": ..., "output": ...}``."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the failure of a test, of its set-up or of its tear-down."""
        if report.failed:
            output = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": report.nodeid, "output": output}) + "\n")


def main(file: str, *options: str) -> int:
    """Run each failed test once more; return the exit code."""
    failures: dict[str, str] = {}
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        failures[found["name"]] = failures.get(found["name"], "") + found["output"]
    if len(failures) > MOST:
        print(f"{len(failures)} tests failed; more than {MOST} are not run once more.")
        return 1
    failed = 0
    for name, first in failures.items():
        again = subprocess.run(
            [sys.executable, "-m", "pytest", *options, name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        failed += again.returncode != 0
        title = "FAILED AGAIN" if again.returncode else "FLAKY"
        print(f"{title}: {name}", "-- at first:", first, "-- alone:", again.stdout, sep="\n")
    print(f"{len(failures)} tests run once more, {failed} failed again.", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
