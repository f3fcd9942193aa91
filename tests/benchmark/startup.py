# SPDX-License-Identifier: Apache-2.0
"""What starting the program costs: ratios to importing the libraries that a verb cannot do without.

Run it: ``python tests/benchmark/startup.py``. Measured is processor time, user and system, of the
whole child process; the commands take turns, and the figure is the median of all rounds. The record
has 30 plans. It ends with 1 if a limit is missed; no measurement is asserted by a test.
"""

from __future__ import annotations

import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from applier.storage.sql_store import SqlStore

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from sample_plans import new_plan

ROUNDS = 11
ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from applier.cli.main import main; sys.exit(main())"
#: Imports alone: what every verb needs, and what a verb needs that reads the record.
BARE = "import cliff.app, cliff.commandmanager; from oslo_config import cfg"
WITH_RECORD = f"{BARE}; import sqlite3"


class Case(NamedTuple):
    """A command line, the imports that it is compared with, and the limit of the ratio."""

    words: tuple[str, ...]
    floor: str
    limit: float | None


CASES = (
    Case(("--help",), BARE, 1.3),
    Case(("list",), WITH_RECORD, 1.3),
    Case(("list", "-f", "json"), WITH_RECORD, None),
    Case(("action", "list", "last"), WITH_RECORD, None),
    Case(("show", "last"), WITH_RECORD, None),
)


def main() -> int:
    """Measure, print, and return 1 if a limit is missed."""
    # Installed libraries are compiled; a checkout that tests ran in may not be.
    for package in ("applier", "planner"):
        compileall.compile_dir(ROOT / package, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        environment = home(Path(folder))
        commands = {case: ("-c", PROGRAM, *case.words) for case in CASES}
        floors = {floor: ("-c", floor) for floor in (BARE, WITH_RECORD)}
        taken = medians({**floors, **commands}, environment)
    missed = False
    for name, floor in (("cliff, oslo.config", BARE), ("these and SQLAlchemy", WITH_RECORD)):
        print(f"imports of {name}: {taken[floor] * 1e3:.0f} ms")
    for case in CASES:
        ratio = taken[case] / taken[case.floor]
        beyond = case.limit is not None and ratio > case.limit
        limit = f"   limit: {case.limit} x" if case.limit else ""
        text = f"actionplan {' '.join(case.words)}, {taken[case] * 1e3:.0f} ms"
        print(f"{text:<40} {ratio:5.2f} x{limit}{'   MISSED' if beyond else ''}")
        missed |= beyond
    return int(missed)


def home(folder: Path) -> dict[str, str]:
    """Make a home with 30 plans on record; returns the environment of the commands."""
    state = folder / ".local" / "state" / "actionplan"
    state.mkdir(parents=True)
    store = SqlStore(f"sqlite:///{state / 'actionplan.sqlite'}")
    for number in range(30):
        store.save_plan(new_plan(*"abcdefghij", name=f"plan-{number}"))
    store.close()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(folder)}


def medians(
    commands: Mapping[Any, Sequence[str]], environment: Mapping[str, str]
) -> dict[Any, float]:
    """Run all commands in turn; returns the median processor time of each, in seconds."""
    taken: dict[Any, list[float]] = {key: [] for key in commands}
    for number in range(ROUNDS + 1):
        for key, words in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, *words], env=environment, check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            # The first round fills caches.
            if number:
                taken[key].append(seconds)
    return {key: statistics.median(own) for key, own in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
