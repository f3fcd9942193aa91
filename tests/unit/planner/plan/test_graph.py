# SPDX-License-Identifier: Apache-2.0
"""The order of a plan: its graph and the kinds of its edges, what is refused, its waves."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from random_plans import random_plan

from planner import order_graph
from planner.errors import InvalidPlan
from planner.plan import graph
from planner.plan.model import JOIN, Action, Blocker, Trigger
from planner.plan.states import Outcome


def actions(links: dict[str, Any]) -> list[Action]:
    """Make actions of names and what each comes after: parents, or fields by name."""
    return [
        Action(
            uuid=f"uuid-{name}",
            name=name,
            action_type=JOIN if name.startswith("join") else "nop",
            **(
                after
                if isinstance(after, dict)
                else {"parents": tuple(f"uuid-{one}" for one in after)}
            ),
        )
        for name, after in links.items()
    ]


def waves(links: dict[str, Any]) -> list[list[str | None]]:
    return [[action.name for action in wave] for wave in graph.waves(actions(links))]


TRIGGERED = {"triggers": (Trigger("uuid-a", (Outcome.CHANGED,)),)}


def test_a_graph_is_accepted_in_any_order_and_without_actions() -> None:
    both = (Trigger("uuid-a", (Outcome.OK,)), Trigger("uuid-a", (Outcome.CHANGED,)))
    graph.validate(actions({"a": [], "b": ["a"], "c": ["a", "b"], "d": {"triggers": both}}))
    graph.validate(actions({"b": ["a"], "a": []}))
    graph.validate([Action(uuid=u, action_type="nop") for u in "ab"])
    graph.validate([])
    assert graph.waves([]) == []


LOOP = {"a": ["c"], "b": ["a"], "c": ["b"], "d": ["c"]}
EVERY_KIND = {
    "a": {"needs_any": (("uuid-d",),)},
    "b": {"parents": ("uuid-a",)},
    "c": {"needs": ("uuid-b",)},
    "d": {"triggers": (Trigger("uuid-c", (Outcome.OK,)),)},
}


@pytest.mark.parametrize(
    ("links", "path"),
    [
        (LOOP, "a -> b -> c -> a"),
        (
            {n: {"needs": tuple(f"uuid-{x}" for x in of)} for n, of in LOOP.items()},
            "a -> b -> c -> a",
        ),
        (EVERY_KIND, "a -> b -> c -> d -> a"),
        ({"a": ["a"]}, "a -> a"),
        # The shortest one is named.
        ({"a": ["c", "d"], "b": ["a"], "c": ["b"], "d": ["a"]}, "a -> d -> a"),
    ],
)
def test_a_loop_is_refused_with_its_whole_path(links: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidPlan, match=f"a cycle: {path}$"):
        graph.validate(actions(links))


def test_all_loops_are_named() -> None:
    with pytest.raises(InvalidPlan) as refused:
        graph.validate(actions({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"], "e": []}))
    assert refused.value.problems == ("a cycle: a -> b -> a", "a cycle: c -> d -> c")


def test_links_that_lead_nowhere_are_named_with_who_has_them() -> None:
    with pytest.raises(InvalidPlan) as refused:
        graph.validate(actions({"a": ["x"], "b": {"needs_any": (("uuid-a", "uuid-y"),)}}))
    first, second = refused.value.problems
    assert first.startswith("a comes after uuid-x, ")
    assert second.startswith("b comes after uuid-y, ")


def test_what_stands_twice_is_named() -> None:
    twice = [*actions({"a": [], "b": ["a", "a"]}), Action(uuid="uuid-a", action_type="nop")]
    twice += [*actions({"c": []}), Action(uuid="other", action_type="nop", name="c")]
    with pytest.raises(InvalidPlan) as refused:
        graph.validate(twice)
    assert refused.value.problems == (
        "uuid uuid-a occurs twice",
        "name 'c' occurs twice",
        "b comes after uuid-a twice",
    )


def test_a_blocker_has_to_come_before_anyhow() -> None:
    blocked_by = (Blocker("uuid-a", (Outcome.ERROR,)), Blocker("uuid-x", (Outcome.FAILED,)))
    ordered = {"parents": ("uuid-a",), "blocked_by": blocked_by[:1]}
    graph.validate(actions({"a": [], "b": ordered}))
    with pytest.raises(InvalidPlan) as refused:
        graph.validate(actions({"a": [], "b": {"blocked_by": blocked_by}}))
    first, second = refused.value.problems
    assert first.startswith("b is blocked by uuid-a, ")
    assert second.startswith("b is blocked by uuid-x, ")


def test_waves_go_by_the_longest_way_and_joins_take_none() -> None:
    assert waves({"a": [], "b": ["a"], "c": [], "d": ["c", "b"], "e": TRIGGERED}) == [
        ["a", "c"],
        ["b", "e"],
        ["d"],
    ]
    assert waves({"a": [], "join-1": ["a"], "join-2": ["join-1"], "b": ["join-2"]}) == [
        ["a"],
        ["b"],
    ]
    assert waves({"c": ["b"], "b": ["a"], "a": []}) == [["a"], ["b"], ["c"]]


def test_an_edge_of_several_kinds_is_given_once_as_the_strongest() -> None:
    links = {
        "a": [],
        "b": [],
        "c": {
            "parents": ("uuid-a", "uuid-b"),
            "needs": ("uuid-a",),
            "triggers": (Trigger("uuid-b", (Outcome.OK,)),),
        },
        "d": {"needs_any": (("uuid-b", "uuid-c"),), "parents": ("uuid-c", "uuid-a")},
    }
    assert edges(links) == {
        ("a", "c"): "need",
        ("b", "c"): "trigger",
        ("a", "d"): "order",
        ("c", "d"): "order",
        ("b", "group 0"): "any",
        ("c", "group 0"): "any",
        ("group 0", "d"): "any",
    }


def edges(links: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the kind of each edge of the order graph, by names and groups."""
    found = graph.order_graph(actions(links)).edges(data="kind")
    return {(a.removeprefix("uuid-"), b.removeprefix("uuid-")): kind for a, b, kind in found}


