# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans: how actions match, what is told of fields, waves, links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from planner.differences.comparison import PlanDifference, difference
from planner.differences.links import LinkSet
from planner.plan.model import JOIN, Action, ActionPlan, Blocker, Trigger
from planner.plan.states import ActionState, Outcome

CHANGED, FAILED = Outcome.CHANGED, Outcome.FAILED


def action(name: str, kind: str = "nop", **fields: Any) -> Action:
    """Make an action whose uuid is its name."""
    return Action(uuid=name, name=name, action_type=kind, **fields)


def plan(*actions: Action, **fields: Any) -> ActionPlan:
    """Make a plan."""
    return ActionPlan(uuid="p", planner="weight", actions=actions, **fields)


def found(old: tuple[Action, ...], new: tuple[Action, ...]) -> PlanDifference:
    return difference(plan(*old), plan(*new))


def links(
    kind: str, before: str, after: str, *outcomes: Outcome, between: str = " "
) -> tuple[LinkSet, ...]:
    """Return what is told of links between the actions of these names."""
    names = tuple(before.split(between)), tuple(after.split(between))
    return (LinkSet(kind=kind, before=names[0], after=names[1], outcomes=tuple(outcomes)),)


A, B, C = action("a"), action("b"), action("c")


def test_the_same_plan_has_no_difference() -> None:
    assert found((A, B), (A, B)) == PlanDifference()
    assert found((), ()).is_empty


def test_what_only_one_plan_has_is_added_or_removed() -> None:
    told = found((A, B), (B, C))
    assert (told.added, told.removed, told.changed) == ((C,), (A,), ())


COVERED: dict[str, Any] = {
    "action_type": "sleep",
    "resource_id": "web",
    "input_parameters": {"message": "hi"},
    "tokens": ("node:1",),
    "estimate_s": 5.0,
    "timeout_s": 5.0,
    "retries": 1,
}


@pytest.mark.parametrize("field", COVERED)
def test_a_field_that_a_digest_covers_is_a_change(field: str) -> None:
    told = found((A,), (replace(A, **{field: COVERED[field]}),))
    path = (field, "message") if field == "input_parameters" else (field,)
    assert [changed.paths for changed in told.changed] == [(path,)]
    assert told == PlanDifference(changed=told.changed)


NOT_COVERED: dict[str, Any] = {
    "uuid": "other",
    "description": "what",
    "reason": "why",
    "state": ActionState.FAILED,
    "outcome": FAILED,
    "status_message": "no",
    "attempts": 3,
}


@pytest.mark.parametrize("field", NOT_COVERED)
def test_what_a_digest_leaves_out_is_none(field: str) -> None:
    other = replace(A, **{field: NOT_COVERED[field]})
    assert found((A,), (other,)).is_empty
    assert plan(A).digest == plan(other).digest


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), ("1", 1), ([1], [1, 2]), (None, 0)])
def test_values_differ_as_their_json_does(old: Any, new: Any) -> None:
    made = [replace(A, input_parameters={"x": {"y": value}}) for value in (old, new)]
    (changed,) = found((made[0],), (made[1],)).changed
    assert changed.paths == (("input_parameters", "x", "y"),)


def test_durations_of_5_and_5_0_seconds_are_equal() -> None:
    assert found((replace(A, estimate_s=5),), (replace(A, estimate_s=5.0),)).is_empty


def test_a_reference_to_a_secret_is_compared_as_a_whole() -> None:
    made = [replace(A, input_parameters={"x": {"secret": f"env {name}"}}) for name in "PQ"]
    (changed,) = found((made[0],), (made[1],)).changed
    assert changed.paths == (("input_parameters", "x"),)


def test_a_new_name_is_a_change_if_the_rest_is_equal() -> None:
    old = action("old", "migrate", resource_id="web")
    told = found((old,), (replace(old, name="new", uuid="n"),))
    assert [changed.paths for changed in told.changed] == [(("name",),)]
    assert (told.added, told.removed) == ((), ())


def test_a_name_is_worth_more_than_equal_content() -> None:
    old = (action("a", "stop", resource_id="x"), action("b", "stop", resource_id="y"))
    new = (action("a", "stop", resource_id="y"), action("b", "stop", resource_id="x"))
    assert [changed.new.name for changed in found(old, new).changed] == ["a", "b"]


