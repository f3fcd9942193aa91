# SPDX-License-Identifier: Apache-2.0
"""Plans that undo plans: what is in them, in which order, and at what size."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier.rollback_plan as module
from applier.errors import PlanConflict
from applier.rollback_plan import enable_hosts_first, rollback
from planner.plan.graph import order_graph, validate
from planner.plan.graph_algorithms import CycleError
from planner.plan.model import JOIN, Action, ActionPlan, Effect, Touch, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REVERTIBLE = {"migrate": True, "resize": False}


def is_revertible(action):
    return REVERTIBLE.get(action.action_type, False)


def done(name, action_type="migrate", **fields):
    known = {"state": ActionState.SUCCEEDED, "outcome": Outcome.CHANGED, **fields}
    return Action(uuid=name, name=name, action_type=action_type, **known)


def touched(revert):
    """Return what a revert touches: these tests write it into its parameters."""
    given = revert.input_parameters["parameters"]
    return [Touch(r, Effect(e)) for r, e in given.items() if r.startswith("node:")]


def rolled_back(*actions, **fields):
    known = {"planner": "weight", "state": PlanState.FAILED, **fields}
    plan = ActionPlan(uuid="plan", actions=actions, **known)
    numbers = count()
    made = rollback(plan, is_revertible, touched, now=NOW, new_id=lambda: f"new-{next(numbers)}")
    validate(made.actions)
    return made


def comes_after(plan, kinds=("order", "need")):
    """Return for each revert the reverts before it, also through joins and groups."""
    names = {a.uuid: a.name for a in plan.actions}
    links = [(a, b) for a, b, kind in order_graph(plan).edges(data="kind") if kind in kinds]

    def before(uuid):
        for one, other in links:
            if other == uuid:
                yield from [names[one]] if names.get(one) else before(one)

    return {a.name: sorted(set(before(a.uuid))) for a in plan.actions if a.name}


def test_what_was_done_is_undone_last_first_under_the_same_limits():
    first = done("first", tokens=("instance:a",), timeout_s=9.0, input_parameters={"x": 1})
    plan = rolled_back(first, done("second", parents=("first",)), limits={"node:*": 1})
    assert [a.name for a in plan.actions] == ["revert-second", "revert-first"]
    made = plan.actions[1]
    assert made.action_type == "revert"
    assert made.input_parameters == {
        "action_type": "migrate",
        "parameters": {"x": 1},
        "undoes": {"plan": "plan", "action": "first"},
    }
    assert (made.tokens, made.timeout_s) == (("instance:a",), 9.0)
    assert (made.parents, made.needs) == ((plan.actions[0].uuid,), ())
    assert (made.state, plan.state) == (ActionState.PENDING, PlanState.RECOMMENDED)
    assert (plan.planner, plan.limits, plan.created_at) == ("rollback", {"node:*": 1}, NOW)


@pytest.mark.parametrize("link", [{"needs": ("a",)}, {"needs_any": (("a",),)}])
def test_what_was_needed_is_undone_only_if_what_needed_it_was(link):
    plan = rolled_back(done("a"), done("b", **link))
    assert comes_after(plan, ["need"]) == {"revert-b": [], "revert-a": ["revert-b"]}


def test_what_was_set_off_is_undone_before_what_set_it_off():
    plan = rolled_back(done("a"), done("b", triggers=(Trigger("a", (Outcome.CHANGED,)),)))
    assert comes_after(plan) == {"revert-b": [], "revert-a": ["revert-b"]}


def test_the_order_goes_through_what_is_left_out():
    failed = done("failed", state=ActionState.FAILED, outcome=Outcome.FAILED, needs=("a",))
    plan = rolled_back(
        done("a"), failed, done("same", outcome=Outcome.OK, parents=("failed",)),
        done("b", parents=("same",)), done("last", "resize", parents=("b",)),
    )  # fmt: skip
    assert comes_after(plan) == {"revert-b": [], "revert-a": ["revert-b"]}
    assert [a.action_type for a in plan.actions] == ["revert", JOIN, JOIN, "revert"]


def test_what_cannot_be_undone_is_said():
    plan = rolled_back(
        done("a"),
        done("b", "resize"),
        done("c", "third_partys"),
        done("d", state=ActionState.UNKNOWN),
    )
    b, c, d = (warning.split() for warning in plan.warnings)
    assert (b[0], c[0], d[0]) == ("b", "c", "d")
    assert ("resize" in b, "third_partys" in c, "doubt," in d) == (True, True, True)


def test_nothing_to_undo_is_refused():
    with pytest.raises(PlanConflict, match=r"^plan \S+: nothing that it did"):
        rolled_back(done("a", "resize"))


@pytest.mark.parametrize(
    ("state", "way"),
    [("PENDING", "cancel"), ("ONGOING", "pause or cancel"), ("CANCELLING", "cancel")],
)
def test_a_plan_that_goes_on_is_refused(state, way):
    with pytest.raises(PlanConflict, match=rf"^plan \S+: it is {state}: {way} it before"):
        rolled_back(done("a"), state=PlanState(state))


def test_sets_that_many_share_go_through_a_join():
    """A thousand actions after a thousand need two thousand links, not a million."""
    first = [done(f"a{i}") for i in range(1000)]
    shared = tuple(a.uuid for a in first)
    second = [done(f"b{i}", parents=shared) for i in range(1000)]
    plan = rolled_back(*first, *second)
    assert sum(len(a.before()) for a in plan.actions) == 2000
    assert len(plan.actions) == 2001


def test_a_plan_that_stands_in_another_order_is_undone_all_the_same():
    plan = rolled_back(replace(done("b"), parents=("a",)), done("a"))
    assert [a.name for a in plan.actions] == ["revert-b", "revert-a"]


def test_waiting_leaves_nothing_to_undo():
    plan = rolled_back(done("a"), done("b", "pause", parents=("a",)), done("c", parents=("b",)))
    assert comes_after(plan) == {"revert-c": [], "revert-a": ["revert-c"]}
    assert plan.warnings == ()


ENABLES = {"node:c1": "enables"}
ENTERS = {"node:c1": "enters"}


def test_a_host_is_enabled_before_moves_go_back_onto_it():
    """Disabled, emptied, switched off; then something else."""
    plan = rolled_back(
        done("disable", input_parameters=ENABLES),
        done("move-1", input_parameters=ENTERS, parents=("disable",), needs=("disable",)),
        done("move-2", input_parameters=ENTERS, parents=("move-1",), needs=("disable",)),
        done("off", parents=("move-2",), needs=("move-1", "move-2"), input_parameters={}),
        done("other", parents=("off",), input_parameters={}),
    )
    assert comes_after(plan) == {
        "revert-other": [],
        "revert-off": ["revert-other"],
        "revert-disable": ["revert-off"],
        "revert-move-2": ["revert-disable", "revert-off"],
        "revert-move-1": ["revert-disable", "revert-move-2", "revert-off"],
    }
    assert comes_after(plan, ("need",))["revert-move-1"] == ["revert-disable", "revert-off"]
    assert [a.name for a in plan.actions][:3] == ["revert-other", "revert-off", "revert-disable"]


def test_hosts_in_each_others_way_stay_last_first_and_that_is_told():
    c1, c2 = {"node:c1": "enters"}, {"node:c2": "enters"}
    plan = rolled_back(
        done("disable-1", input_parameters={"node:c1": "enables"}),
        done("disable-2", input_parameters={"node:c2": "enables"}),
        done("a-1", input_parameters=c1, needs=("disable-1",)),
        done("a-2", input_parameters=c2, needs=("a-1", "disable-2")),
        done("b-2", input_parameters=c2, needs=("disable-2",)),
        done("b-1", input_parameters=c1, needs=("b-2", "disable-1")),
    )
    (warning,) = plan.warnings
    assert "enable them by hand" in warning
    assert {a.name for a in plan.actions[-2:]} == {"revert-disable-1", "revert-disable-2"}


# Hosts are enabled before moves onto them: on any graph, and at any number of hosts.

Plan = tuple[list[Action], dict[str, list[Touch]]]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw actions in topological order, and what each does to one of two hosts."""
    actions, touches = [], {}
    for number in range(draw(st.integers(2, 9))):
        earlier = st.sampled_from([action.uuid for action in actions] or [""])
        links = draw(st.lists(earlier, max_size=3, unique=True)) if actions else []
        cut = draw(st.integers(0, len(links)))
        uuid = f"a{number}"
        actions.append(
            Action(uuid=uuid, action_type="x", parents=tuple(links[:cut]), needs=tuple(links[cut:]))
        )
        effect = draw(st.sampled_from([None, Effect.ENTERS, Effect.ENABLES]))
        host = draw(st.sampled_from(["node:1", "node:2"]))
        touches[uuid] = [Touch(host, effect)] if effect else []
    return actions, touches


