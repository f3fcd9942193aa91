# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of the database store."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch_database import empty_record_on
from temporary_store import empty_record


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
        pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
    ]
)
def record_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty record, on each database."""
    if request.param == "sqlite":
        path = tmp_path / "plans.db"
        path.write_bytes(empty_record())
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue(request.param)
    empty_record_on(url)
    return url


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a record in a file that is not there yet."""
    return tmp_path / "plans.db"


@pytest.fixture
def url(path: Path) -> str:
    """Return its URL."""
    return f"sqlite:///{path}"
