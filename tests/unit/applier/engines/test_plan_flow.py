# SPDX-License-Identifier: Apache-2.0
"""The flow of a plan is what linking one by one would give."""

from __future__ import annotations

import pytest
from taskflow import task
from taskflow.patterns import graph_flow

from applier.engines.taskflow_engine import build
from applier.scheduling.order import links
from applier.testing.random_plans import random_plan


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
    for name in after:
        for other in after[name]:
            one_by_one.link(tasks[name], tasks[other])
    assert told(build(after, Nothing)) == told(one_by_one)


def test_a_task_is_made_when_it_is_first_read_and_only_once():
    made = []
    tasks = build({"a": ["b"], "b": []}, lambda name: made.append(name) or Nothing(name)).tasks
    assert made == []
    assert tasks["b"] is tasks["b"]
    assert made == ["b"]


def test_nothing_is_added_later():
    with pytest.raises(TypeError, match="has all tasks of its plan"):
        build({"a": []}, Nothing).add(Nothing("b"))


def test_a_flow_without_actions_is_a_flow():
    assert len(build({}, Nothing)) == 0
