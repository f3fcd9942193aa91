# SPDX-License-Identifier: Apache-2.0
"""Two appliers that run their first plans at once add our tables to Watcher's database once."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from environments import Environment
from scratch_database import database_for_tests, run
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.xdist_group("beside")]

DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql"}


def adding(
    environment: Environment, folder: Path, database: sa.URL, *words: str
) -> subprocess.Popen[str]:
    """Start the program that adds the tables."""
    folder.mkdir()
    known = database.set(drivername=DRIVERS[database.get_backend_name()])
    program = [environment.python, "-W", "ignore", PROGRAMS / "prepare_tables.py"]
    return subprocess.Popen(
        [*program, folder, known.render_as_string(hide_password=False), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_two_processes_that_add_the_tables_at_once_add_them_once(
    watcher_environment: Environment, tmp_path: Path, kind: str
) -> None:
    with database_for_tests(kind) as url, ExitStack() as stack:
        both = [
            stack.enter_context(adding(watcher_environment, tmp_path / name, sa.make_url(url)))
            for name in ("one", "two")
        ]
        for process in both:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in both:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate()[1] for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        for table in ("actionplan_watcher_run", "actionplan_watcher_attempt"):
            assert run(url, f"SELECT count(*) FROM {table}") == [0]
