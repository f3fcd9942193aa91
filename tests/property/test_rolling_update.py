# SPDX-License-Identifier: Apache-2.0
"""What holds for every rolling update: the floor, in each state that the graph lets it reach."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from examples import examples
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from applier.rollback_plan import rollback
from planner import documents as documents_of_cases
from planner.errors import InvalidInput
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome
from planner.planners.rolling_update.planner import RollingUpdatePlanner
from planner.testing import check_planner, plan

QUICK = settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
CASES = Path(__file__).parents[1] / "cases" / "rolling_update"
CREATE, DELETE = "create_instance", "delete_instance"


def template(
    image: str, size: Mapping[str, int], minimum: int = 0, largest: int = 1, pause: int = 0
) -> dict[str, Any]:
    """Write a template in which all groups have one launch configuration."""
    entry = {"MinInstancesInService": minimum, "MaxBatchSize": largest, "PauseTime": f"PT{pause}S"}
    group = {
        "Type": "OS::Heat::InstanceGroup",
        "UpdatePolicy": {"Whatever": entry},
        "Properties": {"LaunchConfigurationName": {"Ref": "Config"}},
    }
    groups = {
        name: {**group, "Properties": {**group["Properties"], "Size": number}}
        for name, number in size.items()
    }
    config = {
        "Type": "AWS::AutoScaling::LaunchConfiguration",
        "Properties": {"ImageId": image, "InstanceType": "m1.nano"},
    }
    return {"Resources": {**groups, "Config": config}}


def document(
    members: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    minimum: int,
    largest: int,
    pause: int = 0,
    sizes: Mapping[str, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Write a document in which the image of every group changes."""
    before = {name: len(group) for name, group in members.items()}
    return {
        "kind": "rolling_update",
        "old": template("one", before),
        "new": template("two", {**before, **(sizes or {})}, minimum, largest, pause),
        "groups": {name: {"members": list(group)} for name, group in members.items()},
        **more,
    }


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the roll of one group of up to six members."""
    size = draw(st.integers(0, 6))
    flag = st.booleans()
    members = [
        {"id": f"m{i}", "failed": draw(flag) and draw(flag), "current": draw(flag) and draw(flag)}
        for i in range(size)
    ]
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["gates"] = [{"action_type": "nop"}] * draw(st.integers(1, 2))
    if draw(st.booleans()):
        more["steps"] = draw(st.lists(st.sampled_from([1, 2, "10%", "50%"]), max_size=3))
    return document(
        {"g": members},
        minimum=draw(st.integers(0, 8)),
        largest=draw(st.integers(1, 7)),
        pause=draw(st.sampled_from([0, 30])),
        sizes={"g": draw(st.just(size) | st.integers(0, 6))},
        mode=draw(st.sampled_from(["create_first", "in_place"])),
        pause_first=draw(st.booleans()),
        **more,
    )


def figures(made: ActionPlan, group: str = "g") -> dict[str, Any]:
    """Return what the plan prints of a group."""
    (found,) = [i["value"] for i in made.efficacy_indicators if i["name"] == group]
    value: dict[str, Any] = found
    return value


def creates(action: Action) -> bool:
    """Return whether it brings an instance: by creating one, or by undoing its end."""
    kind = action.input_parameters.get("action_type", action.action_type)
    return (kind == CREATE) != (action.action_type == "revert") and kind in (CREATE, DELETE)


def deletes(action: Action) -> bool:
    """Return whether it takes an instance away."""
    kind = action.input_parameters.get("action_type", action.action_type)
    return kind in (CREATE, DELETE) and not creates(action)


def reached(made: ActionPlan, failed: set[str], serving: int, there: int) -> tuple[int, int]:
    """Search all states that the graph allows; gives the fewest in service, the most there at once.

    One that is created is in service when that has ended, one that is deleted is not from the start
    on. An action that never ends stands for one that fails.
    """
    position = {action.uuid: i for i, action in enumerate(made.actions)}
    before = [sum(1 << position[u] for u in action.before()) for action in made.actions]
    alive = [
        deletes(a) and a.input_parameters.get("resource_id") not in failed for a in made.actions
    ]
    first = (0, 0)
    seen, waiting = {first}, [first]
    lowest, highest = serving, there
    for started, ended in waiting:  # it grows while it is read
        now, most = serving, there
        for i, action in enumerate(made.actions):
            bit = 1 << i
            if creates(action):
                now += bool(ended & bit)
                most += bool(started & bit)
            elif deletes(action):
                now -= bool(started & bit) and alive[i]
                most -= bool(ended & bit)
        lowest, highest = min(lowest, now), max(highest, most)
        for following in _following(made.actions, before, started, ended):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return lowest, highest


def _following(
    actions: Sequence[Action], before: Sequence[int], started: int, ended: int
) -> Iterator[tuple[int, int]]:
    for i, action in enumerate(actions):
        bit = 1 << i
        if started & bit:
            if not ended & bit:
                yield started, ended | bit
        elif before[i] & ended == before[i]:
            instant = not creates(action) and not deletes(action)
            yield started | bit, ended | bit if instant else ended


def members_of(value: Mapping[str, Any], group: str = "g") -> list[Mapping[str, Any]]:
    """Return the members in a document."""
    found: list[Mapping[str, Any]] = value["groups"][group]["members"]
    return found


def searched(value: Mapping[str, Any], made: ActionPlan) -> tuple[int, int]:
    """Search the states of a plan of the one group ``g``."""
    members = members_of(value)
    failed = {m["id"] for m in members if m.get("failed")}
    return reached(made, failed, len(members) - len(failed), len(members))


#: Two members are current and failed: they stay, and are never in service.
STUCK = document(
    {"g": [{"id": f"m{i}", "failed": i < 2, "current": i < 2} for i in range(6)]},
    minimum=3,
    largest=2,
    mode="in_place",
    pause_first=False,
)


#: One that is current and failed is one too many.
SPARE = document(
    {
        "g": [
            {"id": "m0", "failed": True, "current": True},
            {"id": "m1", "failed": False, "current": False},
        ]
    },
    minimum=1,
    largest=1,
    sizes={"g": 1},
    mode="create_first",
    pause_first=False,
)


@QUICK
@given(documents())
@example(STUCK)
@example(SPARE)
def test_a_roll_keeps_its_floor_replaces_each_once_and_has_as_few_batches_as_it_can(
    value: dict[str, Any],
) -> None:
    made = plan(RollingUpdatePlanner, value)
    require_figures(value, made)
    require_each_once(value, made)
    require_few_batches(value, made)


def require_figures(value: dict[str, Any], made: ActionPlan) -> None:
    """What is printed can be reached, and never is less in service than the minimum."""
    floor, peak = searched(value, made)
    assert (floor, peak) == (figures(made)["floor"], figures(made)["peak"])
    minimum = value["new"]["Resources"]["g"]["UpdatePolicy"]["Whatever"]["MinInstancesInService"]
    serving = sum(not m["failed"] for m in members_of(value))
    at_the_end = value["new"]["Resources"]["g"]["Properties"]["Size"]
    promised = serving if value["mode"] == "create_first" else min(minimum, serving)
    assert floor >= min(promised, at_the_end)


def require_each_once(value: dict[str, Any], made: ActionPlan) -> None:
    """Every outdated member goes exactly once, and none is left."""
    members, size = members_of(value), value["new"]["Resources"]["g"]["Properties"]["Size"]
    gone = [a.resource_id for a in made.actions if deletes(a)]
    current = [m["id"] for m in members if m["current"]]
    assert len(gone) == len(set(gone))
    assert {m["id"] for m in members} - set(current) <= set(gone)
    # Of too many members those go that are failed, also if they are current.
    stuck = sum(m["current"] and m["failed"] for m in members)
    spare = min(stuck, max(0, len(members) - size))
    assert len(set(gone) & set(current)) == spare + max(0, len(current) - spare - size)
    new = [a.resource_id for a in made.actions if creates(a)]
    assert len(new) == len(set(new)) == size - (len(current) - len(set(gone) & set(current)))


def require_few_batches(value: dict[str, Any], made: ActionPlan) -> None:
    """There are no more batches than there must be, and pauses between them."""
    policy = value["new"]["Resources"]["g"]["UpdatePolicy"]["Whatever"]
    largest, minimum = policy["MaxBatchSize"], policy["MinInstancesInService"]
    batches = figures(made)["batches"]
    often = len(batches) if value["pause_first"] else max(0, len(batches) - 1)
    pauses = [a for a in made.actions if a.action_type == "pause"]
    assert len(pauses) == (often if policy["PauseTime"] != "PT0S" else 0)
    if value.get("steps"):
        return
    created = sum(create for create, _ in batches)
    full = -(-created // largest)
    assert all(create <= largest for create, _ in batches)
    if value["mode"] == "create_first" or not created:
        assert len(batches) == max(full, bool(sum(gone for _, gone in batches)))
        return
    members = members_of(value)
    target = min(len(members), value["new"]["Resources"]["g"]["Properties"]["Size"])
    stuck = sum(m["failed"] and m["current"] for m in members)
    stuck = max(0, stuck - (len(members) - target))
    last = created - (full - 1) * largest
    assert len(batches) == full + (last + min(minimum + stuck, target) > target)


@QUICK
@given(st.lists(documents(), min_size=1, max_size=3))
def test_it_is_planned_as_every_planner_plans(values: list[dict[str, Any]]) -> None:
    check_planner(RollingUpdatePlanner, values)


@QUICK
@given(documents(), st.integers(0, 3), st.booleans())
def test_a_group_stays_within_its_own_maximum(
    value: dict[str, Any], room: int, surge: bool
) -> None:
    members, group = members_of(value), value["new"]["Resources"]["g"]
    most = max(group["Properties"]["Size"], len(members)) + room
    bounds = {"MinSize": 0, "MaxSize": most, "DesiredCapacity": group["Properties"].pop("Size")}
    group |= {"Type": "AWS::AutoScaling::AutoScalingGroup"}
    group["Properties"] |= bounds
    value["surge"] = "allowed" if surge else "bounded"
    minimum = group["UpdatePolicy"]["Whatever"]["MinInstancesInService"]
    try:
        made = plan(RollingUpdatePlanner, value)
    except InvalidInput:
        stuck = sum(m["failed"] and m["current"] for m in members)
        assert not surge
        assert minimum + stuck >= most
        return
    found = figures(made)
    assert searched(value, made) == (found["floor"], found["peak"])
    assert surge or found["peak"] <= most == found["maximum"]


@QUICK
@given(
    st.integers(0, 5),
    st.integers(0, 5),
    st.sets(st.integers(0, 5)),
    st.sampled_from(["append", "update"]),
    st.booleans(),
    st.sampled_from(["create_first", "in_place"]),
)
def test_a_resource_group_has_the_lowest_indices_that_are_not_removed(
    before: int, after: int, removed: set[int], how: str, rolls: bool, mode: str
) -> None:
    def resources(image: str, number: int, **more: Any) -> dict[str, Any]:
        server = {"type": "OS::Nova::Server", "properties": {"image": image, "key_name": "%index%"}}
        return {
            "heat_template_version": "2018-08-31",
            "resources": {
                "g": {
                    "type": "OS::Heat::ResourceGroup",
                    "update_policy": {"rolling_update": {"min_in_service": 1}},
                    "properties": {"count": number, "resource_def": server, **more},
                }
            },
        }

    policy = [{"resource_list": sorted(removed)}]
    value = {
        "kind": "rolling_update",
        "mode": mode,
        "old": resources("one", before),
        "new": resources(
            "two" if rolls else "one", after, removal_policies=policy, removal_policies_mode=how
        ),
    }
    left = {f"g-{i}": str(i) for i in range(before)}
    for action in plan(RollingUpdatePlanner, value).actions:
        if creates(action):
            name = str(action.resource_id)
            left[name] = action.input_parameters["configuration"]["properties"]["key_name"]
        elif deletes(action):
            del left[str(action.resource_id)]
    lowest = [str(i) for i in range(20) if i not in removed or i >= before][:after]
    assert sorted(left.values()) == sorted(lowest)
    assert not (rolls and left.keys() & {f"g-{i}" for i in range(before)})


ODDITIES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Ref", "Fn::Join", "Fn::If", "Fn::FindInMap", "Fn::Sub", "get_param", "equals"]
            )
            | st.sampled_from(["str_replace", "Fn::GetAtt", "template", "params", "Type", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the paths of all that is in a value."""
    yield path
    if isinstance(node, dict | list):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(inner, (*path, key))