def late(actions: list[Action], touches: dict[str, list[Touch]]) -> dict[str, set[str]]:
    """Return by enabling action the moves onto its host that lead to it."""
    graph = nx.DiGraph([(u, a.uuid) for a in actions for u in a.before()])
    graph.add_nodes_from(a.uuid for a in actions)
    found: dict[str, set[str]] = {}
    for enabler in graph:
        for host, effect in touches[enabler]:
            enters = {
                u for u in nx.ancestors(graph, enabler) if (host, Effect.ENTERS) in touches[u]
            }
            if effect is Effect.ENABLES and enters:
                found[enabler] = enters
    return found


@given(plans())
def test_moves_need_what_enables_their_host_and_it_waits_for_all_else(plan: Plan) -> None:
    actions, touches = plan
    before = {a.uuid: set(a.before()) for a in actions}
    graph = nx.DiGraph([(u, a.uuid) for a in actions for u in a.before()])
    expected = {uuid: set(links) for uuid, links in before.items()}
    found = late(actions, touches)
    for enabler, moves in found.items():
        behind = moves.union(*(nx.descendants(graph, move) for move in moves))
        expected[enabler] = before[enabler].union(*(before[move] for move in moves)) - behind
    for enabler, moves in found.items():
        for move in moves:
            expected[move] = expected[move] | {enabler}
    try:
        made = enable_hosts_first(actions, touches)
    except CycleError:
        wanted = nx.DiGraph([(u, uuid) for uuid, links in expected.items() for u in links])
        assert not nx.is_directed_acyclic_graph(wanted)
        return
    assert {a.uuid: set(a.before()) for a in made} == expected
    seen: set[str] = set()
    for action in made:
        assert seen.issuperset(action.before()), "not in topological order"
        seen.add(action.uuid)
    for enabler, moves in found.items():
        assert all(enabler in a.needs for a in made if a.uuid in moves)


