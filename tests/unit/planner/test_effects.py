# SPDX-License-Identifier: Apache-2.0
"""One test for each row of the table, and what happens when rows or parents stand against it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planner.effects import PAIRS, Need, Settled, find, located, settle
from planner.model import Effect, Touch

#: Where an action stands in schedule order says nothing about who needs whom, but for these.
IN_ORDER = [pair for pair in PAIRS if pair.in_order]


def touches(*texts: str) -> list[list[Touch]]:
    """Write each action's touches as text: ``leaves node:c1 + instance:i1``."""
    return [[Touch.parse(one) for one in text.split(" + ") if one] for text in texts]


def links(*texts: str) -> set[tuple[int, int]]:
    """Say who needs whom, as (needed, needing)."""
    return {(a, b) for n in find(touches(*texts)) for b in n.needing for a in n.needed}


def settled(
    texts: Sequence[str], parents: Sequence[tuple[int, ...]] | None = None
) -> tuple[Settled, set[tuple[int, int]], set[tuple[int, int]]]:
    """Settle what the actions touch; gives also who needs whom, and what was dropped."""
    parents = parents or [() for _ in texts]
    before = [set(p).union(*(q for q in [parents[a] for a in p])) for p in parents]
    found = settle(parents, find(touches(*texts)), lambda a, b: a in before[b])
    kept = {(a, b) for b, needs in enumerate(found.needs) for a in needs}
    return found, kept, {(d.needed, d.needing) for d in found.dropped}


@pytest.mark.parametrize("kind", ["instance", "volume"])
def test_one_action_at_a_time_works_on_an_instance_or_volume(kind: str) -> None:
    assert links(f"{kind}:a", f"{kind}:b", f"{kind}:a", f"{kind}:a") == {(0, 2), (2, 3)}


def test_one_action_at_a_time_whatever_it_does_to_an_instance() -> None:
    assert links("instance:a", "takes_down instance:a", "leaves instance:a") == {(0, 1), (1, 2)}


def test_a_node_is_worked_on_by_many_at_a_time() -> None:
    assert links("node:c1", "node:c1", "file:f", "file:f") == set()


def test_power_is_switched_once_at_a_time_in_schedule_order() -> None:
    assert links("takes_down node:c1", "brings_up node:c1") == {(0, 1)}
    assert links("brings_up node:c1", "takes_down node:c1") == {(0, 1)}
    assert links("takes_down node:c1", "brings_up node:c1", "takes_down node:c1") == {
        (0, 1),
        (1, 2),
    }


def test_a_service_is_switched_once_at_a_time_in_schedule_order() -> None:
    assert links("disables node:c1", "enables node:c1") == {(0, 1)}
    assert links("enables node:c1", "disables node:c1") == {(0, 1)}


#: What is needed and what needs it, whichever of the two stands first in the schedule.
ONE_WAY = [
    ("leaves", "takes_down"),
    ("enters", "takes_down"),
    ("uses", "takes_down"),
    ("brings_up", "enters"),
    ("disables", "leaves"),
    ("leaves", "enables"),
    ("enables", "enters"),
]


@pytest.mark.parametrize(("needed", "needing"), ONE_WAY)
def test_a_row_holds_whichever_comes_first_in_the_schedule(needed: str, needing: str) -> None:
    assert links(f"{needed} node:c1", f"{needing} node:c1") == {(0, 1)}
    assert links(f"{needing} node:c1", f"{needed} node:c1") == {(1, 0)}


@pytest.mark.parametrize(("needed", "needing"), ONE_WAY)
def test_a_row_is_about_one_and_the_same_node(needed: str, needing: str) -> None:
    assert links(f"{needed} node:c1", f"{needing} node:c2") == set()
    assert links(f"{needed} rack:r1", f"{needing} rack:r1") == set()


def test_these_tests_name_every_row() -> None:
    tested = {(Effect(a), Effect(b)) for a, b in ONE_WAY}
    assert tested == {(p.needed, p.needing) for p in PAIRS if not p.in_order}
    assert [(p.needed, p.needing) for p in IN_ORDER] == [
        (Effect.USES, Effect.USES),
        (Effect.TAKES_DOWN, Effect.BRINGS_UP),
        (Effect.DISABLES, Effect.ENABLES),
    ]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_row_says_why_about_which_resource(pair: object) -> None:
    assert "{resource}" in pair.why  # type: ignore[attr-defined]


def test_all_that_concerns_a_host_is_waited_for() -> None:
    away = "takes_down node:c1"
    moves = ["leaves node:c1", "enters node:c1", "node:c1", "leaves node:c2"]
    assert links(away, *moves) == {(1, 0), (2, 0), (3, 0)}


