# SPDX-License-Identifier: Apache-2.0
"""What became of a deployment and its nodes, from the states of its actions."""

from __future__ import annotations

import pytest

from applier.run.node_states import DeploymentReport, Status, Word, has_begun, report
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, PlanState

S, P = ActionState, PlanState


def task(name: str, state: str = "SUCCEEDED", kind: str = "puppet", **links: tuple) -> Action:
    uid = name.partition("/")[0]
    tokens = (f"node:{uid}",) if kind not in ("anchor", "skipped", JOIN) else ()
    return Action(uuid=name, name=name, action_type=kind, tokens=tokens, state=S(state), **links)


def told(state: str, *actions: Action) -> DeploymentReport:
    plan = ActionPlan(uuid="p", planner="deployment", actions=actions, state=P(state))
    return report(plan)


def statuses(found: DeploymentReport) -> dict[str, str]:
    return {node.uid: str(node.status) for node in found.nodes}


def counts(found: DeploymentReport, uid: str) -> dict[str, int]:
    (node,) = [node for node in found.nodes if node.uid == uid]
    return {str(word): number for word, number in node.counts.items() if number}


def test_a_node_is_ready_when_all_its_tasks_ended_well_and_error_otherwise():
    found = told(
        "FAILED",
        task("1/a"),
        task("1/b", "SKIPPED", "skipped"),
        task("2/a", "FAILED"),
        task("2/b"),
        task("3/a", "FAILED_DEPENDENCIES"),
        task("4/a", "UNKNOWN"),
        task("sync/deployed", kind="anchor"),
        task("join/x", kind=JOIN),
    )
    assert statuses(found) == {"1": "ready", "2": "error", "3": "error", "4": "error"}
    assert counts(found, "1") == {"Success": 1, "Skipped": 1}
    assert counts(found, "2") == {"Success": 1, "Error": 1}
    assert counts(found, "3") == {"Failed Dependencies": 1}
    assert found.status is Status.ERROR


def test_all_ready_is_ready():
    found = told("SUCCEEDED", task("1/a"), task("2/a", "SKIPPED"), task("sync/z", kind="anchor"))
    assert (found.status, statuses(found)) == (Status.READY, {"1": "ready", "2": "ready"})


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_deployment_that_was_stopped_is_never_ready(state):
    """Of ten computes three failed, one more than is tolerated: the last tasks never started."""
    failed = [task(f"{n}/a", "FAILED") for n in (1, 2, 3)]
    left = [task(f"{n}/b", "CANCELLED") for n in range(4, 10)]
    found = told(state, *failed, *(task(f"{n}/a") for n in range(4, 11)), *left)
    assert found.status is Status.STOPPED
    assert statuses(found) == {
        **dict.fromkeys("123", "error"),
        **dict.fromkeys("456789", "stopped"),
        "10": "ready",
    }


def test_one_whose_only_trouble_is_an_anchor_that_never_came_is_stopped():
    found = told("CANCELLED", task("1/a"), task("sync/deployed", "CANCELLED", "anchor"))
    assert (found.status, statuses(found)) == (Status.STOPPED, {"1": "ready"})


def test_a_paused_one_is_stopped_and_a_running_one_is_in_progress():
    actions = [task("1/a"), task("2/a", "PENDING"), task("3/a"), task("3/b", "PENDING")]
    found = told("PAUSED", *actions)
    assert (found.status, statuses(found)) == (
        Status.STOPPED,
        {"1": "ready", "2": "stopped", "3": "stopped"},
    )
    found = told("ONGOING", *actions, task("4/a", "ONGOING"), task("5/a", "FAILED"))
    assert (found.status, statuses(found)) == (
        Status.IN_PROGRESS,
        {"1": "ready", "2": "waiting", "3": "in progress", "4": "in progress", "5": "error"},
    )


def test_a_node_of_which_as_much_runs_as_waits_is_in_progress():
    found = told("ONGOING", task("1/a", "ONGOING"), task("1/b", "PENDING"))
    assert statuses(found) == {"1": "in progress"}


def test_a_failed_node_that_still_has_tasks_goes_on():
    actions = [task("1/a", "FAILED"), task("1/b", "PENDING")]
    assert statuses(told("ONGOING", *actions)) == {"1": "in progress"}
    assert statuses(told("PAUSED", *actions)) == {"1": "error"}


@pytest.mark.parametrize(
    ("links", "word"),
    [
        ({}, Word.PENDING),
        ({"parents": ("2/done",)}, Word.PENDING),
        ({"parents": ("2/runs",)}, Word.WAITING),
        ({"needs": ("2/done", "2/waits")}, Word.WAITING),
        ({"needs_any": (("2/runs", "2/done"),)}, Word.PENDING),
        ({"needs_any": (("2/runs", "2/failed"),)}, Word.WAITING),
        ({"needs_any": (("2/failed",),)}, Word.PENDING),
    ],
)
def test_waiting_is_for_others_and_pending_for_a_limit(links, word):
    others = [
        task("2/done"),
        task("2/runs", "ONGOING"),
        task("2/waits", "PENDING"),
        task("2/failed", "FAILED"),
    ]
    found = told("ONGOING", task("1/a", "PENDING", **links), *others)
    assert counts(found, "1") == {str(word): 1}


def test_every_state_has_a_word():
    for state in ActionState:
        found = told("ONGOING", task("1/a", state))
        assert sum(counts(found, "1").values()) == 1


def test_nodes_stand_in_the_order_of_their_numbers():
    names = ["10", "2", "master", "node-9", "node-10", "1"]
    found = told("SUCCEEDED", *(task(f"{name}/a") for name in names))
    assert [n.uid for n in found.nodes] == ["1", "2", "10", "master", "node-9", "node-10"]


def test_a_plan_of_nothing_is_ready_when_it_succeeded():
    assert told("SUCCEEDED") == DeploymentReport(status=Status.READY, nodes=())
    assert told("CANCELLED").status is Status.STOPPED


def test_one_that_was_cancelled_when_all_had_run_is_not_ready():
    assert told("CANCELLED", task("1/a")).status is Status.STOPPED


def test_a_plan_has_begun_once_one_of_its_actions_is_not_pending_any_more():
    def plan(*states: str) -> ActionPlan:
        actions = tuple(task(f"{i}/a", state) for i, state in enumerate(states))
        return ActionPlan(uuid="p", planner="deployment", actions=actions)

    assert not has_begun(plan())
    assert not has_begun(plan("PENDING", "PENDING"))
    assert has_begun(plan("PENDING", "ONGOING"))
    assert has_begun(plan("SUCCEEDED"))


def test_an_anchor_that_was_left_out_belongs_to_no_node_either():
    found = told("SUCCEEDED", task("1/a"), task("sync/deployed", "SKIPPED", "skipped"))
    assert (found.status, statuses(found)) == (Status.READY, {"1": "ready"})
