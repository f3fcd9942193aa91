# SPDX-License-Identifier: Apache-2.0
"""Planning and storing 5,000 actions, side by side with OpenStack Watcher.

Run it: ``python tests/benchmark/beside_watcher.py PYTHON``, where PYTHON is an interpreter that has
python-watcher. ``planner and record`` is what both do in one process that has started: plan the
same solution by weight, and store the plan in a new SQLite file. ``create`` is the whole command,
less a ``create`` with one action. Watcher never synchronises its file to the disk; ActionPlan does.
Rounds alternate, what is printed are medians, and the exit code is 1 if a ratio of processor time
is below the target.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import create

from applier.storage.sql_store import SqlStore
from planner import make_plan

ACTIONS = 5_000
ROUNDS = 3
#: Watcher takes at least this many times the processor time.
TARGET = 80


class Taken(NamedTuple):
    """Seconds of processor time, and seconds."""

    processor_s: float
    wall_s: float


def main(arguments: list[str]) -> int:
    """Measure, print, and return 1 if a target is missed."""
    if len(arguments) != 1 or not has_watcher(arguments[0]):
        print(f"The one argument is a Python that has python-watcher, not: {arguments}")
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = create.written(folder / "one.json", 1, None)
        some = create.written(folder / "some.json", ACTIONS, None)
        rounds = []
        for k in range(ROUNDS):
            start = timed_create(folder / f"one-{k}.db", one)
            rounds.append(
                (
                    by_watcher(arguments[0], some, folder / f"watcher-{k}.db"),
                    in_one_process(some, folder / f"own-{k}.db"),
                    less(timed_create(folder / f"create-{k}.db", some), start),
                )
            )
    watcher, own, command = (median(column) for column in zip(*rounds, strict=True))
    print(f"{ACTIONS:,} actions, medians of {ROUNDS} rounds    processor    time")
    print(
        f"Watcher, planner and record          {watcher.processor_s:9.3f} s {watcher.wall_s:9.3f} s"
    )
    return int(any([tell("planner and record", own, watcher), tell("create", command, watcher)]))


def has_watcher(python: str) -> bool:
    """Return whether an interpreter exists and has python-watcher."""
    try:
        done = subprocess.run([python, "-c", "import watcher"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def by_watcher(python: str, document: Path, database: Path) -> Taken:
    """Plan and store a document with Watcher."""
    program = Path(__file__).with_name("watcher_schedule.py")
    done = subprocess.run(
        [python, "-P", program, document, database], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    if told["actions"] != ACTIONS:
        raise RuntimeError(f"Watcher stored {told['actions']} actions")
    return Taken(told["processor_s"], told["wall_s"])


def in_one_process(document: Path, database: Path) -> Taken:
    """Read, check, plan and store a document in this process."""
    with closing(SqlStore(f"sqlite:///{database}")) as store:
        gc.collect()
        began = time.process_time(), time.perf_counter()
        store.save_plan(make_plan(document))
        return Taken(time.process_time() - began[0], time.perf_counter() - began[1])


def timed_create(record: Path, document: Path) -> Taken:
    """Run ``create`` on a document with a new record."""
    began = time.perf_counter()
    processor_s = create.create(record, document)
    return Taken(processor_s, time.perf_counter() - began)


def less(whole: Taken, start: Taken) -> Taken:
    """Subtract what starting takes."""
    return Taken(whole.processor_s - start.processor_s, whole.wall_s - start.wall_s)


def median(rounds: tuple[Taken, ...]) -> Taken:
    """Return the median of each column."""
    return Taken(*map(statistics.median, zip(*rounds, strict=True)))


def tell(what: str, own: Taken, watcher: Taken) -> bool:
    """Print what ActionPlan takes, and the ratios; returns True if the target is missed."""
    ratios = watcher.processor_s / own.processor_s, watcher.wall_s / own.wall_s
    missed = ratios[0] < TARGET
    print(
        f"ActionPlan, {what:<24} {own.processor_s:9.3f} s {own.wall_s:9.3f} s   "
        f"Watcher takes {ratios[0]:.0f} x and {ratios[1]:.0f} x"
        f"  (target {TARGET} x){'  MISSED' if missed else ''}"
    )
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
