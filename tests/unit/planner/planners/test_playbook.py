# SPDX-License-Identifier: Apache-2.0
"""Playbooks: what tests/cases/playbook cannot say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.plan.model import JOIN
from planner.planners.playbook.planner import PlaybookPlanner
from planner.testing import action_type, check_planner, plan

ANSIBLE = action_type("ansible")
PLAYS = st.lists(
    st.fixed_dictionaries(
        {"hosts": st.lists(st.sampled_from("abcdexy"), unique=True)},
        optional={
            "name": st.sampled_from(["x", "x (2)"]),
            "serial": st.sampled_from([[1], [2], ["40%"], [1, 3]]),
            "strategy": st.sampled_from(["linear", "free"]),
            "max_fail_percentage": st.sampled_from([0, 40, 100]),
            "words": st.sampled_from([["run_once"], ["hostvars"]]),
        },
    ),
    min_size=1,
    max_size=5,
).filter(lambda plays: any(play["hosts"] for play in plays))


@given(PLAYS)
def test_each_host_of_each_play_is_in_one_call_and_comes_after_what_it_ran_before(plays):
    document: dict[str, Any] = {
        "kind": "playbook",
        "playbook": "/srv/site.yml",
        "inventory": "/srv/hosts.yml",
        "plays": plays,
    }
    check_planner(PlaybookPlanner, [document], ANSIBLE)
    made = plan(PlaybookPlanner, document, ANSIBLE)
    calls = [action for action in made.actions if action.action_type != JOIN]
    visits = [(a.input_parameters["play"], h) for a in calls for h in a.input_parameters["hosts"]]
    assert sorted(visits) == sorted((i, h) for i, play in enumerate(plays) for h in play["hosts"])
    last: dict[str, str] = {}
    for call in calls:
        for host in call.input_parameters["hosts"]:
            assert host not in last or last[host] in call.needs
        last |= dict.fromkeys(call.input_parameters["hosts"], call.uuid)
