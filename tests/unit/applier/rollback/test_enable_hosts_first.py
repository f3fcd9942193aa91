# SPDX-License-Identifier: Apache-2.0
"""Hosts are enabled before moves onto them: on any graph, and at any number of hosts."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier.rollback as module
from applier.rollback import enable_hosts_first
from planner.plan.graph_algorithms import CycleError
from planner.plan.model import Action, Effect, Touch

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