def test_links_that_many_share_go_through_a_group() -> None:
    three = ("uuid-a", "uuid-b", "uuid-c")
    first: dict[str, Any] = {"a": [], "b": [], "c": []}
    later: dict[str, Any] = {n: {"needs": three, "parents": ("uuid-a",)} for n in "xyz"}
    assert edges(first | later) == {
        **{(name, "group 0"): "need" for name in "abc"},
        **{("group 0", name): "need" for name in "xyz"},
    }


@pytest.mark.parametrize("seed", range(30))
def test_the_order_graph_has_every_link_of_a_plan_with_its_strongest_kind(seed: int) -> None:
    plan = random_plan(seed)
    made = order_graph(plan)
    assert [n for n, data in made.nodes(data=True) if "action" in data] == [
        a.uuid for a in plan.actions
    ]
    assert nx.is_directed_acyclic_graph(made)
    assert {kind for _, _, kind in made.edges(data="kind")} <= {"order", "need", "any", "trigger"}
    for action in plan.actions:
        before: dict[str, str] = {}
        alternatives = []
        for one, _, kind in made.in_edges(action.uuid, data="kind"):
            if kind == "any":
                alternatives.append({*made.predecessors(one)})
                continue
            members = (one,) if "action" in made.nodes[one] else list(made.predecessors(one))
            assert all(made.edges[m, one]["kind"] == kind for m in members if m != one)
            for member in members:
                if STRENGTH[kind] > STRENGTH.get(before.get(member, ""), 0):
                    before[member] = kind
        expected = dict.fromkeys(action.parents, "order")
        expected |= {t.action: "trigger" for t in action.triggers}
        expected |= dict.fromkeys(action.needs, "need")
        assert before == expected
        assert sorted(map(sorted, alternatives)) == sorted(
            map(sorted, {frozenset(group) for group in action.needs_any if group})
        )


STRENGTH = {"order": 1, "trigger": 2, "need": 3}


def test_the_number_of_edges_is_linear_in_dense_layers() -> None:
    first = tuple(f"a{i}" for i in range(200))
    layers = [Action(uuid=uuid, action_type="nop") for uuid in first]
    layers += [Action(uuid=f"b{i}", action_type="nop", needs=tuple(first)) for i in range(200)]
    assert order_graph(layers).number_of_edges() == 400
