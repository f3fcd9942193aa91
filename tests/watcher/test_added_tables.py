# SPDX-License-Identifier: Apache-2.0
"""Two appliers that run their first plans at once add our tables to Watcher's database once."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from environments import Environment
from watcher_lab import PROGRAMS

from applier.storage.connection import make_engine, parse

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.xdist_group("beside")]

DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql"}


@pytest.mark.parametrize("url", ["mysql_url", "postgresql_url"])
def test_two_processes_that_add_the_tables_at_once_add_them_once(
    watcher_environment: Environment, request: pytest.FixtureRequest, tmp_path: Path, url: str
) -> None:
    database = sa.make_url(request.getfixturevalue(url))
    known = database.set(drivername=DRIVERS[database.get_backend_name()])
    program = [watcher_environment.python, "-W", "ignore", PROGRAMS / "prepare_tables.py"]
    with ExitStack() as stack:
        both = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            words = [tmp_path / name, known.render_as_string(hide_password=False)]
            both.append(
                stack.enter_context(
                    subprocess.Popen(
                        [*program, *words],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                )
            )
        for process in both:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in both:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    engine = make_engine(parse(database.render_as_string(hide_password=False)))
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT version_num FROM actionplan_watcher_version"))
        assert found.scalars().all() == ["0001"]
    engine.dispose()
