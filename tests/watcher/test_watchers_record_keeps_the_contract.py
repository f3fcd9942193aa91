# SPDX-License-Identifier: Apache-2.0
"""The record in Watcher's tables keeps the contract of run stores, where that can hold there.

``record_contract.py`` says which checks cannot, and why.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from environments import Environment
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]

PACKAGES = Path(pytest.__file__).parents[1]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the environment variables that name an empty database; none for SQLite."""
    if request.param is None:
        return {}
    url = sa.make_url(request.getfixturevalue(request.param))
    driver = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql"}
    known = url.set(drivername=driver[url.get_backend_name()])
    return {"WATCHER_DATABASE": known.render_as_string(hide_password=False)}


@pytest.mark.parametrize(
    "database",
    [
        pytest.param(None, id="sqlite"),
        pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
        pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
    ],
    indirect=True,
)
def test_the_checks_that_can_hold_hold(
    watcher_environment: Environment, database: dict[str, str], tmp_path: Path
) -> None:
    ended = subprocess.run(
        [
            watcher_environment.python,
            *("-W", "ignore", PROGRAMS / "run_pytest.py", PACKAGES),
            *("-q", "-rs", "--rootdir", tmp_path, PROGRAMS / "record_contract.py"),
        ],
        env={**os.environ, "WATCHER_FOLDER": str(tmp_path), **database},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    passed = re.search(r"(\d+) passed, (\d+) skipped", ended.stdout)
    assert passed
    assert int(passed[1]) >= 20, ended.stdout
