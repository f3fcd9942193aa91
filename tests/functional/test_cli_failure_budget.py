# SPDX-License-Identifier: Apache-2.0
"""A plan of which too much fails, or whose site is not well, is PAUSED with the reason."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime

import pytest
from command_line import CommandLine

from applier.contracts import Claimant
from applier.run.resume import take_over
from applier.storage.sql import SqlStore
from applier.testing.store_checks.running_plans import ends, starts
from planner.states import ActionState, Outcome


def failing(actionplan: CommandLine, **fields: object) -> str:
    """Write a document of four actions that fail, one after the other."""
    command = {"action_type": "shell", "input_parameters": {"command": "exit 1"}}
    return actionplan.document("plan.yaml", *({**command, "name": n} for n in "abcd"), **fields)


def test_too_many_failures_pause_the_plan(actionplan: CommandLine) -> None:
    file = failing(actionplan, guards={"failure_budget": ["shell=25% in 1h"]})
    ended = actionplan("apply", file, "--yes")
    assert ended.code == 5
    assert "plan PAUSED: paused because 2 shell actions failed, the last one " in ended.out
    assert "the failure budget is shell=25% in 1h" in ended.out
    plan = actionplan.plan()
    assert sorted(a.state for a in plan.actions) == ["FAILED", "FAILED", "PENDING", "PENDING"]


def test_a_site_that_is_not_well_pauses_the_plan(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"health_probe": "sh -c 'echo no quorum; exit 2'"})
    file = actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    ended = actionplan("apply", file, "--yes")
    assert ended.code == 5
    assert "paused by the health probe: sh -c 'echo no quorum; exit 2' ended with 2: " in ended.out
    actionplan.configure(watcher_applier={"health_probe": "true"})
    assert "SUCCEEDED" in actionplan.good("apply", "last", "--yes")


@pytest.mark.parametrize(
    ("settings", "who", "why"),
    [
        ({"failure_budget": "0"}, "the failure budget", "1 action failed, the last one b, and "),
        ({"on_failure": "pause"}, "on_failure = pause", "b ended FAILED"),
        ({"health_probe": "test ! -e b"}, "the health probe", "test ! -e b ended with 1"),
    ],
)
def test_history_timeline_and_report_say_what_paused_a_plan(
    actionplan: CommandLine, settings: dict[str, str], who: str, why: str
) -> None:
    actionplan.configure(watcher_applier=settings)
    commands = {"b": "touch b; exit 1", "c": "true"}
    shell = {
        name: {"action_type": "shell", "input_parameters": {"command": command}}
        for name, command in commands.items()
    }
    file = actionplan.document("plan.yaml", *({**one, "name": n} for n, one in shell.items()))
    assert actionplan("apply", file, "--yes").code == 5
    *_, last = json.loads(actionplan.good("history", "last", "-f", "json"))
    assert (last["verb"], last["who"]) == ("pause", who)
    assert last["why"].startswith(why)
    assert ", and stands still." in actionplan.good("report", "last")
    assert ", and stands still</text>" in actionplan.good("graph", "last", "-f", "timeline")
    actionplan.configure()
    actionplan("apply", "last", "--yes")
    actionplan.good("report", "last", "-o", "report.html")
    told = f"the end of the pause by {who}: {why}"
    for page in (
        actionplan.good("graph", "last", "-f", "timeline"),
        (actionplan.folder / "report.html").read_text(),
    ):
        assert told in " ".join(page.split())


def test_a_wrong_budget_is_refused_at_start(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"failure_budget": "10%"})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "[watcher_applier] failure_budget: '10%' is not N, TYPE=N or TYPE=N%" in ended.err


def test_a_budget_that_was_exceeded_before_a_crash_is_exceeded_after_it(
    actionplan: CommandLine,
) -> None:
    """The applier is killed after the failure is on record, and before the plan is PAUSED."""
    actionplan.good("create", failing(actionplan, guards={"failure_budget": ["0"]}))
    plan = actionplan.plan()
    first, gone = plan.actions[0], Claimant(host="elsewhere", pid=1, user="eve")
    actionplan.good("start", plan.uuid)
    with closing(SqlStore(f"sqlite:///{actionplan.record}")) as store:
        claim = store.claim_plan(plan.uuid, gone, now=datetime.now(UTC))
        for report in (starts(first), ends(first, ActionState.FAILED, outcome=Outcome.FAILED)):
            store.commit(plan.uuid, claim, [report], now=datetime.now(UTC))
        claimant = store.claimant(plan.uuid)
        assert claimant is not None
        take_over(store, plan.uuid, claimant, now=datetime.now(UTC), who="another applier")
    ended = actionplan("apply", "last", "--yes")
    assert ended.code == 5
    told = "paused by the failure budget: 1 action failed, the last one a, and the failure budget"
    assert told in ended.out
    assert [a.attempts for a in actionplan.plan().actions] == [1, 0, 0, 0]
    # Whoever starts it now has looked, and it goes on until the next failure.
    assert actionplan("apply", "last", "--yes").code == 5
    assert sorted(a.attempts for a in actionplan.plan().actions) == [0, 0, 1, 1]
