# SPDX-License-Identifier: Apache-2.0
"""What holds for every plan of every planner, whatever the solution: named properties."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from links import earlier

from planner.errors import InvalidInput
from planner.plan.effects import Need, settle
from planner.plan.model import JOIN, Action, ActionPlan
from planner.planners.node_resource_consolidation import TYPES, NodeResourceConsolidationPlanner
from planner.planners.weight import PARALLELIZATION, WeightPlanner
from planner.planners.workload_stabilization import WorkloadStabilizationPlanner
from planner.testing import check_planner, plan

INSTANCES = [f"0000000{i}-0000-4000-8000-000000000000" for i in range(4)]
VOLUMES = [f"1000000{i}-0000-4000-8000-000000000000" for i in range(2)]
HOSTS = ["c1", "c2", "c3"]
FACTS = {"instances": {uuid: {"host": HOSTS[i % 3]} for i, uuid in enumerate(INSTANCES)}}
FLEETING = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])

instances, hosts = st.sampled_from(INSTANCES), st.sampled_from(HOSTS)


def of_type(
    action_type: str, resource: st.SearchStrategy[str] | None = None, **parameters: Any
) -> st.SearchStrategy[dict[str, Any]]:
    """Any action of a type, with some resource and parameters."""
    fields: dict[str, Any] = {
        "action_type": st.just(action_type),
        "input_parameters": st.fixed_dictionaries(parameters),
    }
    if resource is not None:
        fields["resource_id"] = resource
    return st.fixed_dictionaries(fields)


ACTIONS = {
    "migrate": of_type(
        "migrate",
        instances,
        migration_type=st.sampled_from(["live", "cold"]),
        source_node=hosts,
        destination_node=hosts,
    ),
    "change_nova_service_state": of_type(
        "change_nova_service_state", hosts, state=st.sampled_from(["enabled", "disabled"])
    ),
    "resize": of_type("resize", instances, flavor=st.just("m1.small")),
    "stop": of_type("stop", instances),
    "shelve": of_type("shelve", instances),
    "delete": of_type("delete", instances),
    "change_node_power_state": of_type(
        "change_node_power_state", hosts, state=st.sampled_from(["on", "off"])
    ),
    "turn_host_to_acpi_s3_state": of_type("turn_host_to_acpi_s3_state", hosts),
    "volume_migrate": of_type(
        "volume_migrate",
        st.sampled_from(VOLUMES),
        migration_type=st.just("migrate"),
        destination_node=st.just("pool"),
    ),
    "sleep": of_type("sleep", duration=st.floats(0, 9)),
    "nop": of_type("nop"),
}
any_action = st.one_of(*ACTIONS.values())


def documents(actions: st.SearchStrategy[Any], **options: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Any solution of these actions, each with a name, planned with some of these options."""
    return st.builds(
        lambda found, chosen: {
            "actions": [{**a, "name": f"a{i}"} for i, a in enumerate(found)],
            "facts": FACTS,
            "options": chosen,
        },
        st.lists(actions, max_size=12),
        st.fixed_dictionaries({}, optional=options),
    )


types = st.sampled_from(sorted(PARALLELIZATION))
weights = st.dictionaries(types, st.integers(-2, 2) | st.floats(-2, 2))
widths = st.dictionaries(types, st.integers(1, 4))
weighted = documents(any_action, weights=weights, parallelization=widths)
slotted = documents(any_action, weights=weights).map(
    lambda document: {**document, "options": {**document["options"], "ordering": "slots"}}
)
stabilized = documents(any_action, weights=weights)
consolidated = documents(
    st.one_of(*(ACTIONS[action_type] for action_type in TYPES)),
)
PLANNED = pytest.mark.parametrize(
    ("planner", "problems"),
    [
        (WeightPlanner, weighted),
        (WeightPlanner, slotted),
        (WorkloadStabilizationPlanner, stabilized),
        (NodeResourceConsolidationPlanner, consolidated),
    ],
    ids=["weight", "weight in slots", "workload_stabilization", "node_resource_consolidation"],
)


def touched(action: Action, kind: str) -> set[str]:
    return {token for token in action.tokens if token.startswith(f"{kind}:")}


def by_name(made: ActionPlan) -> dict[str, Action]:
    return {str(action.name): action for action in made.actions}


