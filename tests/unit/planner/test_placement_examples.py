# SPDX-License-Identifier: Apache-2.0
"""Where instances go: spread, packed, or left behind with a reason.

``tests/property/test_placement.py`` tries what holds for any cloud.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import planner.drain
from planner.drain import drain, place


def cloud_of(sizes: list[int], rooms: dict[str, int]) -> dict[str, Any]:
    """Return instances of so many vcpus on host a, and hosts with so many free."""
    return {
        "instances": {f"i{n:02}": {"host": "a", "flavor": str(s)} for n, s in enumerate(sizes)},
        "flavors": {str(size): {"vcpus": size} for size in sizes},
        "hosts": {name: {"free": {"vcpus": room}} for name, room in rooms.items()},
        "services": {name: {"status": "enabled"} for name in rooms},
    }


def test_twelve_are_spread_over_three_empty_hosts() -> None:
    facts = cloud_of([1] * 12, {"b": 20, "c": 20, "d": 20})
    at = Counter(place(facts["instances"], facts, ["a"]).destinations.values())
    assert at == {"b": 4, "c": 4, "d": 4}


def test_they_are_packed_where_that_leaves_fewer_behind() -> None:
    facts = cloud_of([3, 2, 2], {"b": 3, "c": 4})
    assert place(facts["instances"], facts, ["a"]).destinations == {
        "i00": "b",
        "i01": "c",
        "i02": "c",
    }


def test_what_does_not_fit_or_must_be_apart_stays_and_says_why() -> None:
    facts = cloud_of([2, 2], {"a": 4, "b": 3})
    placed = place(facts["instances"], facts, ["a"])
    assert (placed.destinations, "it needs 2" in placed.refused["i01"]) == ({"i00": "b"}, True)
    apart = {"name": "pair", "policy": "anti-affinity", "members": ["i00", "i01"]}
    facts = cloud_of([2, 2], {"a": 4, "b": 9}) | {"server_groups": {"g": apart}}
    placed = place(facts["instances"], facts, ["a"])
    assert placed.destinations == {"i00": "b"}
    assert "as many of server group pair as it may" in placed.refused["i01"]


def test_placing_looks_at_each_host_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many hosts as instances; on half of them is no room."""
    number, looks = 300, 0
    fits = planner.drain._fits

    def counted(*given: Any) -> bool:
        nonlocal looks
        looks += 1
        return fits(*given)

    monkeypatch.setattr(planner.drain, "_fits", counted)
    names = [f"h{n}" for n in range(number)]
    one = {"host": "old", "flavor": "f", "status": "ACTIVE"}
    facts: dict[str, Any] = {
        "instances": {f"i{n}": one for n in range(number)},
        "flavors": {"f": {"vcpus": 2}},
        "hosts": {name: {"free": {"vcpus": n % 4}} for n, name in enumerate(names)},
        "services": {name: {"status": "enabled"} for name in (*names, "old")},
    }
    assert len(drain(facts, ["old"], reason="r").stays) == number // 2
    assert looks < 10 * number
