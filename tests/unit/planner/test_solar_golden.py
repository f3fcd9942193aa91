# SPDX-License-Identifier: Apache-2.0
"""What Solar's own code gave, and what its specification tells: node by node, edge by edge.

Solar never cut a cycle: where its graph has one, ours may have fewer edges and runs an action
twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from applier.contracts import Report
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.scheduler import Scheduler
from planner import ActionPlan, make_plan
from planner.errors import InvalidInput
from planner.plan.graph import waves
from planner.plan.states import ActionState, Outcome

FILE = Path(__file__).parents[2] / "cases" / "solar.json"
CASES: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
GRAPHS, SPEC = CASES["graphs"], CASES["spec_cases"]


def by_id(cases: list[dict[str, Any]], **wanted: Any) -> list[Any]:
    found = [c for c in cases if wanted.items() <= c.items()]
    return [pytest.param(case, id=case["id"]) for case in found]


def names(plan: ActionPlan) -> set[str]:
    return {action.label for action in plan.actions}


def edges(plan: ActionPlan) -> set[tuple[str, str]]:
    label = {action.uuid: action.label for action in plan.actions}
    return {(label[uuid], a.label) for a in plan.actions for uuid in a.before()}


def of_solar(case: dict[str, Any]) -> dict[str, Any]:
    """Write Solar's events: what reacts is an event, what only depends an order."""
    told = [
        (
            event["type"],
            f"{event['parent']}.{event['parent_action']}",
            event["state"].replace("success", "changed"),
            f"{event['child']}.{event['child_action']}",
        )
        for event in case["events"]
    ]
    return {
        "kind": "events",
        "connections": [{"from": a, "to": b, "events": False} for a, b in case["connections"]],
        "events": [f"on {a} {state} {b}" for how, a, state, b in told if how == "react_on"],
        "after": [[a, b] for how, a, _, b in told if how == "depends_on"],
        "staged": case["staged"],
    }


@pytest.mark.parametrize("case", by_id(GRAPHS))
def test_a_plan_holds_what_solars_graph_held(case: dict[str, Any]) -> None:
    expected = case["expect"]
    try:
        plan = make_plan(of_solar(case))
    except InvalidInput:
        assert not expected["acyclic"]
        return
    assert {name.partition("#")[0] for name in names(plan)} == set(expected["nodes"])
    if not expected["acyclic"]:
        assert any("#1" in name for name in names(plan))
        return
    assert edges(plan) == {tuple(edge) for edge in expected["edges"]}
    found = [sorted(action.label for action in wave) for wave in waves(plan.actions)]
    assert found == expected["waves"]


@pytest.mark.parametrize("case", by_id(SPEC, kind="cycle"))
def test_a_loop_of_the_specification_is_cut_as_it_is_drawn(case: dict[str, Any]) -> None:
    events = [f"on {a} changed {b}" for a, b in case["edges"]]
    plan = make_plan({"kind": "events", "events": events, "staged": case["entry_order"]})
    numbered = {n: n if "#" in n else f"{n}#0" for n in names(plan)}
    assert set(numbered.values()) == set(case["expect"]["nodes"])
    found = {(numbered[a], numbered[b]) for a, b in edges(plan)}
    assert found == {tuple(edge) for edge in case["expect"]["edges"]}
    found_waves = [sorted(numbered[a.label] for a in wave) for wave in waves(plan.actions)]
    assert found_waves == case["expect"]["waves"]


def ran(plan: ActionPlan, outcomes: dict[str, str]) -> list[str]:
    """Run a plan without a clock; gives the names of what ran, in order."""
    label = {action.uuid: action.label for action in plan.actions}
    links = waiting.links(plan.actions)
    scheduler = Scheduler(plan.actions, links, Concurrency(limits={}, max_workers=9))
    starts: list[str] = []
    turn = scheduler.begin()
    while turn.starts:
        starts += [label[uuid] for uuid in turn.starts]
        turn = scheduler.decide([_ended(u, outcomes.get(label[u], "changed")) for u in turn.starts])
    return starts


def _ended(uuid: str, outcome: str) -> Report:
    state = ActionState.FAILED if outcome in ("failed", "error") else ActionState.SUCCEEDED
    return Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=Outcome(outcome))


@pytest.mark.parametrize("case", by_id(SPEC, kind="runtime"))
def test_outcomes_decide_what_runs(case: dict[str, Any]) -> None:
    events = [{"on": e["on"], "outcomes": [e["state"]], "do": e["do"]} for e in case["events"]]
    after = [[d["after"], d["do"]] for d in case["deps"]]
    plan = make_plan({"kind": "events", "events": events, "after": after, "staged": case["staged"]})
    found = ran(plan, case["outcomes"])
    assert sorted(found) == sorted(case["expect"]["ran"])
    assert not set(found) & set(case["expect"]["not_run"])


@pytest.mark.parametrize("case", by_id(SPEC, kind="order"))
def test_the_nodes_of_the_queue_go_first_then_one_makes_the_cluster(case: dict[str, Any]) -> None:
    plan = make_plan(
        {
            "kind": "events",
            "connections": [{"from": a, "to": b, "events": False} for a, b in case["data"]],
            "events": [f"on {e['on']} {e['state']} {e['do']}" for e in case["events"]],
            "after": [[d["after"], d["do"]] for d in case["deps"]],
            "staged": case["staged"],
        }
    )
    found = [sorted(action.label for action in wave) for wave in waves(plan.actions)]
    assert found == case["expect"]["waves"]
    assert {tuple(pair) for pair in case["expect"]["must_precede"]} <= edges(plan)
    assert ran(plan, {}) == [name for wave in found for name in wave]
    assert ran(plan, dict.fromkeys(case["staged"], "ok")) == case["staged"]
