# SPDX-License-Identifier: Apache-2.0
"""The same plans with Watcher's own engine and with ours: equal, except for what is documented."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from typing import Any

import pytest
from environments import ROOT, Environment
from watcher_lab import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]

DIFFERENCES = ROOT / "doc" / "how-to" / "watcher-differences.csv"
CASES = (
    "phases",
    "behind_a_failure",
    "skipped_by_a_user",
    "cancelled",
    "taken_for_dead",
    "again",
    "unknown_type_without_touches",
    "unknown_type_with_touches",
    "on_failure_continue",
    "limits",
    "long_message",
    "unexpected_error",
    "wrong_parameters",
    "loop",
    "unknown_parents",
    "no_such_type",
    "handed_twice",
    "rule_any",
    "rule_always",
)


@pytest.fixture(scope="module")
def found(
    watcher_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Return how the plans of ``both_engines.py`` ended, by case and engine."""
    folder = tmp_path_factory.mktemp("engines")
    ended = subprocess.run(
        [watcher_environment.python, PROGRAMS / "both_engines.py", folder],
        env={
            **os.environ,
            "PYTHONPATH": str(PROGRAMS / "traced_type"),
            "PYTHONWARNINGS": "ignore",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    ran: dict[str, Any] = json.loads(ended.stdout)
    return ran


def facts(ended: dict[str, Any]) -> dict[str, Any]:
    """Return what is compared of a plan that has ended; notifications are counted."""
    return {
        "plan": ended["state"],
        "plan message": ended["status_message"],
        "states": [action["state"] for action in ended["actions"]],
        "messages": [action["status_message"] for action in ended["actions"]],
        "sent": Counter(kind for kind in ended["sent"] if kind.startswith("action.")),
        "sent of the plan": Counter(k for k in ended["sent"] if k.startswith("action_plan.")),
        "told": ended["told"],
        "runs": ended["runs"],
    }


def test_all_cases_ran(found: dict[str, Any]) -> None:
    assert tuple(found) == CASES


@pytest.mark.parametrize("case", CASES)
def test_both_engines_do_the_same_except_for_what_is_documented(
    found: dict[str, Any], case: str
) -> None:
    stock, ours = (facts(found[case][engine]) for engine in ("taskflow", "actionplan"))
    differ = {name for name in stock if stock[name] != ours[name]}
    with DIFFERENCES.open(newline="") as file:
        documented = {row["differs"] for row in csv.DictReader(file) if row["case"] == case}
    # How many work on one host at once with Watcher's engine depends on chance.
    assert differ == documented - {"together"}


def actions(found: dict[str, Any], case: str) -> list[tuple[str, str | None]]:
    """Return state and message of the actions of a case with our engine."""
    ended = found[case]["actionplan"]
    return [(action["state"], action["status_message"]) for action in ended["actions"]]


def test_shelve_behind_a_failed_move_is_not_told_to_nova(found: dict[str, Any]) -> None:
    case = found["behind_a_failure"]
    assert (case["taskflow"]["told"], case["actionplan"]["told"]) == (["shelve"], [])
    assert actions(found, "behind_a_failure") == [
        ("FAILED", "Action failed in pre_condition: Destination node nowhere not found"),
        ("CANCELLED", "not run: needs action-0, which ended FAILED"),
        ("SUCCEEDED", None),
    ]
    message = case["actionplan"]["status_message"]
    assert message.startswith("1 succeeded, 1 failed, 1 not run")


def test_phases_have_the_messages_of_watcher(found: dict[str, Any]) -> None:
    assert actions(found, "phases") == [
        ("SKIPPED", "Action was skipped automatically: Skipped in pre_condition"),
        ("FAILED", "Action failed in pre_condition: Failed in pre_condition"),
        ("FAILED", "Action failed in execute: The action action-2 execution failed."),
        ("FAILED", "Action failed in post_condition: Failed in post_condition"),
    ]


def test_the_notifications_of_an_action_come_in_watchers_order(found: dict[str, Any]) -> None:
    sent = found["skipped_by_a_user"]
    assert sent["actionplan"]["sent"] == sent["taskflow"]["sent"]


def test_a_cancel_waits_for_what_runs(found: dict[str, Any]) -> None:
    assert actions(found, "cancelled") == [
        ("SUCCEEDED", None),
        ("CANCELLED", None),
        ("CANCELLED", None),
    ]
    assert found["cancelled"]["actionplan"]["state"] == "CANCELLED"


def test_a_plan_goes_on_whose_living_applier_watcher_takes_for_dead(found: dict[str, Any]) -> None:
    ended = found["taken_for_dead"]["actionplan"]
    assert (ended["state"], ended["status_message"]) == ("SUCCEEDED", None)
    assert actions(found, "taken_for_dead") == [("SUCCEEDED", None)] * 3
    assert ended["runs"] == 3


def test_limits_by_host_are_kept(found: dict[str, Any]) -> None:
    assert found["limits"]["actionplan"]["together"] == {"h0": 1, "h1": 1}


def test_a_long_message_is_cut(found: dict[str, Any]) -> None:
    [(state, message)] = actions(found, "long_message")
    assert (state, len(message or "")) == ("FAILED", 255)
    assert message
    assert message.endswith("x...")


@pytest.mark.parametrize(
    ("case", "fact"),
    [
        ("loop", "action-0 -> action-1 -> action-0"),
        ("unknown_parents", "11111111-1111-1111-1111-111111111111"),
    ],
)
def test_a_plan_that_cannot_be_run_says_so_in_one_sentence(
    found: dict[str, Any], case: str, fact: str
) -> None:
    ended = found[case]["actionplan"]
    sentence = ended["status_message"]
    assert (ended["state"], fact in sentence) == ("FAILED", True)
    assert set(actions(found, case)) == {("CANCELLED", f"not run: {sentence}")}


def test_a_plan_that_is_handed_over_twice_runs_once(found: dict[str, Any]) -> None:
    assert found["again"]["actionplan"]["runs"] == 2
    twice = found["handed_twice"]["actionplan"]
    assert (twice["runs"], twice["together"], twice["state"]) == (3, {"null": 1}, "SUCCEEDED")
