# SPDX-License-Identifier: Apache-2.0
"""The flow of a plan is what linking one by one would give."""

from __future__ import annotations

import pytest
from random_plans import random_plan
from taskflow import exceptions, task
from taskflow.patterns import graph_flow

from applier.engines.linear import PlanFlow
from applier.scheduling.waiting import links


class Nothing(task.Task):
    def execute(self):
        pass


def told(flow):
    """Names in order, and links with what taskflow notes about them."""
    found = sorted((u.name, v.name, sorted(meta.items())) for u, v, meta in flow.iter_links())
    return {t.name for t in flow}, found


@pytest.mark.parametrize("seed", range(5))
def test_linking_at_once_gives_what_linking_one_by_one_gives(seed):
    after = links(random_plan(seed, size=20).actions)
    one_by_one = graph_flow.Flow("plan")
    tasks = {name: Nothing(name) for name in after}
    one_by_one.add(*tasks.values())
    for one, later in after.items():
        for other in later:
            one_by_one.link(tasks[one], tasks[other])
    made = PlanFlow("plan", after, Nothing)
    assert isinstance(made, graph_flow.Flow)
    assert told(made) == told(one_by_one)
    assert made.requires == frozenset()


def test_one_task_is_made_for_each_node():
    made = []
    flow = PlanFlow("plan", {"a": ["b"], "b": []}, lambda n: made.append(n) or Nothing(n))
    assert made == ["a", "b"]
    assert list(flow) == [flow.tasks["a"], flow.tasks["b"]]


def test_a_cycle_is_refused():
    with pytest.raises(exceptions.DependencyFailure):
        PlanFlow("plan", {"a": ["b"], "b": ["a"]}, Nothing)


def test_nothing_is_added_later():
    with pytest.raises(TypeError, match="has all tasks of its plan"):
        PlanFlow("plan", {"a": []}, Nothing).add(Nothing("b"))


def test_a_flow_without_actions_is_a_flow():
    assert len(PlanFlow("plan", {}, Nothing)) == 0
