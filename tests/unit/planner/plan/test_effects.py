# SPDX-License-Identifier: Apache-2.0
"""One test for each row of the table, and what happens when rows or parents stand against it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planner.plan.effects import PAIRS, Need, Settled, find, located, settle
from planner.plan.model import Effect, Touch

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
    ordered = {(a, b) for b, earlier in enumerate(before) for a in earlier}
    found = settle(parents, find(touches(*texts)), ordered)
    kept = {(a, b) for b, needs in enumerate(found.needs) for a in needs}
    return found, kept, {(d.needed, d.needing) for d in found.dropped}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # One action at a time works on an instance or volume, whatever it does to it.
        (["instance:a", "instance:b", "instance:a", "instance:a"], {(0, 2), (2, 3)}),
        (["volume:a", "volume:b", "volume:a", "volume:a"], {(0, 2), (2, 3)}),
        (["instance:a", "takes_down instance:a", "leaves instance:a"], {(0, 1), (1, 2)}),
        # A node is worked on by many at a time.
        (["node:c1", "node:c1", "file:f", "file:f"], set()),
        # Power and services are switched once at a time, in schedule order.
        (["takes_down node:c1", "brings_up node:c1"], {(0, 1)}),
        (["brings_up node:c1", "takes_down node:c1"], {(0, 1)}),
        (["takes_down node:c1", "brings_up node:c1", "takes_down node:c1"], {(0, 1), (1, 2)}),
        (["disables node:c1", "enables node:c1"], {(0, 1)}),
        (["enables node:c1", "disables node:c1"], {(0, 1)}),
        # All that concerns a host is waited for.
        (
            [
                "takes_down node:c1",
                *("leaves node:c1", "enters node:c1", "node:c1"),
                "leaves node:c2",
            ],
            {(1, 0), (2, 0), (3, 0)},
        ),
        # An action does not need itself.
        (["leaves node:c1 + takes_down node:c1"], set()),
        (["leaves node:c1 + takes_down node:c1", "leaves node:c1"], {(1, 0)}),
    ],
)
def test_who_needs_whom(texts: Sequence[str], expected: set[tuple[int, int]]) -> None:
    assert links(*texts) == expected


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
def test_a_row_holds_whichever_comes_first_for_one_and_the_same_node(
    needed: str, needing: str
) -> None:
    assert links(f"{needed} node:c1", f"{needing} node:c1") == {(0, 1)}
    assert links(f"{needing} node:c1", f"{needed} node:c1") == {(1, 0)}
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
    assert all("{resource}" in pair.why for pair in PAIRS)


def test_a_touch_that_stands_twice_counts_once() -> None:
    needs = find(touches("leaves node:c1 + leaves node:c1", "takes_down node:c1"))
    assert needs == [Need((0,), (1,), "node:c1 goes away after moves off it", 3)]


def test_a_set_of_needs_is_one_object_for_all_who_share_it() -> None:
    found, _, _ = settled(
        ["leaves node:c1", "leaves node:c1", "enables node:c1", "enables node:c1"]
    )
    assert found.needs[2] == (0, 1)
    assert found.needs[2] is found.needs[3]


SWAP = [
    "instance:a + leaves node:c1 + enters node:c2",
    "instance:b + leaves node:c2 + enters node:c1",
    "takes_down node:c1",
    "brings_up node:c1",
    "instance:b",
]
REBOOT, OTHER = (
    [f"enters node:{n}", f"takes_down node:{n}", f"brings_up node:{n}"] for n in ("c1", "c2")
)


@pytest.mark.parametrize(
    ("texts", "parents", "kept", "dropped", "order"),
    [
        # Needs that point backwards change the order.
        (["takes_down node:c1", "", "leaves node:c1"], None, {(2, 0)}, set(), [1, 2, 0]),
        # A need against the parents, or against parents of parents, is dropped.
        (["takes_down node:c1", "leaves node:c1"], [(), (0,)], set(), {(1, 0)}, None),
        (["takes_down node:c1", "", "leaves node:c1"], [(), (0,), (1,)], set(), {(2, 0)}, None),
        # The rest of a set is kept when one of it is dropped.
        (
            ["leaves node:c1", "takes_down node:c1", "leaves node:c1"],
            [(), (), (1,)],
            {(0, 1)},
            {(2, 1)},
            None,
        ),
        # Of needs that stand against each other the upper row is kept.
        (REBOOT, None, {(1, 2), (2, 0)}, {(0, 1)}, [1, 2, 0]),
        # A loop costs no need but those that close it.
        (SWAP, None, {(0, 2), (2, 3), (3, 1), (1, 4)}, {(1, 2)}, None),
        # Two loops are straightened by themselves.
        ([*REBOOT, *OTHER], None, {(1, 2), (2, 0), (4, 5), (5, 3)}, {(0, 1), (3, 4)}, None),
    ],
)
def test_what_is_kept_and_what_is_dropped(
    texts: Sequence[str],
    parents: Sequence[tuple[int, ...]] | None,
    kept: set[tuple[int, int]],
    dropped: set[tuple[int, int]],
    order: list[int] | None,
) -> None:
    found, *what = settled(texts, parents)
    assert what == [kept, dropped]
    assert order is None or found.order == order


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
