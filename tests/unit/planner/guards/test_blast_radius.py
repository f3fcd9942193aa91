# SPDX-License-Identifier: Apache-2.0
"""How much of a cloud a plan touches: counted by the facts, bounded in all and at once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner import guards, make_plan
from planner.errors import InvalidInput
from planner.guards import NO_GUARDS, Guards, blast_radius
from planner.guards.blast_radius import Bound, bounds
from planner.making.guarding import Demands, with_facts_of
from planner.plan.extent import Members
from planner.plan.model import ActionPlan

AT = "2026-03-01T12:00:00+00:00"
FACTS = {
    "at": AT,
    "hosts": {f"c{n}": {"labels": {"rack": f"r{n % 2}"}} for n in range(6)},
    "instances": {f"i{n}": {"host": "c0"} for n in range(10)},
    "server_groups": {"g": {"name": "db", "members": ["i0", "i1", "i2"]}},
}


def touching(*actions: str, **fields):
    """Make a plan of no-ops that touch what is named: "c0 i1" is a host and an instance."""
    kinds = {"c": "node", "i": "instance"}
    steps = [
        {
            "name": f"a{k}",
            "action_type": "nop",
            "touches": [f"{kinds[name[0]]}:{name}" for name in names.split()],
        }
        for k, names in enumerate(actions)
    ]
    demands = fields.pop("demands", Demands())
    return make_plan({"actions": steps, "facts": FACTS, **fields}, demands=demands)


def test_what_a_plan_touches_is_counted_by_its_facts():
    plan = touching("c0 i0", "c1 i1", "c2 i9", "c2")
    found = {share.name: (share.touched, share.total) for share in plan.guards.extent}
    assert found == {
        "hosts": (3, 6),
        "instances": (3, 10),
        "rack/r0": (2, 3),
        "rack/r1": (1, 3),
        "group/db": (2, 3),
    }
    assert ActionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_facts_written_by_hand_are_not_the_whole_cloud():
    facts = {key: value for key, value in FACTS.items() if key != "at"}
    assert touching("c0", facts=facts).guards == NO_GUARDS


def test_what_is_touched_is_in_the_digest():
    plan, other = touching("c0"), touching("c0", facts={})
    assert plan.guards != NO_GUARDS
    assert replace(plan, facts_at=None).digest != other.digest
    assert with_facts_of(plan, other).digest == other.digest


@pytest.mark.parametrize(
    "text", ["hosts", "hosts=", "hosts=-1", "hosts=101%", "=2", "a b=1", "x=1.5%"]
)
def test_a_wrong_bound_is_told(text):
    with pytest.raises(ValueError, match="is not hosts=N") as refused:
        bounds(f"rack=1, {text}")
    assert "rack" not in str(refused.value)


@pytest.mark.parametrize("text", ["hosts=2", "hosts=20%", "group=1, hosts=2, hosts=20%, rack=0"])
def test_bounds_are_read_as_they_are_written(text):
    known = bounds(text)
    assert bounds(json.loads(json.dumps(blast_radius.to_dict(known)))) == known


def test_of_two_bounds_both_hold():
    one, other = bounds("hosts=5, rack=50%"), bounds("hosts=20%, hosts=9, rack=10%, group=1")
    both = blast_radius.stricter(one, other)
    assert both == blast_radius.stricter(other, one)
    assert both == bounds("hosts=5, hosts=20%, rack=10%, group=1")
    for total in (0, 10, 100):
        allowed = [b.allowed(total) for b in (*one[:1], *other[1:2], *both[1:2])]
        assert allowed[-1] == min(allowed)


def test_a_share_is_rounded_down():
    assert [Bound("hosts", percent=20).allowed(n) for n in (4, 5, 14, None)] == [0, 1, 2, None]


def test_what_is_touched_at_once_becomes_limits():
    plan = touching("c0", "c0", "c2", guards={"blast_radius_at_once": {"hosts": 2, "rack": "50%"}})
    assert plan.limits == {"at-once:hosts": 2, "at-once:rack/r0": 1}
    assert all("at-once:rack/r0" in action.tokens for action in plan.actions)


def test_an_action_that_touches_two_counts_as_two():
    demands = Demands(site=Guards(blast_radius_at_once=bounds("hosts=5")))
    plan = touching("c0 c1", "c2", demands=demands)
    assert plan.limits == {"at-once:hosts": 2}
    assert plan.guards.blast_radius_at_once == bounds("hosts=5")


def test_without_facts_numbers_hold_and_shares_are_refused():
    plan = touching("c0", facts={}, guards={"blast_radius_at_once": {"hosts": 1}})
    assert plan.limits == {"at-once:hosts": 1}
    with pytest.raises(InvalidInput, match="more of hosts at once than is allowed"):
        touching("c0", facts={}, guards={"blast_radius_at_once": {"hosts": "50%"}})
    with pytest.raises(InvalidInput, match="blast_radius_at_once: one action"):
        touching("c0 c1", guards={"blast_radius_at_once": {"hosts": 1}})


@pytest.mark.parametrize("kind", ["rack", "group", "zone"])
def test_what_is_not_known_is_not_touched_at_once(kind):
    guarded = {"guards": {"blast_radius_at_once": {kind: 9}}}
    facts = {"at": AT, "hosts": {"c0": {}}, "instances": {"i0": {}}}
    with pytest.raises(InvalidInput, match=f"touches more of {kind} at once than is allowed, or"):
        touching("c0 i0", facts=facts, **guarded)
    assert touching("", facts=facts, **guarded).limits == {}
    known = facts | {"hosts": {"c0": {}, "c1": {"labels": {kind: "x"}}}, "server_groups": {}}
    plan = touching("c0 i0", facts=known, **guarded)
    assert plan.limits == {}
    assert kind in {share.name for share in plan.guards.extent if share.touched == 0}


def test_what_things_belong_to_is_known_without_tables():
    facts = {
        "at": AT,
        "totals": {"hosts": 14, "instances": 40, "rack/r1": 7, "group/db": 3, "zone": 0},
        "belongs_to": {"node:c0": ["rack/r1"], "instance:i0": ["group/db"]},
    }
    plan = touching("c0 i0", "c1", facts=facts)
    found = {share.name: (share.touched, share.total) for share in plan.guards.extent}
    assert found == {
        "hosts": (2, 14),
        "instances": (1, 40),
        "rack/r1": (1, 7),
        "group/db": (1, 3),
        "zone": (0, 0),
    }


def test_the_strictest_of_document_and_site_shapes_the_plan():
    demands = Demands(site=Guards(blast_radius_at_once=bounds("hosts=3")))
    own = {"blast_radius_at_once": {"hosts": 2}, "blast_radius": {"hosts": "50%"}}
    plan = touching("c0", guards=own, demands=demands)
    assert plan.limits["at-once:hosts"] == 2
    assert plan.guards.blast_radius == bounds("hosts=50%")
    set_to = Demands(own={"blast_radius": guards.read_setting("blast_radius", "hosts=1")})
    assert touching("c0", guards=own, demands=set_to).guards.blast_radius == bounds("hosts=1")


def test_a_host_with_several_values_of_a_label_counts_for_each():
    hosts = {"a": {"labels": {"aggregate": ["x", "y"]}}, "c0": {"labels": {"aggregate": "y"}}}
    totals = Members({"hosts": hosts}).totals
    assert (totals["aggregate/x"], totals["aggregate/y"]) == (1, 2)
    plan = touching("c0", facts={"at": AT, "hosts": hosts})
    assert blast_radius.Share("aggregate/y", 1, 2) in plan.guards.extent
