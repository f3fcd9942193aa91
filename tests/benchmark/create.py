# SPDX-License-Identifier: Apache-2.0
"""What ``actionplan create`` costs: ratios to the least that reading and storing the plan costs.

Run it as a program: ``python tests/benchmark/create.py``. Each ``create`` is a process of its own
that plans a document from disk and stores the plan in a new SQLite record; TMPDIR says on which
disk. Its cost is processor time, less that of a ``create`` with one action: what starting the
program costs is not the cost of an action. The floor reads the same document with ``json.loads``
and writes the same rows with one ``executemany`` for each table. Runs alternate, and what is
printed are medians; a figure that is not met is marked MISSED, and the exit code is 1.

With ``estimates`` each action has an estimate, so that ``create`` also plans and forecasts the
other ordering, and says how long each takes.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from planning import document

ROUNDS = 7
ACTIONS, MANY = 5_000, 100_000
#: An action at most this many times the floor; this many actions at most so many seconds.
FLOOR, MANY_S = 20, 12


def main() -> int:
    """Measure, print, and return 1 if a figure is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one, some, estimated, many = (
            written(folder / f"{label}.json", count, estimate_s)
            for label, count, estimate_s in (
                ("one", 1, None),
                ("some", ACTIONS, None),
                ("estimated", ACTIONS, 30),
                ("many", MANY, None),
            )
        )
        rows = stored(folder / "rows", some)
        start, whole, compared, least = medians(
            partial(create, folder / "record", one),
            partial(create, folder / "record", some),
            partial(create, folder / "record", estimated),
            partial(floor, folder / "floor", some, rows),
        )
        most = statistics.median(create(folder / "record", many) for _ in range(3))
    print(
        f"start, with one action: {start * 1e3:.0f} ms; floor: {per_action(least):.1f} us an action"
    )
    missed = [
        tell(f"create, {per_action(whole - start):.1f} us an action", (whole - start) / least),
        tell(f"with estimates, {per_action(compared - start):.1f} us", (compared - start) / least),
    ]
    print(f"create with {MANY:,} actions: {most:.1f} s  (limit {MANY_S} s){failed(most, MANY_S)}")
    return int(any(missed) or most > MANY_S)


def tell(what: str, ratio: float) -> bool:
    """Print a ratio to the floor; returns True if it is missed."""
    print(f"{what}: {ratio:.1f} x the floor  (limit {FLOOR} x){failed(ratio, FLOOR)}")
    return ratio > FLOOR


def failed(figure: float, limit: float) -> str:
    """Say by how much a figure is missed, if it is."""
    return f"  MISSED by {figure / limit - 1:.0%}" if figure > limit else ""


def per_action(seconds: float) -> float:
    """Return microseconds an action of :data:`ACTIONS`."""
    return seconds / ACTIONS * 1e6


def written(path: Path, count: int, estimate_s: float | None) -> Path:
    """Write the document of ``count`` actions, each with that estimate."""
    value = document(max(2, count))
    value["actions"] = value["actions"][:count]
    if estimate_s is not None:
        value["actions"] = [{**a, "estimate_s": estimate_s} for a in value["actions"]]
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def create(record: Path, path: Path) -> float:
    """Plan a document into a new record; returns the processor time of the process."""
    clear(record)
    config = record.with_suffix(".conf")
    config.write_text(f"[actionplan]\nconnection = sqlite:///{record}\n", encoding="utf-8")
    program = [sys.executable, "-c", "from applier.cli.main import main; raise SystemExit(main())"]
    process = subprocess.Popen(
        [*program, "--config-file", config, "create", path], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"create {path.name} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


#: The tables that hold a row for each action.
TABLES = ("actionplan_action", "actionplan_action_state")
Stored = list[tuple[str, str, list[tuple[object, ...]]]]


def stored(record: Path, path: Path) -> Stored:
    """Return what ``create`` stores: tables, the statements that fill them, and the rows."""
    create(record, path)
    with sqlite3.connect(record) as database:
        return [contents(database, table) for table in TABLES]


def contents(database: sqlite3.Connection, table: str) -> tuple[str, str, list[tuple[object, ...]]]:
    """Return the statement that makes a table, the one that fills it, and its rows."""
    schema = "SELECT sql FROM sqlite_master WHERE name = ?"
    (made,) = database.execute(schema, (table,)).fetchone()
    found = database.execute(f"SELECT * FROM {table}")
    marks = ", ".join("?" for _ in found.description)
    insert = f"INSERT INTO {table} VALUES ({marks})"
    return made, insert, found.fetchall()


def floor(record: Path, path: Path, tables: Stored) -> float:
    """Read the document and write its rows, and nothing else; returns the processor time."""
    clear(record)
    with sqlite3.connect(record) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        for made, _, _ in tables:
            database.execute(made)
        began = time.process_time()
        json.loads(path.read_text(encoding="utf-8"))
        for _, insert, values in tables:
            database.executemany(insert, values)
        database.commit()
        return time.process_time() - began


def clear(record: Path) -> None:
    """Remove the files of a record."""
    for file in record.parent.glob(f"{record.name}*"):
        if file.name in (record.name, f"{record.name}-wal", f"{record.name}-shm"):
            file.unlink()


def medians(*works: Callable[[], float]) -> list[float]:
    """Run each of several works in turns, and return the median of what each says that it took."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for own, work in zip(taken, works, strict=True):
            own.append(work())
    return [statistics.median(own) for own in taken]


if __name__ == "__main__":
    sys.exit(main())
