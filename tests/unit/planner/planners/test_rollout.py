# SPDX-License-Identifier: Apache-2.0
"""Rollouts: what tests/cases/rollout cannot say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner import make_plan
from planner.errors import InvalidInput, InvalidPlan
from planner.making.saved import read_plan
from planner.plan import deadlocks
from planner.plan.guarantees import guarantees, holders, width
from planner.plan.model import Action, ActionPlan
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState
from planner.planners.rollout import RolloutPlanner
from planner.testing import check_planner, plan

DOCUMENT: dict[str, Any] = {
    "kind": "rollout",
    "name": "patch",
    "nodes": ["a", "b", "c", "d"],
    "serial": [1, 2],
    "steps": [{"sleep": 1}, {"nop": "{node}"}],
}


def in_states(made: ActionPlan, states: dict[str, str]) -> ActionPlan:
    """Return a plan some actions of which have ended, after one attempt each."""
    return replace(
        made,
        actions=tuple(
            replace(a, state=ActionState(states[a.label]), attempts=1) if a.label in states else a
            for a in made.actions
        ),
    )


def test_racks_come_in_turn() -> None:
    nodes = [{"name": n, "rack": n[0]} for n in ("a1", "a2", "a3", "b1", "b2")]
    made = plan(RolloutPlanner, {**DOCUMENT, "nodes": nodes, "order": "spread"})
    began = [a.places[0].member for a in made.actions if not a.needs]
    assert began == ["a1", "b1", "a2", "b2", "a3"]


def test_nodes_are_read_from_a_file_beside_the_document(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("kind: deployment\nnodes:\n- {uid: 1, roles: web}\n- {}\n")
    (tmp_path / "list.yaml").write_text("[a, b]")
    rollout = tmp_path / "rollout.yaml"

    def made(nodes: str) -> ActionPlan:
        rollout.write_text(f"{{kind: rollout, name: p, nodes: {nodes}, steps: [nop: x]}}")
        return make_plan(rollout)

    assert [a.name for a in made("{from: list.yaml}").actions] == ["a/nop", "b/nop"]
    for nodes, told in (
        ("{from: site.yaml, role: web}", f"{tmp_path}/site.yaml:4: "),
        ("{from: none.yaml}", "none.yaml"),
        ("{from: list.yaml, document: []}", f"{rollout}:1: nodes.from"),
    ):
        with pytest.raises(InvalidInput) as refused:
            made(nodes)
        assert told in str(refused.value)


def test_the_rules_for_every_planner_hold() -> None:
    check_planner(RolloutPlanner, [DOCUMENT])


def test_a_saved_rollout_is_read_and_an_edited_place_is_refused() -> None:
    value = plan(RolloutPlanner, DOCUMENT).to_dict()
    assert read_plan(value).places["serial:patch"].widens == ((1, 2),)
    value["actions"][0]["places"] = [["serial:patch", "b"]]
    with pytest.raises(InvalidInput, match="digest"):
        read_plan(value)


def test_who_holds_a_place_follows_from_the_states() -> None:
    made = plan(RolloutPlanner, DOCUMENT)
    (promise,) = guarantees(made)
    assert re.findall(r"\d+|\(.*\)", promise) == ["1", "2", "4", "(patch)"]
    assert (holders(made, "serial:patch"), width(made, "serial:patch")) == ([], 1)
    more_than_all = plan(RolloutPlanner, {**DOCUMENT, "serial": 9})
    assert "4 of 4 nodes" in guarantees(more_than_all)[0]
    states = {"a/sleep": "SUCCEEDED", "a/nop": "SUCCEEDED", "b/sleep": "SUCCEEDED"}
    under_way = in_states(made, {**states, "c/sleep": "FAILED"})
    assert holders(under_way, "serial:patch") == ["b", "c"]
    assert width(under_way, "serial:patch") == 2


def test_what_is_promised_of_a_rack_is_said() -> None:
    nodes = [{"name": n, "rack": n[0]} for n in ("a1", "a2", "b1")]
    made = plan(RolloutPlanner, {**DOCUMENT, "nodes": nodes, "stop_after": {"rack": "50%"}})
    assert [re.findall(r"\d+|\(.*\)", promise) for promise in guarantees(made)[1:]] == [
        ["1", "2", "(patch:rack=a)"],
        ["1", "1", "(patch:rack=b)"],
    ]


def test_members_that_wait_for_each_other_in_a_circle_are_refused_with_names() -> None:
    a, b = HeldPlace("serial:p", "a"), HeldPlace("serial:p", "b")
    first = Action(uuid="1", name="a/1", action_type="nop", places=(a,))
    other = Action(uuid="2", name="b/1", action_type="nop", places=(b,))
    last = Action(uuid="3", name="a/2", action_type="nop", places=(a,), parents=("1", "2"))
    rules, limits = {"serial:p": PlaceRule()}, {"serial:p": 1}
    made = ActionPlan(uuid="p", planner="x", places=rules, limits=limits, actions=(first, other))
    deadlocks.require_none(made)
    with pytest.raises(InvalidPlan, match=r"a holds serial:p .* a/1 .* a/2"):
        deadlocks.require_none(replace(made, actions=(first, other, last)))
    with pytest.raises(InvalidPlan, match="a/1 is in two members of serial:p"):
        deadlocks.require_none(replace(made, actions=(replace(first, places=(a, b)),)))
    with pytest.raises(InvalidPlan, match="serial:p has no rule or no limit"):
        deadlocks.require_none(replace(made, places={}))


def test_a_node_of_another_document_has_a_name_in_words(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(
        "- a\n- {uid: null}\n- true\n- {uid: {a: b}}\n- {name: 'x/y'}\n- [a]\n- {role: b}\n- 7\n",
        encoding="utf-8",
    )
    document = {"kind": "rollout", "name": "r", "steps": [{"shell": "true"}]}
    text = yaml.safe_dump({**document, "nodes": {"from": "nodes.yaml"}})
    (tmp_path / "rollout.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        make_plan(tmp_path / "rollout.yaml")
    told = "is no name of a node: its 'uid', else its 'name', is a text without blanks and '/'"
    assert [(m.place, told in m.text) for m in refused.value.mistakes] == [
        (f"{tmp_path}/nodes.yaml:{line}", True) for line in range(2, 8)
    ]
