# SPDX-License-Identifier: Apache-2.0
"""The order graph of what is left, with few links; who starts when many wait."""

from __future__ import annotations

import networkx as nx
import pytest
from random_plans import random_plan

from applier.scheduling.gates import Gates
from applier.scheduling.waiting import completed, links
from planner.plan.model import Action


def reachable(after: dict[str, list[str]]) -> set[tuple[str, str]]:
    graph = nx.DiGraph()
    graph.add_nodes_from(after)
    graph.add_edges_from((u, v) for u in after for v in after[u])
    closed = nx.transitive_closure_dag(graph)
    return {(u, v) for u, v in closed.edges if not {u[:5], v[:5]} & {"group"}}


@pytest.mark.parametrize("seed", range(40))
def test_groups_change_no_order(seed):
    plan = random_plan(seed)
    plain = {a.uuid: [b.uuid for b in plan.actions if a.uuid in b.before()] for a in plan.actions}
    assert reachable(links(plan.actions)) == reachable(plain)


@pytest.mark.parametrize("seed", range(40))
def test_what_has_passed_can_be_left_out(seed):
    plan = random_plan(seed)
    ended = {a.uuid for a in plan.actions[: len(plan.actions) // 2]}
    gone = completed(plan.actions, ended)
    assert gone == ended, "the beginning of a plan has nothing left before it"
    rest = {a.uuid for a in plan.actions} - gone
    whole = reachable(links(plan.actions))
    assert reachable(links(plan.actions, gone)) == {p for p in whole if set(p) <= rest}


def layers(number: int, width: int, *, shared: bool = True) -> list[Action]:
    actions: list[Action] = []
    before: tuple[str, ...] = ()
    for layer in range(number):
        uuids = tuple(f"{layer}-{i}" for i in range(width))
        for uuid in uuids:
            parents = before if shared else (*before,)
            actions.append(Action(uuid=uuid, action_type="nop", parents=parents, needs=parents))
        before = uuids
    return actions


def count(after: dict[str, list[str]]) -> int:
    return sum(map(len, after.values()))


def test_the_number_of_links_is_linear_in_the_number_of_actions():
    width = 100
    dense = layers(5, width)
    assert sum(len(action.parents) for action in dense) == 4 * width**2
    assert count(links(dense)) == 4 * 2 * width


def test_links_that_are_equal_but_not_the_same_object_share_a_group():
    assert count(links(layers(3, 10, shared=False))) == 2 * 2 * 10


def test_needs_that_several_share_go_through_a_group_of_their_own():
    first = [Action(uuid=f"a{i}", action_type="nop") for i in range(20)]
    needs = tuple(a.uuid for a in first[:10])
    parents = tuple(a.uuid for a in first[10:])
    second = [
        Action(uuid=f"b{i}", action_type="nop", parents=parents, needs=needs) for i in range(10)
    ]
    after = links(first + second)
    assert sorted(name for name in after if name.startswith("group")) == ["group 0", "group 1"]
    assert count(after) == 4 * 10


def test_a_need_inside_a_group_of_parents_keeps_its_link():
    first = [Action(uuid=f"a{i}", action_type="nop") for i in range(5)]
    parents = tuple(a.uuid for a in first)
    second = [
        Action(uuid=f"b{i}", action_type="nop", parents=parents, needs=(f"a{i}",)) for i in range(5)
    ]
    assert count(links(first + second)) == 2 * 5 + 5


def test_few_links_get_no_group():
    actions = [Action(uuid="a", action_type="nop"), Action(uuid="b", action_type="nop")]
    actions += [Action(uuid=u, action_type="nop", parents=("a", "b")) for u in "cd"]
    assert set(links(actions)) == set("abcd")


def test_groups_of_alternatives_are_in_no_order_that_must_be_waited_for():
    actions = [Action(uuid=u, action_type="nop") for u in "ab"]
    actions.append(Action(uuid="c", action_type="nop", parents=("a",), needs_any=(("a", "b"),)))
    assert links(actions) == {"a": ["c"], "b": [], "c": []}


# Who starts when many wait: what tests/property/test_gates.py tries at random, one by one.


def taken(gates: Gates) -> list[str]:
    """Take all that may start."""
    return list(iter(gates.take, None))


@pytest.mark.parametrize(("patience", "starts"), [(1, []), (2, []), (3, ["small"])])
def test_who_was_examined_in_vain_often_enough_collects_its_tokens(patience, starts):
    """``big`` is examined once when both tokens are held, and again when x comes free."""
    gates = Gates({"x": 1, "y": 1}, 9, patience=patience)
    gates.submit("holds x", ["x"])
    gates.submit("holds y", ["y"])
    assert taken(gates) == ["holds x", "holds y"]
    gates.submit("big", ["x", "y"], rank=0)
    assert taken(gates) == []
    gates.submit("small", ["x"], rank=1)
    gates.release("holds x")
    assert taken(gates) == starts
    gates.release("holds y")
    for key in starts:
        assert taken(gates) == []
        gates.release(key)
    assert taken(gates) == ["big"]


def test_what_is_lost_keeps_a_token_from_those_that_wait():
    gates = Gates({"x": 2, "y": 1}, 9)
    for key in ("a", "b"):
        gates.submit(key, ["x", "y"] if key == "a" else ["x"])
    assert taken(gates) == ["a", "b"]
    gates.submit("wants x", ["x"])
    gates.submit("wants y", ["free", "y"])
    assert gates.unobtainable("wants x") is None
    gates.give_up("a")
    assert gates.unobtainable("wants x") is None, "b will give one back"
    assert gates.unobtainable("wants y") == ("y", "a")
    gates.give_up("b")
    assert gates.unobtainable("wants x") == ("x", "a")
    gates.set_limit("x", 3)
    assert gates.unobtainable("wants x") is None


@pytest.mark.parametrize("number", [0, -1])
def test_a_limit_below_one_is_refused(number):
    with pytest.raises(ValueError, match=f"limit x is {number}: a limit is at least 1"):
        Gates({"x": number}, 1)
    with pytest.raises(ValueError, match="max_workers"):
        Gates({}, number)
    gates = Gates({}, 1)
    with pytest.raises(ValueError, match="limit x"):
        gates.set_limit("x", number)
    with pytest.raises(ValueError, match="max_workers"):
        gates.set_workers(number)
