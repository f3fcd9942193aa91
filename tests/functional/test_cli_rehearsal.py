# SPDX-License-Identifier: Apache-2.0
"""A plan is rehearsed with faults; the advice that follows is rehearsed, and it helped."""

from __future__ import annotations

import json

import pytest
from command_line import EXAMPLE, ROOT, CommandLine, check_golden

TEN_HOSTS = str(ROOT / "doc" / "how-to" / "ten-hosts.yaml")
ONE_IN_TEN = ("--set", "on_failure=pause", "--inject", "fail:node:*=10%")


def rehearsed(actionplan: CommandLine, *words: str) -> dict:
    """Rehearse the ten hosts, of which one in ten fails."""
    return json.loads(actionplan.good("simulate", TEN_HOSTS, *ONE_IN_TEN, *words, "-f", "json"))


def test_one_failing_host_in_ten_advises_a_lower_limit_and_that_helps(
    actionplan: CommandLine,
) -> None:
    shown = actionplan.good("simulate", TEN_HOSTS, *ONE_IN_TEN, "--set", "max_workers=8")
    check_golden("rehearsal", shown)
    planned = rehearsed(actionplan, "--set", "max_workers=8")
    (advice,) = [tried for tried in planned["lower_limits"] if tried["advised"]]
    assert (advice["limit"], advice["planned"]) == ("max_workers", 8)
    assert f"lower max_workers from 8 to {advice['tried']}" in shown
    changed = rehearsed(actionplan, "--set", f"max_workers={advice['tried']}")
    assert changed["went_wrong"]["mean"] < 0.7 * planned["went_wrong"]["mean"]
    assert changed["went_wrong"]["worst"] < planned["went_wrong"]["worst"]
    assert changed["states"]["SUCCEEDED"] == planned["states"]["SUCCEEDED"]
    assert planned["stopped_by"]["on_failure=pause"] == planned["states"]["PAUSED"]
    assert actionplan.plans() == []


def test_a_failure_budget_stops_rehearsed_runs(actionplan: CommandLine) -> None:
    words = ("simulate", TEN_HOSTS, "--inject", "fail:node:host-1")
    free = json.loads(actionplan.good(*words, "--times", "3", "-f", "json"))
    assert (free["states"], free["stopped_by"]) == ({"FAILED": 3}, {})
    bound = (*words, "--set", "failure_budget=1", "--times", "3")
    found = json.loads(actionplan.good(*bound, "-f", "json"))
    assert (found["states"], found["stopped_by"]) == ({"PAUSED": 3}, {"failure_budget": 3})
    assert "Guards: failure_budget stops the run 3 of 3 times." in actionplan.good(*bound)
    actionplan.configure(watcher_applier={"failure_budget": "nop=1 in 1s"})
    short = json.loads(actionplan.good(*words, "--times", "3", "-f", "json"))
    assert short["stopped_by"] == {"failure_budget": 3}
    actionplan.configure(watcher_applier={"failure_budget": "4"})
    wide = json.loads(actionplan.good(*words, "--times", "3", "-f", "json"))
    assert (wide["states"], wide["stopped_by"]) == ({"FAILED": 3}, {})


def test_what_is_not_rehearsed_is_said(actionplan: CommandLine) -> None:
    words = ("simulate", TEN_HOSTS, "--inject", "fail:node:host-1", "--times", "3")
    assert "not rehearsed" not in actionplan.good(*words)
    actionplan.configure(watcher_applier={"windows": "sat 22:00-04:00 UTC", "health_probe": "true"})
    shown = " ".join(actionplan.good(*words).split())
    assert "Windows are not rehearsed: no run waits for one, and --split-by-window says" in shown
    assert "The health probe is not rehearsed: the site is always well." in shown
    found = json.loads(actionplan.good(*words, "-f", "json"))
    assert found["not_rehearsed"] == ["windows", "health_probe"]
    compared = actionplan.good(*words, "--set", "max_workers=1..2")
    assert "The health probe is not rehearsed" in compared


def test_runs_that_do_not_end_advise_a_time_out_and_no_limit(actionplan: CommandLine) -> None:
    words = ("simulate", TEN_HOSTS, "--inject", "hang:agent-1=50%,fail:nop=5%", "--times", "20")
    out = actionplan.good(*words)
    assert "Advice: set a time-out (timeout_s) of nop: 9 of 20 runs do not end." in out
    assert "lower" not in out
    actionplan.configure(watcher_actions__nop={"timeout_s": "120"})
    assert "do not end" not in actionplan.good(*words)


def test_settings_are_compared_in_a_row_each(actionplan: CommandLine) -> None:
    words = ("simulate", TEN_HOSTS, *ONE_IN_TEN, "--set", "max_workers=1,2,8", "--times", "40")
    check_golden("rehearsal_ranges", actionplan.good(*words))
    found = json.loads(actionplan.good(*words, "-f", "json"))["combinations"]
    assert [row["set"] for row in found] == [{"max_workers": n} for n in ("1", "2", "8")]
    assert [row["runs"] for row in found] == [40, 40, 40]


def test_the_same_seed_meets_the_same_faults(actionplan: CommandLine) -> None:
    one, same, other = (
        rehearsed(actionplan, "--times", "30", "--seed", seed) for seed in ("7", "7", "8")
    )
    for found in (one, same, other):
        del found["uuid"], found["seed"]
        for action in found["actions"]:
            del action["uuid"]
    assert one == same
    assert one != other


def test_a_stored_plan_is_rehearsed_with_faults_of_its_actions(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    words = ("simulate", "last", "--inject", "hang:move-db-1,slow:node:compute-1=3x")
    out = actionplan.good(*words, "--inject", "fail:migrate=20%", "--times", "20")
    assert "does not end     20  100 %" in out
    assert "no end for half of them" in out


def test_durations_alone_may_be_rehearsed(actionplan: CommandLine) -> None:
    out = actionplan.good("simulate", str(EXAMPLE), "--times", "5")
    assert "with no faults" in out
    assert "SUCCEEDED      5  100 %" in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--inject", "fali:migrate"), "'fali' is no fault"),
        (("--inject", "fail:migrat"), "the plan has no 'migrat'; did you mean"),
        (("--inject", "fail:migrate", "--times", "0"), "'0' is not a whole number of 1 or more"),
        (("--inject", "fail:migrate", "--times", "1000000"), "is more than 100000"),
        (("--inject", "fail:migrate="), "'' is not a percentage above 0 and up to 100"),
        (("--inject", ""), "Refused: --inject: '' is no fault"),
        (("--seed", "x"), "'x' is not a whole number of 1 or more"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(
    actionplan: CommandLine, words: tuple[str, ...], why: str
) -> None:
    ended = actionplan("simulate", str(EXAMPLE), *words)
    assert ended.code in (1, 2)
    assert why in ended.err


def test_an_action_says_what_would_not_run_without_it(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    shown = actionplan.good("action", "show", "last", "close-compute-1")
    assert "if it fails 4 actions would not run: move-web-1," in shown
    value = json.loads(actionplan.good("action", "show", "last", "close-compute-1", "-f", "json"))
    assert value["not_run_if_it_fails"][0] == "move-web-1"
    assert len(value["not_run_if_it_fails"]) == 4