def texts() -> list[dict[str, Any]]:
    """Return documents with templates of each kind of group, and each kind of definition."""
    names = (
        "aws-policies",
        "deployment-group",
        "heat-groups",
        "index-var",
        "launch-template",
        "removal-and-roll",
        "seed",
    )
    cases = (documents_of_cases.read(CASES / f"{name}.yaml").value for name in names)
    fields = ("kind", "old", "new", "parameters", "old_parameters", "groups")
    return [{f: case[f] for f in fields if f in case} for case in cases]


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(texts()))
def test_whatever_a_template_holds_it_is_planned_or_refused_with_sentences(
    data: st.DataObject, base: dict[str, Any]
) -> None:
    value = json.loads(json.dumps(base))
    path = data.draw(st.sampled_from([p for p in places(value["new"]) if p]))
    inside = value["new"]
    for part in path[:-1]:
        inside = inside[part]
    inside[path[-1]] = data.draw(ODDITIES)
    try:
        said = [i["description"] for i in plan(RollingUpdatePlanner, value).efficacy_indicators]
    except InvalidInput as refused:
        said = [m.text for m in refused.mistakes]
    assert all(said)


@QUICK
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.booleans(), st.integers(0, 3))
def test_no_name_is_given_twice_though_members_are_known_by_id_alone(
    done: list[bool], rolling: bool, more: int
) -> None:
    old = [{"id": f"m{i}"} for i in range(len(done))]
    first = plan(RollingUpdatePlanner, document({"g": old}, minimum=0, largest=9))
    names = [a.resource_id for a in first.actions if creates(a)]
    there = [name for name, was in zip(names, done, strict=True) if was]
    members = [{"id": f"u{i}", "current": rolling} for i, _ in enumerate(there)]
    left = [m for m, was in zip(old, done, strict=True) if not was] if rolling else []
    value = document(
        {"g": members + left}, minimum=0, largest=9, sizes={"g": len(members + left) + more}
    )
    if not rolling:
        value["old"] = value["new"]
    again = plan(RollingUpdatePlanner, value)
    assert not {a.resource_id for a in again.actions if creates(a)} & set(there)


