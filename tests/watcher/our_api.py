# SPDX-License-Identifier: Apache-2.0
"""``actionplan-api`` in a process of its own, and the client of OpenStack that asks it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import environments
from guarded_process import PATIENCE_S

SESSION = Path(__file__).parent / "lab" / "client_session.py"
#: The user database of the tests.
USERS = Path(__file__).parents[1] / "user_database"


class Ended(NamedTuple):
    """How a command of the client ended."""

    code: int
    out: str
    err: str


def own_environment(folder: Path) -> dict[str, str]:
    """Return an environment with nothing of the user's own clouds and configuration."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "PYTHONPATH": str(USERS),
        "TEST_USER": "operator",
    }


class Api:
    """The service on a free port; it ends with the block."""

    def __init__(self, folder: Path, connection: str) -> None:
        self._environment = own_environment(folder)
        self._configuration = folder / "watcher.conf"
        self._configuration.write_text(
            f"[actionplan]\nconnection = {connection}\nsimulator_speed = 1000\n[api]\nport = 0\n"
        )
        self.url = ""

    def __enter__(self) -> Api:
        self._process = subprocess.Popen(
            self._words("actionplan-api"), env=self._environment, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        said = ""
        for line in self._process.stderr:
            said += line
            if listening := re.search(r"Listening on (http://[\d.:]+)", line):
                self.url = listening[1]
                return self
        raise AssertionError(said)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        assert self._process.returncode == 0

    def actionplan(self, *words: str) -> str:
        """Run a command of our own command line on the same record; return what it prints."""
        ended = subprocess.run(
            self._words("actionplan", *words),
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def _words(self, program: str, *words: str) -> list[str]:
        path = Path(sys.executable).with_name(program)
        return [str(path), *words, "--config-file", str(self._configuration)]


class Client:
    """``openstack optimize`` without authentication; it ends with the block."""

    def __init__(self, folder: Path) -> None:
        self._environment = own_environment(folder)
        self.url = ""

    def __enter__(self) -> Client:
        self._process = subprocess.Popen(
            [str(environments.WATCHER.python), str(SESSION)],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=PATIENCE_S)

    def __call__(self, *words: str, version: str | None = None) -> Ended:
        """Run a command in the process that has imported the client."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._all(words, version)) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def json(self, *words: str, **options: Any) -> Any:
        """Run a command that must succeed; return the JSON that it prints."""
        ended = self(*words, "-f", "json", **options)
        assert ended.code == 0, ended
        return json.loads(ended.out)

    def table(self, *words: str, **options: Any) -> str:
        """Run a command that must succeed; return the table that it prints."""
        ended = self(*words, **options)
        assert ended.code == 0, ended
        return ended.out

    def shown(self, *words: str) -> dict[str, str]:
        """Run a command that shows one thing as a table; return its fields."""
        rows = [line.split("|")[1:3] for line in self.table(*words).splitlines() if "|" in line]
        return {name.strip(): value.strip() for name, value in rows}

    def refused(self, *words: str, **options: Any) -> str:
        """Run a command that must fail; return what it says."""
        ended = self(*words, **options)
        assert ended.code == 1, ended
        return ended.err

    def alone(self, *words: str) -> Ended:
        """Run a command as a user does: by the program ``openstack``."""
        program = str(environments.WATCHER.program("openstack"))
        ended = subprocess.run(
            [program, *self._all(words, None)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def _all(self, words: tuple[str, ...], version: str | None) -> list[str]:
        chosen = ["--os-infra-optim-api-version", version] if version else []
        return ["--os-auth-type", "none", "--os-endpoint", self.url, *chosen, "optimize", *words]


def rows(table: str) -> list[Mapping[str, str]]:
    """Return the rows of a table by the names of its columns."""
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("|")
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