def test_names_that_a_planner_gives_do_not_shift_all_actions() -> None:
    resources = ["w", "x", "y", "z"]
    old = [action(f"stop-{i}", "stop", resource_id=r) for i, r in enumerate(resources[1:], 1)]
    new = [action(f"stop-{i}", "stop", resource_id=r) for i, r in enumerate(resources, 1)]
    told = found(tuple(old), tuple(new))
    assert [a.resource_id for a in told.added] == ["w"]
    assert {changed.paths for changed in told.changed} == {(("name",),)}


def test_equal_actions_without_names_are_counted() -> None:
    nameless = [Action(uuid=str(i), action_type="nop") for i in range(5)]
    told = found(tuple(nameless[:3]), tuple(nameless[1:]))
    assert (len(told.added), told.removed, told.changed) == (1, (), ())


def test_of_equal_actions_those_that_are_the_same_are_matched_first() -> None:
    def made(*retries: int) -> tuple[Action, ...]:
        return tuple(
            Action(uuid=str(i), action_type="nop", retries=n) for i, n in enumerate(retries)
        )

    told = found(made(1, 2, 3), made(3, 4, 1))
    assert [(c.old.retries, c.new.retries) for c in told.changed] == [(2, 4)]


def test_two_plans_may_have_the_same_uuids_for_other_actions() -> None:
    old = (action("a"), replace(B, uuid="x"))
    new = (replace(A, uuid="x"), replace(B, uuid="a"))
    assert found(old, new).is_empty


def test_an_action_in_another_wave_has_moved() -> None:
    told = found((A, B, replace(C, parents=("b",))), (A, replace(B, parents=("a",)), C))
    assert [(m.new.name, m.old_wave, m.new_wave) for m in told.moved] == [("b", 1, 2), ("c", 2, 1)]


LINKED: dict[str, tuple[dict[str, Any], tuple[LinkSet, ...]]] = {
    "parents": ({"parents": ("a", "b")}, links("parents", "a b", "c")),
    "needs": ({"needs": ("b",)}, links("needs", "b", "c")),
    "needs_any": ({"needs_any": (("a", "b"),)}, links("needs_any", "a b", "c")),
    "triggers": (
        {"triggers": (Trigger("a", (CHANGED,)),)},
        links("triggers", "a", "c", CHANGED),
    ),
    "blocked_by": (
        {"blocked_by": (Blocker("a", (FAILED,)),)},
        links("blocked_by", "a", "c", FAILED),
    ),
}


@pytest.mark.parametrize("kind", LINKED)
def test_links_are_new_or_lost_by_kind(kind: str) -> None:
    fields, told = LINKED[kind]
    linked = replace(C, **fields)
    assert found((A, B, C), (A, B, linked)).new_links == told
    assert found((A, B, linked), (A, B, C)).lost_links == told
    assert found((A, B, linked), (A, B, linked)).is_empty


def test_a_parent_that_becomes_a_need_is_told() -> None:
    told = found((A, replace(B, parents=("a",))), (A, replace(B, needs=("a",))))
    assert (told.new_links, told.lost_links) == (
        links("needs", "a", "b"),
        links("parents", "a", "b"),
    )


def test_links_that_several_actions_have_gained_are_one_entry() -> None:
    later = [replace(one, parents=("a", "b")) for one in (C, action("d"))]
    told = found((A, B, C, action("d")), (A, B, *later))
    assert told.new_links == links("parents", "a b", "c d")


@pytest.mark.parametrize("kind", LINKED)
def test_all_links_of_an_action_that_only_one_plan_has_are_told(kind: str) -> None:
    fields, told = LINKED[kind]
    linked = replace(C, **fields)
    assert (found((A, B), (A, B, linked)).new_links, found((A, B), (A, B, linked)).added) == (
        told,
        (linked,),
    )
    assert found((A, B, linked), (A, B)).lost_links == told
    assert found((A, B, linked), (A, B)).new_links == ()


