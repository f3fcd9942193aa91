# SPDX-License-Identifier: Apache-2.0
"""The flow of a plan is what linking one by one would give."""

from __future__ import annotations

import pytest
from taskflow import exceptions, task
from taskflow.patterns import graph_flow

from applier.engines.flow import BulkFlow, build
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


def test_a_loop_is_refused_and_nothing_is_linked():
    flow, first, second = BulkFlow("plan"), Nothing("a"), Nothing("b")
    flow.add(first, second)
    with pytest.raises(exceptions.DependencyFailure):
        flow.link_all([(first, second), (second, first)])
    assert not list(flow.iter_links())


def test_it_goes_on_with_the_links_that_are_there():
    flow, tasks = BulkFlow("plan"), [Nothing(name) for name in "abc"]
    flow.add(*tasks)
    flow.link(tasks[0], tasks[1])
    flow.link_all([(tasks[1], tasks[2])])
    assert told(flow)[1] == [("a", "b", [("manual", True)]), ("b", "c", [("manual", True)])]


def test_a_flow_without_actions_is_a_flow():
    assert len(build({}, Nothing)) == 0
