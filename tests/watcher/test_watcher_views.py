# SPDX-License-Identifier: Apache-2.0
"""``actionplan-watcher`` shows plans of Watcher, and changes nothing."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from environments import ROOT, Environment
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]

#: Commands and what they print, as the page shows them.
SHOWN = ROOT / "doc" / "how-to" / "inside-watcher.txt"
Call = Callable[..., subprocess.CompletedProcess[str]]


def caller(environment: Environment, folder: Path, *more: str) -> Call:
    """Store plans, and return a function that runs a command line."""
    words = [environment.python, "-W", "ignore", PROGRAMS / "planned_maintenance.py", folder, *more]
    subprocess.run(words, check=True, capture_output=True)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        program = environment.program("actionplan-watcher")
        return subprocess.run(
            [program, "--config-file", folder / "watcher.conf", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )

    return call


@pytest.fixture(scope="module")
def planned(watcher_environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Return a function that runs a command line where no plan has been run."""
    return caller(watcher_environment, tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="module")
def ended(watcher_environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Return a function that runs a command line where our engine has run the last plan."""
    return caller(watcher_environment, tmp_path_factory.mktemp("ended"), "run")


def test_the_commands_of_the_page_print_what_it_says(planned: Call) -> None:
    lines = SHOWN.read_text(encoding="utf-8").splitlines()
    printed: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            printed += [""] if printed else []
            ran = planned(*shlex.split(line)[2:])
            assert (ran.returncode, ran.stderr) == (0, ""), line
            printed += [line, *(text.rstrip() for text in ran.stdout.splitlines())]
    assert lines == printed, "write it anew:\n" + "\n".join(printed)


def test_a_plan_is_found_by_a_beginning_and_drawn(planned: Call) -> None:
    whole = json.loads(planned("show", "last", "-f", "json").stdout)
    drawn = planned("graph", whole["uuid"][:8], "-f", "mermaid")
    assert drawn.returncode == 0
    assert drawn.stdout.startswith("flowchart")
    assert "move web-1 from compute-1 to compute-2" in drawn.stdout


def test_the_timeline_is_that_of_watchers_record_and_makes_no_other(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    ran = caller(watcher_environment, tmp_path, "run")

    def files() -> set[Path]:
        """Return all files but stevedore's cache of entry points."""
        return {f for f in tmp_path.rglob("*") if ".cache" not in f.relative_to(tmp_path).parts}

    before = files()
    for lanes in ("type", "worker"):
        drawn = ran("graph", "last", "-f", "timeline", "--lanes", lanes)
        assert (drawn.returncode, drawn.stderr) == (0, "")
        assert "watcher: FAILED" in drawn.stdout
    assert files() == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "zzzz"], "no plan 'zzzz' in Watcher's database"),
        (["why", "last", "zzzz"], "has no action 'zzzz'; Known: "),
        (["simulate", "last", "--set", "ordering=slots"], "ordering"),
        (
            ["action", "set", "last", "zzzz", "--state", "failed", "--reason", "r"],
            "no action 'zzzz'",
        ),
        (["resume", "zzzz"], "no plan 'zzzz' in Watcher's database"),
        (["resume", "--all", "--not-begun"], "--not-begun"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(
    planned: Call, words: list[str], told: str
) -> None:
    ran = planned(*words)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Refused")
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_an_ended_plan_says_what_became_of_its_actions(ended: Call) -> None:
    plan = json.loads(ended("show", "last", "-f", "json").stdout)
    by_state = {action["state"]: action for action in plan["actions"]}
    assert by_state.keys() == {"FAILED", "SUCCEEDED"}
    why = ended("why", "last", by_state["FAILED"]["uuid"][:8]).stdout
    assert "ran: it is FAILED" in why
    assert "Durations: nothing is left to do." in ended("simulate", "last").stdout


def test_an_action_is_set_with_the_words_of_actionplan(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    call = caller(watcher_environment, tmp_path, "run")
    plan = json.loads(call("show", "last", "-f", "json").stdout)
    failed = next(action["uuid"] for action in plan["actions"] if action["state"] == "FAILED")
    words = ("action", "set", "last", failed, "--reason", "looked", "--state")
    refused = call(*words, "failed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"action {failed} is FAILED" in refused.stderr
    done = call(*words, "succeeded")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"actionplan-watcher resume {plan['uuid'][:8]}" in done.stdout
    after = json.loads(call("show", "last", "-f", "json").stdout)["actions"]
    [found] = [action for action in after if action["uuid"] == failed]
    assert (found["state"], found["outcome"]) == ("SUCCEEDED", "changed")
    assert found["status_message"].endswith(": looked")


def test_views_write_nothing(planned: Call, tmp_path: Path) -> None:
    def tables(folder: Path) -> list[str]:
        with closing(sqlite3.connect(folder / "watcher.sqlite")) as file:
            return [name for (name,) in file.execute("SELECT name FROM sqlite_master")]

    for words in (["show", "last"], ["simulate", "last"], ["graph", "last"]):
        assert planned(*words).returncode == 0
    folder = Path(planned("--version").args[2]).parent
    assert not [name for name in tables(folder) if "actionplan" in name]
    assert not list(tmp_path.iterdir())


def test_the_help_lists_the_verbs_of_this_program(planned: Call) -> None:
    text = planned("--help").stdout
    for verb in ("show", "why", "graph", "simulate", "action set", "resume"):
        assert f"\n  {verb} " in text
    assert "actionplan create" not in text
    usage = planned("why", "last")
    assert usage.returncode == 2
    assert "For example: actionplan-watcher why last" in usage.stderr
