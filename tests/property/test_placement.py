# SPDX-License-Identifier: Apache-2.0
"""Placement: never more than fits, groups kept apart, everything placed or explained."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.drain import ROOM, drain, need_of, place

pytestmark = pytest.mark.slow
often = settings(max_examples=examples(300))
HOSTS = ("a", "b", "c", "d", "e")
POLICIES = ("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity")


def amounts(most: int) -> st.SearchStrategy[dict[str, int]]:
    """Return amounts of some kinds of capacity."""
    number = st.integers(0, most)
    return st.fixed_dictionaries({"vcpus": number, "ram_mb": number}, optional={"disk_gb": number})


@st.composite
def clouds(draw: st.DrawFn) -> dict[str, Any]:
    """Make the facts of a small cloud, in which anything may be full, off, down or disabled."""
    flavors = draw(st.dictionaries(st.sampled_from("fgh"), amounts(4), min_size=1))
    instance = st.fixed_dictionaries(
        {
            "host": st.sampled_from((*HOSTS, None)),
            "flavor": st.sampled_from((*sorted(flavors), "gone")),
            "status": st.sampled_from(("ACTIVE", "SHUTOFF", "ERROR")),
        },
        optional={"name": st.sampled_from(("x", "y"))},
    )
    ids = [f"i{n}" for n in range(draw(st.integers(0, 12)))]
    group = st.fixed_dictionaries(
        {
            "policy": st.sampled_from(POLICIES),
            "members": st.lists(st.sampled_from((*ids, "stranger")), unique=True),
        },
        optional={"max_server_per_host": st.integers(1, 3), "name": st.just("web")},
    )
    host = st.fixed_dictionaries(
        {}, optional={"free": amounts(12), "power": st.sampled_from(("on", "off"))}
    )
    service = st.fixed_dictionaries(
        {"status": st.sampled_from(("enabled", "enabled", "disabled"))},
        optional={"state": st.sampled_from(("up", "up", "down"))},
    )
    return {
        "instances": {uuid: draw(instance) for uuid in ids},
        "flavors": flavors,
        "hosts": {name: draw(host) for name in HOSTS},
        "services": {name: draw(service) for name in HOSTS},
        "server_groups": draw(st.dictionaries(st.sampled_from(("g", "h")), group)),
    }


leavings = st.sets(st.sampled_from(HOSTS), min_size=1, max_size=3)


def on(facts: dict[str, Any], leaving: set[str]) -> list[str]:
    return [i for i, instance in facts["instances"].items() if instance["host"] in leaving]


@often
@given(clouds(), leavings)
def test_each_is_placed_within_what_is_free_and_the_rules_of_groups_or_really_fits_nowhere(
    facts: dict[str, Any], leaving: set[str]
) -> None:
    wanted = on(facts, leaving)
    destinations, refused = place(wanted, facts, leaving)
    assert sorted([*destinations, *refused]) == sorted(wanted)
    assert all(refused.values())
    taken: Counter[tuple[str, str]] = Counter()
    for instance, host in destinations.items():
        assert host not in leaving
        assert facts["services"][host]["status"] == "enabled"
        assert facts["services"][host].get("state") != "down"
        assert facts["hosts"][host].get("power") != "off"
        for room, amount in (need_of(facts, instance) or {}).items():
            taken[host, room] += amount
    for (host, room), amount in taken.items():
        assert amount <= facts["hosts"][host]["free"].get(room, amount)
    for group in facts["server_groups"].values():
        members = [i for i in group["members"] if i in facts["instances"]]
        at = Counter(destinations.get(i, facts["instances"][i]["host"]) for i in members)
        entered = {destinations[i] for i in members if i in destinations}
        if group["policy"] == "anti-affinity":
            assert all(at[host] <= group.get("max_server_per_host", 1) for host in entered)
        if group["policy"] == "affinity" and len(members) > 1:
            assert not entered

    require_true_refusals(facts, leaving, destinations, refused)


def require_true_refusals(
    facts: dict[str, Any], leaving: set[str], destinations: dict[str, str], refused: dict[str, str]
) -> None:
    """An instance stays only if no host that receives has room for it when all are placed."""
    left = {
        name: dict(host["free"])
        for name, host in facts["hosts"].items()
        if "free" in host
        and host.get("power") != "off"
        and name not in leaving
        and facts["services"][name]["status"] == "enabled"
        and facts["services"][name].get("state") != "down"
    }
    for instance, host in destinations.items():
        for room, amount in (need_of(facts, instance) or {}).items():
            if room in left[host]:
                left[host][room] -= amount
    grouped = {i for g in facts["server_groups"].values() for i in g["members"]}
    for instance in refused.keys() - grouped:
        need = need_of(facts, instance)
        assert need is None or not any(
            all(need[room] <= free[room] for room in ROOM if room in need and room in free)
            for free in left.values()
        )


@often
@given(clouds(), leavings, st.booleans(), st.randoms())
def test_equal_facts_give_equal_documents(
    facts: dict[str, Any], leaving: set[str], scheduler: bool, random: Any
) -> None:
    mixed = dict(facts)
    for table in ("instances", "hosts", "services", "flavors", "server_groups"):
        entries = list(facts[table].items())
        random.shuffle(entries)
        mixed[table] = dict(entries)
    hosts = sorted(leaving)

    def written(known: dict[str, Any]) -> str:
        drained = drain(known, hosts, reason="r", power_off=True, scheduler=scheduler)
        return json.dumps([drained.document, sorted(drained.stays.items())])

    assert written(facts) == written(mixed)


@often
@given(clouds(), leavings)
def test_a_drained_host_is_powered_off_only_if_nothing_stays(
    facts: dict[str, Any], leaving: set[str]
) -> None:
    document, stays = drain(facts, sorted(leaving), reason="r", power_off=True)
    off = {
        a["resource_id"]
        for a in document["actions"]
        if a["action_type"] == "change_node_power_state"
    }
    moved = {a["resource_id"] for a in document["actions"] if a["action_type"] == "migrate"}
    for host in leaving:
        there = set(on(facts, {host}))
        assert there <= moved | stays.keys()
        assert (host in off) == (there <= moved)
    handed_over = drain(facts, sorted(leaving), reason="r", scheduler=True)
    moves = [a for a in handed_over.document["actions"] if a["action_type"] == "migrate"]
    free = {a["resource_id"] for a in moves if "destination_node" not in a["input_parameters"]}
    assert free == stays.keys() - handed_over.stays.keys()
    for move in moves:
        way = {"ACTIVE": "live", "SHUTOFF": "cold"}[
            facts["instances"][move["resource_id"]]["status"]
        ]
        assert move["input_parameters"]["migration_type"] == way
