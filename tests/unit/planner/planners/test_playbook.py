# SPDX-License-Identifier: Apache-2.0
"""Playbooks: what tests/cases/playbook cannot say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.plan.model import JOIN
from planner.planners.playbook.patterns import Inventory
from planner.planners.playbook.planner import PlaybookPlanner
from planner.testing import action_type, check_planner, plan

GROUPS = {"web": ["a", "b", "c", "d", "e"], "db": ["x", "y"], "all": [*"abcdexy"]}
ANSIBLE = action_type("ansible")
PLAYS = st.lists(
    st.fixed_dictionaries(
        {"hosts": st.sampled_from(["all", "web", "db", "web[1:3]", "web:&all:!c", "nobody"])},
        optional={
            "serial": st.sampled_from([1, 2, "40%", [1, 3]]),
            "strategy": st.sampled_from(["linear", "free"]),
            "max_fail_percentage": st.sampled_from([0, 40, 100]),
            "tasks": st.sampled_from([[{"shell": "x", "run_once": True}], [{"name": "t"}]]),
        },
    ),
    min_size=1,
    max_size=5,
).filter(lambda plays: any(play["hosts"] != "nobody" for play in plays))


@given(PLAYS)
def test_each_host_of_each_play_is_in_one_call_and_comes_after_what_it_ran_before(plays):
    document: dict[str, Any] = {
        "kind": "playbook",
        "playbook": "/srv/site.yml",
        "inventory": "/srv/hosts.yml",
        "groups": GROUPS,
        "plays": [{"play": play} for play in plays],
    }
    check_planner(PlaybookPlanner, [document], ANSIBLE)
    made = plan(PlaybookPlanner, document, ANSIBLE)
    calls = [action for action in made.actions if action.action_type != JOIN]
    inventory = Inventory(GROUPS)
    visits = [(a.input_parameters["play"], h) for a in calls for h in a.input_parameters["hosts"]]
    hosts = [inventory.matching([play["hosts"]]) for play in plays]
    assert sorted(visits) == sorted((i, host) for i, own in enumerate(hosts) for host in own)
    last: dict[str, str] = {}
    for call in calls:
        for host in call.input_parameters["hosts"]:
            assert host not in last or last[host] in call.needs
        last |= dict.fromkeys(call.input_parameters["hosts"], call.uuid)