@pytest.mark.parametrize("hosts", [50, 500])
def test_actions_behind_the_same_hosts_share_one_set(hosts: int, monkeypatch) -> None:
    """Layers of moves onto all hosts, one after another: what is kept grows with the layers."""
    actions, touches, last = [], {}, ()
    for layer in range(20):
        moves = [f"m{layer}-{host}" for host in range(hosts)]
        for host, uuid in enumerate(moves):
            actions.append(Action(uuid=uuid, action_type="x", parents=last))
            touches[uuid] = [Touch(f"node:{host}", Effect.ENTERS)]
        last = (f"join-{layer}",)
        actions.append(Action(uuid=last[0], action_type="join", parents=tuple(moves)))
    for host in range(hosts):
        actions.append(Action(uuid=f"e{host}", action_type="x", parents=last))
        touches[f"e{host}"] = [Touch(f"node:{host}", Effect.ENABLES)]
    kept: list[int] = []
    collect = module._collect

    def counted(*arguments):
        found = collect(*arguments)
        kept.append(sum({id(part): len(part) for part in found.values()}.values()))
        return found

    monkeypatch.setattr(module, "_collect", counted)
    made = [action.uuid for action in enable_hosts_first(actions, touches)]
    assert made.index(f"e{hosts - 1}") < made.index(f"m0-{hosts - 1}")
    assert len(kept) == 2
    assert all(entries < 4 * hosts for entries in kept)
