# SPDX-License-Identifier: Apache-2.0
"""What holds for every deployment, whatever its tasks and nodes: named properties."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from examples import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from links import choices, labels_earlier

from planner.errors import InvalidInput
from planner.plan.model import JOIN, ActionPlan
from planner.planners.deployment import alternatives, message, task_links
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import applied, check_planner, plan

FLEETING = settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
ROLES = ["a", "b", "ab"]
IDS = ["t0", "t1", "t2", "t3", "u0", "u1", "s0", "s1"]


@pytest.fixture(params=[False, True], ids=["few joins", "joins wherever they can be"])
def joins(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let links go through joins only where there are many, or wherever two wait for two."""
    if request.param:
        monkeypatch.setattr(task_links, "DENSE", 1)
        monkeypatch.setattr(alternatives, "MANY", 1)


names = st.sampled_from([*IDS, "/t/", "/.*1$/", "t.", "nobody"])
roles = st.sampled_from([*ROLES, "*", "/a/", "master", "nowhere"])
sides = st.sampled_from([*ROLES, "self", "master", None, "*", "/.*b/"])


def mostly(ids: list[str]) -> st.SearchStrategy[str]:
    """Draw one of these ids; sometimes, or if there are none, any name."""
    some = st.sampled_from(ids) if ids else names
    return st.integers(0, 9).flatmap(lambda chance: some if chance else names)


@st.composite
def deployments(draw: Any, *, policies: tuple[str, ...] = ("all", "any")) -> dict[str, Any]:
    """Some tasks and nodes. Relations lead from earlier tasks to later ones, or anywhere."""
    tasks: list[dict[str, Any]] = []
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, min_size=1))
    for k, task_id in enumerate(ids):
        earlier = mostly(ids[:k])
        crosses = st.lists(
            st.fixed_dictionaries(
                {"name": earlier},
                optional={"role": sides, "tags": sides, "policy": st.sampled_from(policies)},
            ),
            max_size=2,
        )
        task: dict[str, Any] = {"id": task_id, "type": "stage" if task_id[0] == "s" else "puppet"}
        if task["type"] == "puppet":
            task |= {"version": "2.0.0", "role": draw(roles), "cross-depends": draw(crosses)}
            task["cross-depended-by"] = draw(crosses) if draw(st.integers(0, 9)) == 0 else []
        task["requires"] = draw(st.lists(earlier, max_size=2))
        task["required_for"] = draw(st.lists(mostly(ids[k + 1 :]), max_size=1))
        tasks.append(task)
    numbers = range(1, draw(st.integers(1, 7)) + 1)
    nodes = [
        {"uid": str(i), "roles": draw(st.lists(st.sampled_from(ROLES), max_size=2, unique=True))}
        for i in numbers
    ]
    return {"kind": "deployment", "tasks": tasks, "nodes": nodes}


def planned(document: Mapping[str, Any]) -> ActionPlan:
    return plan(DeploymentPlanner, document, check_types=False)


def made(document: Mapping[str, Any]) -> ActionPlan:
    """Plan, or leave this example: most random relations go round in circles somewhere."""
    try:
        return planned(document)
    except InvalidInput:
        assume(False)
        raise


def edges(found: ActionPlan) -> set[tuple[str, str]]:
    """Every edge of policy all between tasks, with what joins stand for written out."""
    return {
        (f"{link['node']}/{link['task']}", f"{node['node']}/{task['task']}")
        for node in message.write(found)["nodes"]
        for task in node["tasks"]
        for link in [*task.get("requires", ()), *task.get("after", ())]
    }


def matches(pattern: str, name: str) -> bool:
    if pattern.startswith("/"):
        return re.match(pattern.strip("/"), name) is not None
    return re.fullmatch(pattern, name) is not None


