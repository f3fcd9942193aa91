# SPDX-License-Identifier: Apache-2.0
"""What holds for every plan of the planner of events, and for every way in which it may run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import networkx as nx
from examples import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from links import labels_earlier

from applier.contracts import Report
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import NOT_TRIGGERED, ActionEnd
from planner.errors import InvalidInput
from planner.plan.model import ActionPlan
from planner.plan.states import WELL, ActionState, Outcome
from planner.planners.events import cutting
from planner.planners.events.cutting import cut
from planner.planners.events.planner import EventsPlanner
from planner.testing import check_planner, plan

SETTINGS = settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
FAILURES = {Outcome.FAILED, Outcome.ERROR}
resources = st.sampled_from(["a", "b", "c.1", "c.2", "d"])
actions = st.tuples(resources, st.sampled_from(["run", "reload"])).map(".".join)
outcomes = st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=2, unique=True)
events = st.builds(
    lambda on, asked, do: {"on": on, "outcomes": asked, "do": do},
    st.one_of(actions, actions, resources),
    st.one_of(st.just(["changed"]), outcomes.map(lambda found: [str(o) for o in found])),
    actions,
)
connections = st.fixed_dictionaries(
    {"from": resources, "to": resources},
    optional={"events": st.booleans(), "order": st.booleans()},
)
#: Every resource is an end of a connection, so that it may stand in events.
ENDS = [{"from": r, "to": "d", "events": False, "order": False} for r in ("a", "b", "c.1", "c.2")]
documents = st.builds(
    lambda found, joined, after, staged, fan_in: {
        "kind": "events",
        "events": found,
        "connections": [*ENDS, *joined],
        "after": [list(pair) for pair in after],
        "staged": staged,
        "fan_in": fan_in,
    },
    st.lists(events, max_size=12),
    st.lists(connections, max_size=3),
    st.lists(st.tuples(actions, actions), max_size=2),
    st.lists(actions, min_size=1, max_size=4, unique=True),
    st.dictionaries(actions, st.sampled_from(["all", "any"]), max_size=2),
)


def planned(document: dict[str, Any]) -> ActionPlan:
    """Plan a document; those with a cycle of orders are no matter here."""
    try:
        return plan(EventsPlanner, document)
    except InvalidInput as wrong:
        refused = wrong
    assert "a cycle in which no event can be cut" in str(refused)
    assume(False)
    raise refused


def run(
    made: ActionPlan, outcome: Callable[[str], Outcome], stop_after: int | None = None
) -> tuple[dict[str, ActionEnd], dict[str, str | None], list[str]]:
    """Run a plan without a clock; gives ends and messages by name, and the starts in order.

    With ``stop_after`` the applier dies after so many ends, and another one goes on.
    """
    name = {action.uuid: action.label for action in made.actions}
    ends: dict[str, ActionEnd] = {}
    messages: dict[str, str | None] = {}
    starts: list[str] = []
    died = stop_after is None
    while True:
        actions = [
            replace(a, **ends[a.uuid]._asdict()) if a.uuid in ends else a for a in made.actions
        ]
        gone = waiting.completed(actions, ends)
        scheduler = Scheduler(
            actions, waiting.links(actions, gone), Concurrency(limits={}, max_workers=3)
        )
        turn, running = scheduler.begin(), []
        while True:
            for report in turn.ended:
                ends[report.uuid] = ActionEnd(report.state, report.outcome)
                messages[name[report.uuid]] = report.message
            running += turn.starts
            if not died and len(ends) >= (stop_after or 0):
                break
            if not running:
                assert scheduler.done
                return {name[u]: end for u, end in ends.items()}, messages, starts
            uuid = running.pop(0)
            starts.append(name[uuid])
            found = outcome(name[uuid])
            state = ActionState.FAILED if found in FAILURES else ActionState.SUCCEEDED
            ends[uuid] = ActionEnd(state, found)
            turn = scheduler.decide(
                [Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=found)]
            )
        died = True


def fate(seed: int, choices: list[Outcome]) -> Callable[[str], Outcome]:
    return lambda name: random.Random(f"{seed} {name}").choice(choices)


ANY = [Outcome.CHANGED, Outcome.CHANGED, Outcome.CREATED, Outcome.OK, Outcome.FAILED, Outcome.ERROR]


@SETTINGS
@given(documents)
def test_a_plan_is_whole_acyclic_in_order_repeatable_and_comes_back_from_json(
    document: dict[str, Any],
) -> None:
    planned(document)
    check_planner(EventsPlanner, [document])


@SETTINGS
@given(documents, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_the_input(
    document: dict[str, Any], chance: random.Random
) -> None:
    made = planned(document)
    mixed = {
        key: chance.sample(value, len(value)) if isinstance(value, list) else value
        for key, value in document.items()
    }
    again = planned(mixed)
    assert again.digest == made.digest
    assert [a.reason for a in again.actions] == [a.reason for a in made.actions]
    assert sorted(again.warnings) == sorted(made.warnings)


@SETTINGS
@given(documents)
def test_in_the_plan_is_what_is_staged_and_what_events_lead_to(document: dict[str, Any]) -> None:
    """Of events on actions; what an event on a resource means is told by cases."""
    verbs = (".run", ".reload")
    named = [e for e in document["events"] if e["on"].endswith(verbs)]
    made = planned({**document, "events": named})
    leads = [(e["on"], e["do"]) for e in named]
    for joined in document["connections"]:
        if joined.get("events", True):
            leads.append((f"{joined['from']}.run", f"{joined['to']}.reload"))
    wanted = set(document["staged"])
    for _ in leads:
        wanted |= {target for source, target in leads if source in wanted}
    assert {action.label.partition("#")[0] for action in made.actions} == wanted


@SETTINGS
@given(documents)
def test_an_action_runs_again_once_at_most_and_only_for_events_that_were_cut(
    document: dict[str, Any],
) -> None:
    made = planned(document)
    label = {action.uuid: action.label for action in made.actions}
    times = Counter(name.partition("#")[0] for name in label.values())
    assert set(times.values()) <= {1, 2}
    for action in made.actions:
        name = action.label.partition("#")[0]
        assert ("#" in action.label) == (times[name] == 2)
        if action.label.endswith("#1"):
            assert action.triggers
            assert f"{name}#0" in labels_earlier(made)[action.label]


@SETTINGS
@given(documents, st.integers(0, 9), st.integers(0, 12))
def test_every_run_ends_and_what_ran_had_a_reason_and_a_kill_at_any_moment_loses_no_event(
    document: dict[str, Any], seed: int, moment: int
) -> None:
    made = planned(document)
    ends, messages, starts = run(made, fate(seed, ANY))
    ends_after, _, starts_after = run(made, fate(seed, ANY), stop_after=moment)
    assert (ends_after, sorted(starts_after)) == (ends, sorted(starts))
    assert set(ends) == {action.label for action in made.actions}
    assert len(starts) == len(set(starts))
    label = {action.uuid: action.label for action in made.actions}
    for action in made.actions:
        sources = [(ends[label[t.action]], t.outcomes) for t in action.triggers]
        fired = any(end.outcome in asked for end, asked in sources)
        end = ends[action.label]
        if action.label in starts:
            assert fired or not action.triggers
        elif end.state is ActionState.SKIPPED:
            assert messages[action.label] == NOT_TRIGGERED
            assert not fired
            assert all(source.state in WELL for source, _ in sources)
        else:
            assert end.state is ActionState.FAILED_DEPENDENCIES
            before = (*action.before(), *(u for group in action.needs_any for u in group))
            assert any(ends[label[u]].state not in WELL for u in before)


NAMES = [f"{letter}.run" for letter in "abcde"]
KINDS = st.sampled_from([["changed"], ["failed"], ["error"], ["changed", "error"]])
forward = st.tuples(st.integers(0, 3), st.integers(1, 4)).filter(lambda pair: pair[0] < pair[1])


@SETTINGS
@given(
    st.dictionaries(forward, KINDS, min_size=4),
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.integers(0, 9),
)
def test_a_failure_blocks_each_target_whose_event_asks_for_something_else(
    asked: dict[tuple[int, int], list[str]], staged: set[str], seed: int
) -> None:
    """By the words of the document alone; staged targets as well."""
    found = [
        {"on": NAMES[one], "outcomes": words, "do": NAMES[other]}
        for (one, other), words in asked.items()
    ]
    made = planned({"kind": "events", "events": found, "staged": [*staged]})
    ends, _, starts = run(made, fate(seed, [Outcome.CHANGED, *FAILURES]))
    for event in found:
        end = ends.get(event["on"])
        if end and end.outcome in FAILURES and end.outcome not in event["outcomes"]:
            assert event["do"] not in starts


@SETTINGS
@given(documents)
def test_a_second_run_that_changes_nothing_runs_nothing_downstream(
    document: dict[str, Any],
) -> None:
    changes = [{**e, "outcomes": ["changed"]} for e in document["events"]]
    made = planned({**document, "events": changes})
    _, _, starts = run(made, lambda _: Outcome.OK)
    assert {name.removesuffix("#0") for name in starts} == set(document["staged"])


# Cutting loops quickly gives what the rule gives, followed to the letter.

Edges = set[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges, Edges, set[int]]:
    """Any graph of which each node is reached from a root over loose edges."""
    count = draw(st.integers(1, 8))
    node = st.integers(0, count - 1)
    loose = draw(st.sets(st.tuples(node, node), max_size=3 * count))
    fixed = draw(st.sets(st.tuples(node, node), max_size=count)) if draw(st.booleans()) else set()
    roots = draw(st.sets(node))
    return count, fixed, loose, roots | set(range(count)) - reached(count, loose, roots)


def graph_of(count: int, edges: Edges) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    return graph


def reached(count: int, edges: Edges, roots: set[int]) -> set[int]:
    graph = graph_of(count, edges)
    return roots.union(*(nx.descendants(graph, root) for root in roots))


def by_the_letter(count: int, fixed: Edges, loose: Edges, roots: set[int]) -> list[tuple[int, int]]:
    """Begin anew after each cut, and look at everything again."""
    left, found = set(loose), []
    while True:
        graph = graph_of(count, fixed | left)
        for edge in sorted(left - fixed):
            turns = nx.has_path(graph, edge[1], edge[0])
            if turns and len(reached(count, left - {edge}, roots)) == count:
                left.remove(edge)
                found.append(edge)
                break
        else:
            return found


@settings(max_examples=examples(400))
@given(graphs(), st.sampled_from([0, cutting.PATIENCE]))
def test_the_edges_cut_are_those_of_the_rule(
    given_graph: tuple[int, Edges, Edges, set[int]], patience: int
) -> None:
    count, fixed, loose, roots = given_graph
    with mock.patch.object(cutting, "PATIENCE", patience):
        found = cut(count, fixed, loose, roots)
    assert found.edges == by_the_letter(count, fixed, loose, roots)
    left = graph_of(count, (fixed | loose) - set(found.edges) | fixed)
    assert bool(found.left) is not nx.is_directed_acyclic_graph(left)
    for nodes in found.left:
        assert nx.is_strongly_connected(left.subgraph(nodes))