def test_links_of_actions_that_differ_in_their_names_only_name_each() -> None:
    """They match nothing in the other plan, so they are not one and the same."""
    one = action("one", resource_id="web")
    two, other = (action(name, resource_id="web", parents=("one",)) for name in ("two", "other"))
    assert found((A,), (A, one, two, other)).new_links == links("parents", "one", "two other")


def test_links_to_an_action_that_only_one_plan_has_are_told() -> None:
    before, after = (A, replace(B, parents=("a",))), (replace(B, parents=("c",)), C)
    told = found(before, after)
    assert (told.removed, told.added) == ((A,), (C,))
    assert told.lost_links == links("parents", "a", "b")
    assert told.new_links == links("parents", "c", "b")


def test_links_of_one_more_of_equal_actions_are_told() -> None:
    nameless = replace(C, name=None, resource_id="web")
    one, two = (replace(nameless, uuid=u, parents=("a",)) for u in "12")
    assert found((A, one), (A, one, two)).new_links == links("parents", "a", "nop web", between=",")


def test_joins_are_seen_through() -> None:
    join = Action(uuid="j", name="join-1", action_type=JOIN, parents=("a", "b"))
    straight = replace(C, parents=("a", "b"))
    assert found((A, B, straight), (A, B, join, replace(C, parents=("j",)))).is_empty
    nested = Action(uuid="k", action_type=JOIN, parents=("j",))
    assert found((A, B, straight), (A, B, join, nested, replace(C, parents=("k",)))).is_empty


class CountedReads(tuple[str, ...]):
    """A tuple that counts how often all of it is read."""

    __slots__ = ()
    reads: ClassVar[int] = 0

    def __iter__(self) -> Iterator[str]:
        """Count one more."""
        CountedReads.reads += 1
        return super().__iter__()


def test_how_often_a_join_is_read_does_not_depend_on_how_many_actions_it_precedes() -> None:
    def reads(number: int) -> int:
        join = Action(uuid="j", action_type=JOIN, parents=CountedReads(("a", "b")))
        after = [action(f"after-{i}", parents=("j",), retries=i) for i in range(number)]
        CountedReads.reads = 0
        found((A, B, join, *after), (A, B))
        return CountedReads.reads

    assert 0 < reads(40) == reads(2)


def test_what_a_join_only_waits_for_is_not_needed() -> None:
    waits = Action(uuid="j", action_type=JOIN, parents=("a",), needs=("b",))
    through = (A, B, waits, replace(C, needs=("j",)))
    assert found((A, B, replace(C, parents=("a",), needs=("b",))), through).is_empty


def test_a_group_of_joins_is_told_by_what_is_behind_them() -> None:
    joins = [Action(uuid=f"j{u}", action_type=JOIN, needs=(u,)) for u in "ab"]
    told = found((A, B, C), (A, B, *joins, replace(C, needs_any=(("ja", "jb"),))))
    assert told.new_links == links("needs_any", "all of a,all of b", "c", between=",")


PLANS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "limits": ({"limits": {"node:*": 1}}, {"limits": {"node:*": 2}}, ("limits", "node:*")),
    "no limit": ({"limits": {"node:*": 1}}, {}, ("limits", "node:*")),
    "on_failure": ({}, {"on_failure": "continue"}, ("on_failure",)),
    "cloud": ({"cloud": "east"}, {"cloud": "west"}, ("cloud",)),
    "tolerances": (
        {"tolerances": [{"name": "web", "nodes": ["1"], "failed_nodes": 0}]},
        {"tolerances": [{"name": "web", "nodes": ["1"], "failed_nodes": 1}]},
        ("tolerances", "web", "failed_nodes"),
    ),
}


@pytest.mark.parametrize("title", PLANS)
def test_fields_of_a_plan_are_compared(title: str) -> None:
    old, new, path = PLANS[title]
    assert difference(plan(A, **old), plan(A, **new)) == PlanDifference(paths=(path,))
    assert difference(plan(A, **old), plan(A, name="another", **old)).is_empty


def test_groups_of_one_name_are_told_apart() -> None:
    group = {"name": "web", "nodes": ["1"], "failed_nodes": 0}
    told = difference(plan(A, tolerances=[group]), plan(A, tolerances=[group, group]))
    assert told.paths == (("tolerances", "web (2)"),)
