# SPDX-License-Identifier: Apache-2.0
"""What differs between any two plans: nothing by uuid or order, and the same from both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from examples import examples, renamed
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import random_plan
from sample_plans import plans

from planner.differences.comparison import PlanDifference, difference
from planner.differences.links import LinkSet, is_join
from planner.plan.model import Action, ActionPlan

OFTEN = settings(max_examples=examples(150))
#: Plans of the strategy take long to draw.
SELDOM = settings(max_examples=examples(25))
seeds = st.integers(0, 10**6)


def renumbered(plan: ActionPlan, chance: Random, kept: Collection[str] | None = None) -> ActionPlan:
    """Return a plan with other uuids, in another order, and without what is not kept."""
    left = {a.uuid for a in plan.actions} if kept is None else kept
    actions = [renamed(a, "new-{}".format, left) for a in plan.actions if a.uuid in left]
    chance.shuffle(actions)
    return replace(plan, uuid="other", actions=tuple(actions))


def nameless(plan: ActionPlan, chance: Random) -> ActionPlan:
    """Return a plan in which most actions have no name, and many are equal but for their links."""
    return replace(
        plan,
        actions=tuple(
            replace(a, name=None if chance.random() < 0.7 else a.name, tokens=())
            for a in plan.actions
        ),
    )


@SELDOM
@given(plans(), seeds)
def test_uuids_and_order_do_not_count_nor_among_equal_actions(plan: ActionPlan, seed: int) -> None:
    chance = Random(seed)
    for one in (plan, *(nameless(random_plan(seed + i), chance) for i in range(6))):
        assert difference(one, renumbered(one, chance)) == PlanDifference()


def sizes(links: tuple[LinkSet, ...]) -> Counter[Any]:
    """Count links by kind and outcomes."""
    found = Counter[Any]()
    for one in links:
        found[one.kind, one.outcomes] += len(one.before) * len(one.after)
    return found


def mirrored(told: PlanDifference, other: PlanDifference) -> None:
    """Assert that two differences are the same from both sides."""
    assert (told.added, told.removed) == (other.removed, other.added)
    pairs = {(c.old.uuid, c.new.uuid, frozenset(c.paths)) for c in told.changed}
    assert pairs == {(c.new.uuid, c.old.uuid, frozenset(c.paths)) for c in other.changed}
    waves = Counter((m.old_wave, m.new_wave) for m in told.moved)
    assert waves == Counter((m.new_wave, m.old_wave) for m in other.moved)
    assert sizes(told.new_links) == sizes(other.lost_links)
    assert sizes(told.lost_links) == sizes(other.new_links)
    assert set(told.paths) == set(other.paths)


@SELDOM
@given(plans(), plans())
def test_from_the_other_side_added_is_removed(old: ActionPlan, new: ActionPlan) -> None:
    mirrored(difference(old, new), difference(new, old))


@OFTEN
@given(seeds, st.booleans())
def test_so_it_is_for_plans_that_are_alike(seed: int, is_nameless: bool) -> None:
    chance = Random(seed)
    old = random_plan(seed)
    old = nameless(old, chance) if is_nameless else old
    new = renumbered(old, chance, {a.uuid for a in old.actions if chance.random() < 0.8})
    told = difference(old, new)
    mirrored(told, difference(new, old))
    assert len(told.removed) - len(told.added) == seen(old) - seen(new)


def seen(plan: ActionPlan) -> int:
    return sum(not is_join(action) for action in plan.actions)


Edge = tuple[str, str, str]


def edges(plan: ActionPlan) -> set[Edge]:
    """Return parents and needs between the actions that are no joins, slowly and by their names."""
    known = {action.uuid: action for action in plan.actions}

    def behind(action: Action) -> Iterator[tuple[str, str]]:
        for kind, uuids in (("parents", action.parents), ("needs", action.needs)):
            for uuid in uuids:
                if is_join(known[uuid]):
                    for inner, name in behind(known[uuid]):
                        yield "needs" if (kind, inner) == ("needs", "needs") else "parents", name
                else:
                    yield kind, str(known[uuid].name)

    return {
        (kind, name, str(action.name))
        for action in plan.actions
        if not is_join(action)
        for kind, name in behind(action)
    }


def told_edges(links: tuple[LinkSet, ...]) -> set[Edge]:
    return {
        (one.kind, before, after)
        for one in links
        if one.kind in ("parents", "needs")
        for before in one.before
        for after in one.after
    }


@OFTEN
@given(seeds)
def test_new_and_lost_links_are_those_of_a_slow_comparison(seed: int) -> None:
    chance = Random(seed)
    old, new = (
        renumbered(p, chance, {a.uuid for a in p.actions if chance.random() < 0.9})
        for p in (random_plan(seed), random_plan(seed))
    )
    told = difference(old, new)
    before, after = edges(old), edges(new)
    assert told_edges(told.new_links) == after - before
    assert told_edges(told.lost_links) == before - after
