"""A rolling update from end to end: the example applied, broken half way, resumed, rolled back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import ROOT, CommandLine

from applier.clouds.simulated import SimulatedCloud
from planner import documents
from planner.states import ActionState, PlanState

EXAMPLE = str(ROOT / "etc" / "examples" / "rolling-update.yaml")
OLD = {f"job-{i}" for i in range(1, 11)}
FIRST = {f"job-{i}" for i in range(1, 6)}


def jobs(actionplan: CommandLine) -> set[str]:
    """Give the names of the job servers that there are."""
    instances: Mapping[str, Any] = SimulatedCloud(actionplan.simulator).snapshot()["instances"]
    return {i["name"] for i in instances.values() if i["flavor"] == "m1.nano"}


@pytest.fixture
def broken(actionplan: CommandLine) -> CommandLine:
    """Apply the example in a cloud where one termination of the second batch fails, once."""
    fault = {"operation": "delete", "target": "job-7", "times": 1, "message": "it is locked"}
    SimulatedCloud(actionplan.simulator).inject(fault)
    ended = actionplan.inside("apply", EXAMPLE, "--yes")
    assert ended.code == 5, ended
    return actionplan


def test_the_example_says_what_will_happen_and_it_does(actionplan: CommandLine) -> None:
    said = actionplan.good("create", EXAMPLE, "--dry-run")
    assert "2 batches (2 x +5 -5), create first; never fewer than 10 in service" in said
    assert "never more than 15 members; 1 pause of 30 s, because ImageId of JobServer" in said
    assert "In all: at most 15 instances at once; it ends 38 s after its start" in said
    ended = actionplan.inside("apply", EXAMPLE, "--yes")
    assert ended.code == 0, ended
    now = jobs(actionplan)
    assert len(now) == 10
    assert not now & OLD
    assert actionplan.plan().on_failure == "pause"


def test_a_failure_holds_it_with_what_is_in_service_kept(broken: CommandLine) -> None:
    plan = broken.plan()
    assert plan.state is PlanState.PAUSED
    states = {a.label.partition("/")[2]: a.state for a in plan.actions}
    assert states["batch-2/terminate-job-7"] is ActionState.FAILED
    assert states["batch-2/terminated"] is ActionState.PENDING
    now = jobs(broken)
    assert "job-7" in now
    assert len(now - OLD) == 10


def test_resume_does_again_only_what_is_left(broken: CommandLine) -> None:
    before = {a.uuid: a.attempts for a in broken.plan().actions}
    done = {a.uuid for a in broken.plan().actions if a.state is ActionState.SUCCEEDED}
    broken.good("resume", "last")
    broken.good("apply", "last", "--yes")
    plan = broken.plan()
    assert plan.state is PlanState.SUCCEEDED
    assert len(done) > 15
    assert all(a.attempts == before[a.uuid] for a in plan.actions if a.uuid in done)
    assert len(jobs(broken)) == 10
    assert not jobs(broken) & OLD


def test_rollback_brings_back_the_members_that_were_changed(broken: CommandLine) -> None:
    gone = OLD - jobs(broken)
    broken.good("rollback", "last")
    ended = broken.inside("apply", "last", "--yes")
    assert ended.code == 0, ended
    assert jobs(broken) == OLD
    (back,) = [p for p in broken.plans() if p.planner == "rollback"]
    assert {a.label for a in back.actions if "terminate" in a.label} == {
        f"revert-JobServerGroup/batch-{1 + (name not in FIRST)}/terminate-{name}" for name in gone
    }
    assert back.warnings == ()
    assert back.on_failure == "pause"


def test_a_gate_that_does_not_hold_stops_the_roll_after_its_batch(actionplan: CommandLine) -> None:
    gate = {"action_type": "shell", "input_parameters": {"argv": ["false"]}}
    text = documents.read(EXAMPLE).text
    (actionplan.folder / "roll.yaml").write_text(f"{text}\ngates: [{gate}]\n", encoding="utf-8")
    assert actionplan.inside("apply", "roll.yaml", "--yes").code == 5
    assert jobs(actionplan) & OLD == OLD - FIRST


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("quota: 12", "quota: there are 15 instances at the peak, and the quota is 12"),
        ("deadline: 20", "deadline: it takes 38 s or more, and has to end within 20 s"),
    ],
)
def test_bounds_are_checked_before_anything_starts(
    actionplan: CommandLine, line: str, sentence: str
) -> None:
    text = documents.read(EXAMPLE).text
    (actionplan.folder / "roll.yaml").write_text(f"{text}\n{line}\n", encoding="utf-8")
    ended = actionplan.inside("apply", "roll.yaml", "--yes")
    assert ended.code == 1
    assert sentence in ended.err
    assert actionplan.plans() == []
