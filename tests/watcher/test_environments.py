# SPDX-License-Identifier: Apache-2.0
"""The environments of the tests with Watcher are made once; one that is missing is told of."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import environments
import pytest
from environments import Environment

pytestmark = pytest.mark.slow

Commands = list[tuple[str, ...]]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Return the commands that are run, all of which succeed and do nothing."""
    done: Commands = []

    def run(*command: str) -> None:
        done.append(command)
        Path(done[0][-1]).mkdir(exist_ok=True)

    monkeypatch.setattr(environments, "_run", run)
    return done


@pytest.fixture
def small(tmp_path: Path) -> Environment:
    """Return an environment with nothing in it."""
    (tmp_path / "constraints.txt").write_text("")
    return Environment(tmp_path / "venv", tmp_path / "constraints.txt", ("pip",))


def test_an_environment_is_made_once(small: Environment, commands: Commands) -> None:
    several = [threading.Thread(target=environments.make, args=(small,)) for _ in range(4)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    venv, install = commands
    assert (venv[1:5], venv[-1]) == (("-m", "uv", "--quiet", "venv"), str(small.folder))
    assert install[-3:] == ("--constraint", str(small.constraints), "pip")


def test_new_constraints_make_it_anew(small: Environment, commands: Commands) -> None:
    environments.make(small)
    small.constraints.write_text("pip>1\n")
    environments.make(small)
    assert len(commands) == 4
    assert all("--clear" in command for command in commands[::2])


@pytest.mark.parametrize(
    ("ci", "ends"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_cannot_be_made_skips_or_fails_with_the_reason(
    small: Environment, monkeypatch: pytest.MonkeyPatch, ci: str, ends: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ends, match="ended with 1: it printed nothing"):
        environments.require(small)
    assert not (small.folder / "complete").exists()


@pytest.mark.parametrize(("ci", "made"), [("", False), ("true", True)])
def test_one_that_nobody_asked_for_is_made_under_ci_alone(
    small: Environment,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
    made: bool,
) -> None:
    monkeypatch.setenv("CI", ci)
    with nullcontext() if made else pytest.raises(pytest.skip.Exception, match="there is no venv"):
        environments.require_made(small)
    assert bool(commands) is made


def test_one_that_was_asked_for_is_brought_up_to_date(
    small: Environment, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "")
    environments.make(small)
    small.constraints.write_text("pip>1\n")
    environments.require_made(small)
    assert len(commands) == 4
