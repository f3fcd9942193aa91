# SPDX-License-Identifier: Apache-2.0
"""Which policies of a rolling update are accepted, and what is said of the others."""

from __future__ import annotations

import pytest

from planner.planners.rolling_update import update_policy
from planner.planners.rolling_update.functions import Resolver


@pytest.fixture
def resolver() -> Resolver:
    return Resolver({}, {}, ())


def told(resolver: Resolver) -> list[str]:
    return [str(mistake) for mistake in resolver.mistakes]


def test_a_pause_of_an_hour_is_the_longest(resolver: Resolver) -> None:
    for text in ("PT1H", "PT60M", "PT3600S"):
        policy = update_policy.one_entry(resolver, {"RollingUpdate": {"PauseTime": text}}, ())
        assert policy is not None
        assert policy.pause_s == 3600
    assert told(resolver) == []
    update_policy.one_entry(resolver, {"RollingUpdate": {"PauseTime": "PT1H1S"}}, ())
    (mistake,) = told(resolver)
    assert mistake.startswith("RollingUpdate.PauseTime: PT1H1S ")
    assert "at most 3600 s" in mistake


def test_the_policy_of_a_resource_group_has_two_fields(resolver: Resolver) -> None:
    found = {"rolling_update": {"max_batch_size": 2}, "batch_create": {}}
    policy = update_policy.of_resource_group(resolver, found, ("update_policy",))
    assert policy is not None
    assert policy.max_batch_size == 2
    assert told(resolver) == []
    update_policy.of_resource_group(resolver, {"rolling_updates": {}}, ("update_policy",))
    (mistake,) = told(resolver)
    assert mistake.startswith("update_policy.rolling_updates: not a field here")