@QUICK
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=2, max_size=4))
def test_no_name_is_given_twice_in_a_row_of_updates_though_members_are_known_by_id_alone(
    updates: list[tuple[bool, int]],
) -> None:
    names, image = {"m0": "m0"}, 0
    for rolls, more in updates:
        old, image = template(str(image), {"g": len(names)}, largest=9), image + rolls
        value = document({"g": [{"id": uuid} for uuid in names]}, minimum=0, largest=9)
        value |= {"old": old, "new": template(str(image), {"g": len(names) + more}, largest=9)}
        made = plan(RollingUpdatePlanner, value)
        new = [str(a.resource_id) for a in made.actions if creates(a)]
        left = set(names) - {a.resource_id for a in made.actions if deletes(a)}
        assert not set(new) & set(names.values())
        names = {uuid: names[uuid] for uuid in sorted(left)}
        names |= {f"id of {name} since {len(made.actions)}": name for name in new}


# Two of three plans are stopped before anything was done.
@settings(QUICK, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(documents(), st.data())
def test_a_rollback_keeps_the_floor_whenever_it_comes(
    value: dict[str, Any], data: st.DataObject
) -> None:
    made = plan(RollingUpdatePlanner, value)
    done = _stopped_somewhere(made, data)
    assume(any(creates(a) or deletes(a) for a in done))
    members = members_of(value)
    failed = {m["id"] for m in members if m["failed"]}
    serving = len(members) - len(failed)
    there = len(members)
    for action in done:
        there += creates(action) - deletes(action)
        serving += creates(action) - (deletes(action) and action.resource_id not in failed)
    ended = {a.uuid for a in done}
    states = {True: ActionState.SUCCEEDED, False: ActionState.CANCELLED}
    stopped = replace(
        made,
        actions=tuple(
            replace(a, state=states[a.uuid in ended], outcome=Outcome.CHANGED) for a in made.actions
        ),
    )
    numbers = count(1)
    back = rollback(
        stopped,
        lambda action: action.action_type in (CREATE, DELETE),
        lambda _: (),
        now=datetime(2026, 1, 1, tzinfo=UTC),
        new_id=lambda: f"r{next(numbers)}",
    )
    # One that was failed and is created again is in service: the floor is none the lower for it.
    lowest, highest = reached(back, set(), serving, there)
    assert lowest >= figures(made)["floor"]
    assert highest <= max(figures(made)["peak"], there)


def _stopped_somewhere(made: ActionPlan, data: st.DataObject) -> list[Action]:
    """Return what has ended when a plan is stopped in one of its states."""
    left = data.draw(st.integers(0, len(made.actions)))
    ended: list[Action] = []
    for action in made.actions:
        known = {a.uuid for a in ended}
        if len(ended) < left and known.issuperset(action.before()) and data.draw(st.booleans()):
            ended.append(action)
    return ended


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_one_budget_holds_over_several_groups(
    one: int, other: int, largest: int, budget: int
) -> None:
    members = {
        "a": [{"id": f"a{i}"} for i in range(one)],
        "b": [{"id": f"b{i}"} for i in range(other)],
    }
    value = document(
        members, minimum=0, largest=largest, mode="in_place", max_unavailable_total=budget
    )
    made = plan(RollingUpdatePlanner, value)
    lowest, highest = reached(made, set(), one + other, one + other)
    assert lowest >= one + other - budget
    assert highest == made.global_efficacy[0]["value"]["peak"]
    together = min(one, largest, budget) + min(other, largest, budget) <= budget
    second = next(a for a in made.actions if (a.name or "").startswith("b/"))
    assert (not second.parents) == together