def test_an_action_does_not_need_itself() -> None:
    assert links("leaves node:c1 + takes_down node:c1") == set()
    both = "leaves node:c1 + takes_down node:c1"
    assert links(both, "leaves node:c1") == {(1, 0)}


def test_a_touch_that_stands_twice_counts_once() -> None:
    needs = find(touches("leaves node:c1 + leaves node:c1", "takes_down node:c1"))
    assert needs == [Need((0,), (1,), "node:c1 goes away after moves off it", 3)]


def test_a_set_of_needs_is_one_object_for_all_who_share_it() -> None:
    found, _, _ = settled(
        ["leaves node:c1", "leaves node:c1", "enables node:c1", "enables node:c1"]
    )
    assert found.needs[2] == (0, 1)
    assert found.needs[2] is found.needs[3]


def test_needs_that_point_backwards_change_the_order() -> None:
    found, kept, dropped = settled(["takes_down node:c1", "", "leaves node:c1"])
    assert (kept, dropped) == ({(2, 0)}, set())
    assert found.order == [1, 2, 0]


def test_a_need_against_the_parents_is_dropped() -> None:
    _, kept, dropped = settled(["takes_down node:c1", "leaves node:c1"], [(), (0,)])
    assert (kept, dropped) == (set(), {(1, 0)})


def test_a_need_against_parents_of_parents_is_dropped() -> None:
    _, kept, dropped = settled(
        ["takes_down node:c1", "", "leaves node:c1"], parents=[(), (0,), (1,)]
    )
    assert (kept, dropped) == (set(), {(2, 0)})


def test_the_rest_of_a_set_is_kept_when_one_of_it_is_dropped() -> None:
    _, kept, dropped = settled(
        ["leaves node:c1", "takes_down node:c1", "leaves node:c1"], parents=[(), (), (1,)]
    )
    assert (kept, dropped) == ({(0, 1)}, {(2, 1)})


def test_of_needs_that_stand_against_each_other_the_upper_row_is_kept() -> None:
    reboot = ["enters node:c1", "takes_down node:c1", "brings_up node:c1"]
    found, kept, dropped = settled(reboot)
    assert kept == {(1, 2), (2, 0)}
    assert dropped == {(0, 1)}
    assert found.order == [1, 2, 0]


def test_a_loop_costs_no_need_but_those_that_close_it() -> None:
    swap = [
        "instance:a + leaves node:c1 + enters node:c2",
        "instance:b + leaves node:c2 + enters node:c1",
        "takes_down node:c1",
        "brings_up node:c1",
        "instance:b",
    ]
    _, kept, dropped = settled(swap)
    assert kept == {(0, 2), (2, 3), (3, 1), (1, 4)}
    assert dropped == {(1, 2)}


def test_two_loops_are_straightened_by_themselves() -> None:
    one, two = (
        [f"enters node:{n}", f"takes_down node:{n}", f"brings_up node:{n}"] for n in ("c1", "c2")
    )
    _, kept, dropped = settled([*one, *two])
    assert kept == {(1, 2), (2, 0), (4, 5), (5, 3)}
    assert dropped == {(0, 1), (3, 4)}


def test_a_loop_of_parents_and_needs_costs_needs_only() -> None:
    # 1 after 0 by parents; 0 needs 2, and 2 needs 1.
    texts = ["enters node:c1", "takes_down node:c2", "brings_up node:c1 + leaves node:c2"]
    needs = find(touches(*texts))
    assert {(n.needed, n.needing) for n in needs} == {((2,), (0,)), ((2,), (1,))}
    _, kept, dropped = settled(["enters node:c1", "", "brings_up node:c1"], [(), (0,), (1,)])
    assert (kept, dropped) == (set(), {(2, 0)})


def test_an_instance_is_where_facts_and_moves_say_while_its_host_goes_away() -> None:
    acts = touches("instance:i1", "instance:i1 + enters node:c2", "instance:i1", "instance:i2")
    away = touches("takes_down node:c1")
    facts = {"instances": {"i1": {"host": "c1"}, "i2": {"name": "no host known"}}}
    found = [[t.resource for t in touched] for touched in located([*acts, *away], facts)]
    assert found[:4] == [
        ["instance:i1", "node:c1"],
        ["instance:i1", "node:c2"],
        ["instance:i1", "node:c1", "node:c2"],
        ["instance:i2"],
    ]


def test_where_an_instance_is_does_not_matter_while_hosts_stay() -> None:
    acts = touches("instance:i1", "brings_up node:c1")
    assert located(acts, {"instances": {"i1": {"host": "c1"}}}) == acts


def test_facts_may_be_missing() -> None:
    acts = touches("instance:i1", "takes_down node:c1")
    assert located(acts, {}) == acts
