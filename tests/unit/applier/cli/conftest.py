# SPDX-License-Identifier: Apache-2.0
"""The command line inside the process of the test: quick, and with what it prints as text."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from applier.cli.program import Program
from applier.storage.sql_store import SqlStore

#: Runs a command line; gives exit code, standard output, standard error.
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Return a function that runs a command line with a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="operator"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)

    def run(*words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        code = Program(stdout=out, stderr=err).run(words)
        return code, out.getvalue(), err.getvalue()

    yield run
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Iterator[SqlStore]:
    """Return the record of :func:`run`."""
    (tmp_path / "state" / "actionplan").mkdir(parents=True)
    store = SqlStore(f"sqlite:///{tmp_path}/state/actionplan/actionplan.sqlite")
    yield store
    store.close()
