# SPDX-License-Identifier: Apache-2.0
"""An applier with our engine is killed in the middle of a plan, and the plan goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from environments import Environment
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]

DOUBT = (
    "in doubt: it was interrupted, and nobody knows whether its work is done; look, then: "
    "actionplan-watcher action set PLAN ACTION --state succeeded|failed --reason TEXT"
)


class Applier:
    """Starts ``killed_run.py`` on one database, each time in a new process."""

    def __init__(self, python: Path, folder: Path, resume: str) -> None:
        self._command = [str(python), str(PROGRAMS / "killed_run.py"), str(folder), resume]
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(PROGRAMS / "traced_type"),
            "PYTHONWARNINGS": "ignore",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a process."""
        return subprocess.Popen(
            [*self._command, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def killed(self) -> str:
        """Kill an applier in the middle of a plan; return the plan's UUID."""
        with self.start("begin") as process:
            assert process.stdout
            plan = process.stdout.readline().strip()
            process.send_signal(signal.SIGKILL)
        return plan

    def killed_early(self) -> str:
        """Kill an applier before its engine claims a plan of two; return the plan's UUID."""
        with self.start("store") as process:
            assert process.stdout
            plan = process.stdout.read().strip()
        with self.start("early", plan) as process:
            assert process.wait() == -signal.SIGKILL
        return plan

    def step(self, name: str, plan: str) -> dict[str, Any]:
        """Take a step in a process of its own; return the outcome."""
        with self.start(name, plan) as process:
            assert process.stdout
            printed = process.stdout.read()
        assert process.returncode == 0
        outcome: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return outcome


@pytest.fixture
def applier(
    watcher_environment: Environment, tmp_path: Path, request: pytest.FixtureRequest
) -> Applier:
    return Applier(watcher_environment.python, tmp_path, request.param)


def states(outcome: dict[str, Any]) -> list[str]:
    """Return the states of the plan and of its actions."""
    return [outcome["state"], *(action["state"] for action in outcome["actions"])]


@pytest.mark.parametrize("applier", ["followed"], indirect=True)
def test_with_resume_the_next_applier_takes_the_plan_over(applier: Applier) -> None:
    plan = applier.killed()
    left = applier.step("syncer", plan)
    assert states(left) == ["ONGOING", "SUCCEEDED", "ONGOING", "PENDING"]
    ended = applier.step("go on", plan)
    # Nobody knows whether the work of a third party's type is done; sleep does not need it.
    assert states(ended) == ["FAILED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert ended["actions"][1]["status_message"] == DOUBT
    assert ended["runs"] == 0


@pytest.mark.parametrize("applier", ["true"], indirect=True)
@pytest.mark.parametrize(
    ("step", "state"),
    [
        ("cancelled, done", "SUCCEEDED"),
        ("cancelled, not done", "CANCELLED"),
        ("cancelled, another", "FAILED"),
    ],
)
def test_what_a_cancelled_plan_was_at_is_verified_as_well(
    applier: Applier, step: str, state: str
) -> None:
    ended = applier.step(step, applier.killed())
    assert states(ended) == ["CANCELLED", "SUCCEEDED", state, "CANCELLED"]
    assert "again" not in ended["actions"][1]["status_message"], "nothing of it runs any more"


@pytest.mark.parametrize("applier", ["true"], indirect=True)
def test_what_is_kept_of_a_plan_goes_when_watcher_has_removed_it(applier: Applier) -> None:
    assert applier.step("purged", applier.killed()) == {"before": 0, "after": 1, "again": 0}


@pytest.mark.parametrize("applier", ["false", "true"], indirect=True)
def test_unless_a_process_follows_watcher_cancels_the_plan_and_it_goes_on_when_asked(
    applier: Applier,
) -> None:
    plan = applier.killed()
    cancelled = applier.step("syncer", plan)
    assert states(cancelled) == ["CANCELLED", "SUCCEEDED", "CANCELLED", "CANCELLED"]
    reopened = applier.step("reopen", plan)
    assert states(reopened) == ["PENDING", "SUCCEEDED", "ONGOING", "PENDING"]
    ended = applier.step("go on", plan)
    assert states(ended) == ["FAILED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    again = applier.step("reopen", plan)
    assert states(again) == ["PENDING", "SUCCEEDED", "FAILED", "SUCCEEDED"]


@pytest.mark.parametrize("applier", ["false"], indirect=True)
def test_without_resume_an_applier_that_gets_the_plan_cancels_it_as_watcher_does(
    applier: Applier,
) -> None:
    ended = applier.step("go on", applier.killed())
    assert states(ended) == ["CANCELLED", "SUCCEEDED", "CANCELLED", "CANCELLED"]
    message = "cancelled because Applier lab was stopped while the action plan was ongoing."
    assert ended["status_message"] == f"Action plan was {message}"
    assert ended["actions"][2]["status_message"] == f"Action was {message}"


@pytest.mark.parametrize("applier", ["true"], indirect=True)
def test_a_second_applier_waits_for_the_first_and_takes_over_when_that_is_killed(
    applier: Applier,
) -> None:
    with applier.start("begin") as first:
        assert first.stdout
        plan = first.stdout.readline().strip()
        with applier.start("go on", plan) as second:
            assert second.stdout
            waits = [second.stdout.readline() for _ in range(3)]
            assert waits == ["waits\n"] * 3
            first.send_signal(signal.SIGKILL)
            first.wait()
            ended = json.loads(second.stdout.read().splitlines()[-1])
    assert states(ended) == ["FAILED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert ended["runs"] == 0


@pytest.mark.parametrize("applier", ["true"], indirect=True)
def test_an_action_during_which_the_applier_died_three_times_is_not_run_again(
    applier: Applier,
) -> None:
    with applier.start("store") as process:
        assert process.stdout
        plan = process.stdout.read().strip()
    for _ in range(3):
        with applier.start("die", plan) as process:
            assert process.stdout
            process.stdout.read()
        assert process.returncode == -signal.SIGKILL
    ended = applier.step("go on", plan)
    assert states(ended) == ["FAILED", "FAILED", "SUCCEEDED"]
    assert "3 times in a row" in ended["actions"][0]["status_message"]


@pytest.mark.parametrize("applier", ["false"], indirect=True)
def test_a_plan_goes_on_whose_applier_was_killed_before_its_claim(applier: Applier) -> None:
    plan = applier.killed_early()
    refused = applier.step("reopen", plan)
    assert states(refused) == ["ONGOING", "PENDING", "PENDING"]
    assert f"plan {plan} is ONGOING: applier lab" in refused["refused"]
    assert states(applier.step("reopen down", plan)) == ["PENDING"] * 3
    assert states(applier.step("go on", plan)) == ["SUCCEEDED"] * 3


@pytest.mark.parametrize("applier", ["false"], indirect=True)
def test_what_watcher_cancelled_before_a_claim_goes_on_by_the_word_of_an_operator(
    applier: Applier,
) -> None:
    plan = applier.killed_early()
    assert states(applier.step("syncer", plan)) == ["CANCELLED"] * 3
    refused = applier.step("reopen down", plan)
    assert refused["refused"].endswith(" --not-begun")
    assert states(refused) == ["CANCELLED"] * 3
    assert states(applier.step("reopen not begun", plan)) == ["PENDING"] * 3
    assert states(applier.step("go on", plan)) == ["SUCCEEDED"] * 3


@pytest.mark.parametrize("applier", ["false"], indirect=True)
def test_a_plan_that_watchers_own_engine_has_begun_does_not_go_on(applier: Applier) -> None:
    plan = applier.killed_early()
    applier.step("tell", plan)
    for step in ("reopen down", "reopen not begun"):
        refused = applier.step(step, plan)
        assert "actions of it: 1" in refused["refused"]
        assert states(refused) == ["ONGOING", "SUCCEEDED", "PENDING"]


@pytest.mark.parametrize("applier", ["true"], indirect=True)
def test_a_plan_goes_on_whose_second_applier_was_killed_before_its_claim(applier: Applier) -> None:
    plan = applier.killed()
    applier.step("reopen", plan)
    with applier.start("early", plan) as process:
        assert process.wait() == -signal.SIGKILL
    assert states(applier.step("reopen down", plan)) == [
        "PENDING",
        "SUCCEEDED",
        "ONGOING",
        "PENDING",
    ]
    assert states(applier.step("go on", plan)) == ["FAILED", "SUCCEEDED", "FAILED", "SUCCEEDED"]


@pytest.mark.parametrize("applier", ["true"], indirect=True)
@pytest.mark.parametrize(("word", "runs"), [("succeeded", 0), ("failed", 1)])
def test_an_action_in_doubt_is_settled_and_the_plan_goes_on(
    applier: Applier, word: str, runs: int
) -> None:
    plan = applier.killed()
    refused = applier.step(f"settle {word}", plan)
    assert "runs it, or has died: resume it then" in refused["refused"]
    applier.step("go on", plan)
    settled = applier.step(f"settle {word}", plan)
    assert settled["actions"][1]["state"] == word.upper()
    assert settled["actions"][1]["status_message"] == "set by ann: looked"
    applier.step("reopen", plan)
    ended = applier.step("go on", plan)
    assert states(ended) == ["SUCCEEDED"] * 4
    assert ended["runs"] == runs
    again = applier.step(f"settle {word}", plan)
    assert "is SUCCEEDED: only" in again["refused"]