@PLANNED
@FLEETING
@given(data=st.data())
def test_a_plan_is_whole_acyclic_in_order_repeatable_and_comes_back_from_json(
    planner: type[Any], problems: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    check_planner(planner, [data.draw(problems)])


@PLANNED
@FLEETING
@given(data=st.data())
def test_each_proposed_action_is_there_once_no_instance_twice_at_once_dropped_needs_are_named(
    planner: type[Any], problems: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    document = data.draw(problems)
    made = plan(planner, document)
    before, named = earlier(made), by_name(made)
    kept = {name: a for name, a in named.items() if a.action_type != JOIN}
    assert sorted(kept) == sorted(a["name"] for a in document["actions"])
    for proposed in document["actions"]:
        action = kept[proposed["name"]]
        assert action.action_type == proposed["action_type"]
        assert proposed["input_parameters"].items() <= action.input_parameters.items()
    for a, b in combinations(made.actions, 2):
        if touched(a, "instance") & touched(b, "instance"):
            assert a.uuid in before[b.uuid] or b.uuid in before[a.uuid], f"{a.name} and {b.name}"
    for warning in made.warnings:
        if " does not wait for " in warning:
            needing, _, rest = warning.partition(" does not wait for ")
            needed = rest.partition(" ")[0]
            assert named[needing].uuid in before[named[needed].uuid], warning


@PLANNED
@FLEETING
@given(data=st.data())
def test_links_of_the_document_are_kept_or_refused_with_their_path(
    planner: type[Any], problems: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    document = data.draw(problems)
    ranked = data.draw(st.permutations(document["actions"]))
    for i, action in enumerate(ranked):
        known = [a["name"] for a in ranked[:i]]
        names = st.lists(st.sampled_from(known), max_size=2, unique=True) if i else st.just([])
        action.update(needs=data.draw(names), after=data.draw(names))
    try:
        made = plan(planner, document)
    except InvalidInput as refused:
        # Links alone have no cycle here: each path has a rule of the planner or of the effects.
        for mistake in refused.mistakes:
            assert re.search(r"a cycle: .*\(.+\).* -> ", mistake.text), mistake
        return
    before, named = earlier(made), by_name(made)
    for asked in document["actions"]:
        action = named[asked["name"]]
        assert {named[n].uuid for n in asked["needs"]} <= {*action.needs}
        assert {named[n].uuid for n in asked["after"]} <= before[action.uuid]


@FLEETING
@given(weighted)
def test_sets_are_no_wider_than_parallelization_and_follow_each_other_all_to_all(
    document: dict[str, Any],
) -> None:
    made = plan(WeightPlanner, document)
    width = PARALLELIZATION | document["options"].get("parallelization", {})
    sets: dict[tuple[str, ...], list[Action]] = defaultdict(list)
    for action in made.actions:
        sets[action.parents].append(action)
    for members in sets.values():
        for action_type, number in Counter(a.action_type for a in members).items():
            assert number <= width[action_type]
    followed = [set(parents) for parents in sets if parents]
    members_of = [{a.uuid for a in members} for members in sets.values()]
    assert all(parents in members_of for parents in followed)
    assert len(followed) == max(len(sets) - 1, 0)


@FLEETING
@given(slotted)
def test_in_slots_a_weight_follows_the_one_before_and_limits_bound_each_type(
    document: dict[str, Any],
) -> None:
    made = plan(WeightPlanner, document)
    before = earlier(made)
    joins = {a.uuid for a in made.actions if a.action_type == JOIN}
    assert made.limits == {
        f"type:{a.action_type}": PARALLELIZATION[a.action_type]
        for a in made.actions
        if a.uuid not in joins
    }
    for action in made.actions:
        assert set(action.parents) <= joins or action.uuid in joins
    for a, b in pairwise([a for a in made.actions if a.uuid in joins]):
        assert a.uuid in before[b.uuid]


@FLEETING
@given(stabilized)
def test_a_host_goes_away_after_every_move_and_resize_that_concerns_it(
    document: dict[str, Any],
) -> None:
    made = plan(WorkloadStabilizationPlanner, document)
    before, dropped = earlier(made), "\n".join(made.warnings)
    away = {"turn_host_to_acpi_s3_state": None, "change_node_power_state": "off"}
    for off in made.actions:
        if off.action_type not in away:
            continue
        if off.input_parameters.get("state") != away[off.action_type]:
            continue
        for action in made.actions:
            if off.resource_id in hosts_of(action):
                waits = action.uuid in before[off.uuid]
                assert waits or f"{off.name} does not wait for {action.name} (" in dropped


def hosts_of(action: Action) -> set[str]:
    """The hosts that a migrate or a resize concerns."""
    if action.action_type == "resize":
        return {FACTS["instances"][str(action.resource_id)]["host"]}
    if action.action_type == "migrate":
        return {action.input_parameters[f"{end}_node"] for end in ("source", "destination")}
    return set()


@FLEETING
@given(stabilized)
def test_actions_that_share_no_resource_are_not_linked(document: dict[str, Any]) -> None:
    made = plan(WorkloadStabilizationPlanner, document)
    shared = {a.uuid: resources(a) for a in made.actions}
    for action in made.actions:
        for uuid in action.before():
            assert shared[uuid] & shared[action.uuid]


def resources(action: Action) -> set[str]:
    """What an action touches, and the hosts that its instance may be on while it works."""
    found = {token for token in action.tokens if not token.startswith("type:")}
    if touched(action, "instance") and not touched(action, "node"):
        # It is where a move of the same plan brought it: any of them.
        found |= {f"node:{host}" for host in HOSTS}
    return found


@FLEETING
@given(consolidated)
def test_consolidation_disables_then_moves_node_by_node_then_enables(
    document: dict[str, Any],
) -> None:
    made = plan(NodeResourceConsolidationPlanner, document)
    named = by_name(made)
    disables, enables, chains = [], [], defaultdict(list)
    for proposed in document["actions"]:
        action = named[proposed["name"]]
        if action.action_type == "migrate":
            chains[action.input_parameters["source_node"]].append(action)
        else:
            stage = disables if action.input_parameters["state"] == "disabled" else enables
            stage.append(action)
    first = [a.uuid for a in disables]
    assert all(a.parents == () for a in disables)
    for chain in chains.values():
        assert list(chain[0].parents) == first
        for one, other in pairwise(chain):
            assert list(other.parents) == [*first, one.uuid]
    last = tuple(chain[-1].uuid for chain in chains.values())
    assert all(a.parents == last for a in enables)


@st.composite
def demands(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[Need]]:
    """Some parents that point back, and needs that point anywhere."""
    count = draw(st.integers(1, 8))
    parents = [
        tuple(draw(st.lists(st.integers(0, i - 1), unique=True, max_size=3))) if i else ()
        for i in range(count)
    ]
    some = st.lists(st.integers(0, count - 1), unique=True, min_size=1, max_size=3).map(tuple)
    needs = draw(st.lists(st.builds(Need, some, some, st.just("why"), st.integers(0, 2))))
    disjoint = [n for n in needs if set(n.needed).isdisjoint(n.needing)]
    return parents, disjoint


def ancestors(links: Mapping[int, Sequence[int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for start in links:
        stack, seen = list(links[start]), set(links[start])
        while stack:
            more = set(links[stack.pop()]) - seen
            seen |= more
            stack += more
        found[start] = seen
    return found


@settings(max_examples=examples(300))
@given(demands())
def test_a_need_is_dropped_only_where_parents_and_kept_needs_stand_against_it(
    found: tuple[list[tuple[int, ...]], list[Need]],
) -> None:
    parents, needs = found
    by_parents = ancestors(dict(enumerate(parents)))
    settled = settle(parents, needs, {(a, b) for b, own in by_parents.items() for a in own})
    links = {i: [*parents[i], *settled.needs[i]] for i in range(len(parents))}
    before = ancestors(links)
    assert all(i not in before[i] for i in links), "what is kept goes in a circle"
    place = {i: k for k, i in enumerate(settled.order)}
    assert sorted(place) == sorted(links)
    assert all(place[a] < place[b] for b in links for a in links[b])
    asked = {(a, b) for n in needs for b in n.needing for a in n.needed}
    kept = {(a, b) for b, own in enumerate(settled.needs) for a in own}
    gone = {(d.needed, d.needing) for d in settled.dropped}
    assert kept | gone == asked
    for a, b in gone:
        assert b in before[a], f"{b} could have needed {a}"
