# SPDX-License-Identifier: Apache-2.0
"""Plans that need approvals: refused with exit code 4 until somebody approves them as they are."""

from __future__ import annotations

import json

import pytest
from command_line import EXAMPLE, CommandLine

NOP = {"name": "a", "action_type": "nop"}


@pytest.fixture
def site(actionplan: CommandLine) -> CommandLine:
    """Return a command line whose configuration demands an approval."""
    actionplan.configure(actionplan={"simulator_speed": 1000}, watcher_applier={"approvals": 1})
    return actionplan


def made(site: CommandLine, *words: str, **fields: object) -> str:
    """Store a plan of one no-op; return its uuid."""
    file = site.document("plan.yaml", NOP, **fields)
    return str(json.loads(site.good("create", file, "-f", "json", *words))["uuid"])


def test_nothing_of_a_plan_runs_before_its_approval(site: CommandLine) -> None:
    shown = site.good("create", site.document("plan.yaml", NOP))
    uuid = json.loads(site.good("list", "-f", "json"))[0]["uuid"]
    missing = (
        f"plan {uuid[:8]} needs 1 approval, and it has none; "
        f"to approve it: actionplan approve {uuid[:8]} --reason TEXT\n"
    )
    assert shown.endswith(f"Not to be run yet: {missing}")
    for words in (("apply", uuid, "--yes"), ("start", uuid)):
        ended = site.inside(*words)
        assert (ended.code, ended.err) == (4, f"Refused: {missing}")
    told = site.good("approve", uuid, "--reason", "looked at")
    assert told == f"Plan {uuid[:8]} is approved by operator.\n"
    shown = site.good("show", uuid)
    assert "Approvals: 1 of 1 approval\nApproved by operator at " in shown
    assert " UTC: looked at\n" in shown
    assert "SUCCEEDED" in site.good("apply", uuid, "--yes")
    verbs = [e["verb"] for e in json.loads(site.good("history", uuid, "-f", "json"))]
    assert verbs == ["create", "approve", "start", "apply"]


def test_apply_of_a_document_stores_what_has_to_be_approved(site: CommandLine) -> None:
    ended = site.inside("apply", str(EXAMPLE), "--yes")
    assert ended.code == 4
    [plan] = json.loads(site.good("list", "-f", "json"))
    assert plan["state"] == "RECOMMENDED"
    site.good("approve", plan["uuid"], "--reason", "fine")
    assert "SUCCEEDED" in site.good("apply", plan["uuid"], "--yes")


def test_an_approval_is_void_once_an_action_is_skipped(site: CommandLine) -> None:
    uuid = made(site)
    site.good("approve", uuid, "--reason", "fine")
    site.good("action", "skip", uuid, "a", "--reason", "by hand")
    ended = site.inside("apply", uuid, "--yes")
    assert ended.code == 4
    assert "what 1 approval was about has changed since" in ended.err
    assert "(does not count)" in site.good("show", uuid)
    told = site.good("approve", uuid, "--reason", "seen")
    assert told == f"Plan {uuid[:8]} is approved by operator, without a.\n"


def test_who_made_a_plan_does_not_approve_it(actionplan: CommandLine) -> None:
    uuid = made(actionplan, guards={"approvals": 1, "approval_by_another": True})
    ended = actionplan.inside("approve", uuid, "--reason", "mine")
    assert ended.code == 4
    assert ended.err == (
        f"Refused: operator made plan {uuid[:8]}, which needs 1 approval by somebody else than its "
        "creator: somebody else has to approve it\n"
    )
    assert actionplan("approve", uuid, "--reason", "mine", LOGNAME="bo", USER="bo").code == 4
    actionplan.environment["TEST_USER"] = "bo"
    assert "approved by bo" in actionplan.good("approve", uuid, "--reason", "yours")
    assert "SUCCEEDED" in actionplan.good("apply", uuid, "--yes")


def test_guards_are_set_for_a_new_plan_and_not_for_one_that_is_made(
    actionplan: CommandLine,
) -> None:
    uuid = made(actionplan, "--set", "approvals=2", "--set", "approval_by_another=true")
    plan = json.loads(actionplan.good("show", uuid, "-f", "json"))
    assert plan["guards"] == {"approvals": 2, "approval_by_another": True}
    ended = actionplan.inside("apply", uuid, "--yes", "--set", "approvals=0")
    assert ended.code == 1
    assert "--set approvals=0: has no effect" in ended.err
    ended = actionplan.inside("create", "plan.yaml", "--set", "approvals=many")
    assert ended.err == (
        "Refused: --set approvals=many: 'many' is not a whole number of 0 to 100\n"
    )


def test_what_is_approved_is_not_run_with_another_policy(site: CommandLine) -> None:
    uuid = made(site)
    site.good("approve", uuid, "--reason", "fine")
    ended = site.inside("apply", uuid, "--yes", "--set", "on_failure=continue")
    assert ended.code == 4
    assert "is approved with on_failure=skip_descendants" in ended.err


def test_a_saved_plan_cannot_lose_its_guards(actionplan: CommandLine) -> None:
    file = actionplan.document("plan.yaml", NOP, guards={"approvals": 1})
    actionplan.good("create", file, "--dry-run", "--out", "plan.json")
    saved = actionplan.folder / "plan.json"
    plan = json.loads(saved.read_text())
    del plan["guards"]
    saved.write_text(json.dumps(plan))
    ended = actionplan.inside("apply", "plan.json", "--yes")
    assert ended.code == 4
    assert "does not fit the plan: it was changed after it was made" in ended.err


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("approvals_for", "events=1", "events=1 is not planner:NAME=N"),
        ("approvals", "-1", "Should be greater than or equal to 0"),
        ("approvals", "101", "Should be less than or equal to 100"),
        ("approval_max_age_s", "0", "Should be greater than or equal to 1"),
    ],
)
def test_a_wrong_option_is_refused_at_start(
    actionplan: CommandLine, option: str, value: str, told: str
) -> None:
    actionplan.configure(watcher_applier={option: value})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert f"[watcher_applier] {option}: " in ended.err
    assert told in ended.err


def test_large_plans_need_more_approvals(actionplan: CommandLine) -> None:
    rules = {"approvals_for": "size:2=1, label:prod=2"}
    actionplan.configure(actionplan={"simulator_speed": 1000}, watcher_applier=rules)
    actionplan.good("apply", actionplan.document("one.yaml", NOP), "--yes")
    two = actionplan.document("two.yaml", NOP, {**NOP, "name": "b"})
    assert "needs 1 approval" in actionplan.inside("apply", two, "--yes").err
    labelled = actionplan.document("labelled.yaml", NOP, guards={"labels": ["prod"]})
    ended = actionplan.inside("apply", labelled, "--yes")
    assert "needs 2 approvals, and none of them is there" in ended.err


def test_the_plan_that_undoes_another_has_its_guards(actionplan: CommandLine) -> None:
    uuid = made(actionplan, guards={"approvals": 1})
    actionplan.good("approve", uuid, "--reason", "fine")
    actionplan.good("apply", uuid, "--yes")
    actionplan.inside("rollback", uuid)
    back = json.loads(actionplan.good("show", "last", "-f", "json"))
    assert back["guards"] == {"approvals": 1}