def naive(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The rules once more, pair by pair of all tasks on all nodes, and nothing clever."""

    def on(role: Any, uid: str, tags: list[str], own: str) -> bool:
        if role is None or role == "self":
            return uid == ("sync" if role is None else own)
        if role == "master" or uid in ("master", "sync"):
            return role == uid
        return bool(tags) if role == "*" else any(matches(role, tag) for tag in tags)

    machines = {n["uid"]: n["roles"] for n in document["nodes"]} | {"master": [], "sync": []}
    landed = [
        (uid, task)
        for task in document["tasks"]
        for uid, tags in machines.items()
        if (uid == "sync" if task["type"] == "stage" else on(task["role"], uid, tags, ""))
    ]
    found = set()
    for uid, task in landed:
        for other_uid, other in landed:
            before = other_uid in (uid, "sync") and any(
                matches(name, other["id"]) for name in task["requires"]
            )
            after = other_uid in (uid, "sync") and any(
                matches(name, other["id"]) for name in task["required_for"]
            )
            for field in ("cross-depends", "cross-depended-by"):
                hit = any(
                    matches(r["name"], other["id"])
                    and on(r.get("tags", r.get("role", "*")), other_uid, machines[other_uid], uid)
                    for r in task.get(field, ())
                )
                before, after = (
                    before or (hit and field[6:] == "depends"),
                    after or (hit and field[6:] == "depended-by"),
                )
            one, two = f"{uid}/{task['id']}", f"{other_uid}/{other['id']}"
            found |= {(two, one)} if before and one != two else set()
            found |= {(one, two)} if after and one != two else set()
    return found


@FLEETING
@given(deployments())
def test_planned_twice_it_is_one_plan_and_its_links_make_a_graph(document: dict[str, Any]) -> None:
    made(document)
    check_planner(DeploymentPlanner, [document], check_types=False)


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments(policies=("all",)))
def test_with_joins_written_out_the_edges_are_those_of_the_rules(document: dict[str, Any]) -> None:
    assert edges(made(document)) == naive(document)


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments(policies=("all",)))
def test_what_is_refused_as_a_loop_is_one(document: dict[str, Any]) -> None:
    graph = nx.DiGraph(naive(document))
    if nx.is_directed_acyclic_graph(graph):
        planned(document)
        return
    with pytest.raises(InvalidInput, match="a cycle: ") as refused:
        planned(document)
    for mistake in refused.value.mistakes:
        steps = mistake.text.removeprefix("a cycle: ").split(" -> ")
        path = [re.sub(r" \(.*", "", step) for step in steps]
        assert path[0] == path[-1]
        assert all(graph.has_edge(a, b) for a, b in pairwise(path))


def undecided(document: Mapping[str, Any], hard: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs of the choices that are not made yet: of no node all is needed anyhow."""
    bare = [
        {**t, "cross-depends": [], "requires": [], "required_for": []} for t in document["tasks"]
    ]
    found = set()
    for i, task in enumerate(document["tasks"]):
        for choice in task["cross-depends"]:
            alone = [*bare[:i], {**bare[i], "cross-depends": [choice]}, *bare[i + 1 :]]
            pairs = naive({**document, "tasks": alone})
            open_on = {(node(one), action) for one, action in pairs - hard}
            made_by = {action for one, action in pairs if (node(one), action) not in open_on}
            found |= {(one, action) for one, action in pairs if action not in made_by}
    return found - hard


def node(label: str) -> str:
    return label.partition("/")[0]


@FLEETING
@given(deployments(policies=("any",)))
def test_a_choice_is_kept_whole_unless_it_would_make_a_loop(document: dict[str, Any]) -> None:
    tasks = [
        {
            **task,
            "cross-depends": [{**r, "policy": "any"} for r in task.get("cross-depends", ())],
            "cross-depended-by": [],
        }
        for task in document["tasks"]
    ]
    document = {**document, "tasks": tasks}
    found = made(document)
    hard = naive({**document, "tasks": [{**t, "cross-depends": []} for t in tasks]})
    wanted = naive(document) - hard
    label = {a.uuid: a for a in found.actions}
    chosen = set()
    for action in found.actions:
        for uuid in [u for group in action.needs_any for u in group]:
            inside = label[uuid].needs if label[uuid].action_type == JOIN else (uuid,)
            chosen |= {(label[u].label, action.label) for u in inside}
    assert chosen - hard <= wanted
    if nx.is_directed_acyclic_graph(nx.DiGraph([*hard, *wanted])):
        assert undecided(document, hard) <= chosen


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments())
def test_a_message_is_read_back_into_a_plan_of_equal_digest(document: dict[str, Any]) -> None:
    found = made(document)
    told = json.loads(json.dumps(message.write(found)))
    assert planned(told).digest == found.digest if found.actions else told["nodes"] == []


def with_ancestors(found: ActionPlan, chosen: set[str]) -> set[str]:
    before = labels_earlier(found, choices)
    return chosen.union(*(before[name] for name in chosen))


def tasks_of(found: ActionPlan) -> set[str]:
    return {a.label for a in found.actions if a.action_type != JOIN}


def order_of(found: ActionPlan) -> Iterator[tuple[str, str]]:
    """All pairs of tasks of which one must come before the other."""
    for name, before in labels_earlier(found).items():
        yield from ((one, name) for one in before)


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments(), st.data())
def test_a_part_with_what_it_depends_on_is_complete(document: dict[str, Any], data: Any) -> None:
    whole = made(document)
    uid = data.draw(st.sampled_from([node["uid"] for node in document["nodes"]]))
    chosen = {name for name in tasks_of(whole) if name.startswith(f"{uid}/")}
    part = planned({**document, "only": {"nodes": [uid]}, "fetch_deps": True})
    assert tasks_of(part) == with_ancestors(whole, chosen)


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments(policies=("all",)), st.data())
def test_a_part_keeps_the_order_of_the_whole(document: dict[str, Any], data: Any) -> None:
    whole = made(document)
    some = [task["id"] for task in document["tasks"]]
    chosen = data.draw(st.lists(st.sampled_from(some), min_size=1, unique=True))
    part = planned({**document, "only": {"tasks": chosen}})
    left = {name for name in tasks_of(whole) if name.partition("/")[2] in chosen}
    assert tasks_of(part) == left
    assert set(order_of(part)) == {(a, b) for a, b in order_of(whole) if {a, b} <= left}


@pytest.mark.usefixtures("joins")
@FLEETING
@given(deployments())
def test_what_changed_takes_along_what_depends_on_it_and_nothing_else(
    document: dict[str, Any],
) -> None:
    whole = made(document)
    tasks = [
        {**task, **({"parameters": {"manifest": "new.pp"}} if task["id"] == "t0" else {})}
        for task in document["tasks"]
    ]
    again = planned({**document, "tasks": tasks, "changed_since": applied(whole).to_dict()})
    changed = {name for name in tasks_of(whole) if name.endswith("/t0")}
    wanted = {name for name in tasks_of(whole) if with_ancestors(whole, {name}) & changed}
    assert tasks_of(again) == wanted
    assert bool(again.actions) != any("nothing changed" in warning for warning in again.warnings)
    reasons = {a.label: a.reason or "" for a in again.actions}
    assert all("manifest changed" in reasons[name] for name in changed)
    assert all("which changed" in reasons[name] for name in wanted - changed)
