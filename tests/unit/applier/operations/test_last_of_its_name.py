# SPDX-License-Identifier: Apache-2.0
"""A new plan is compared with the last one of its name, whenever the two were made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from applier.operations.differences import MOST_COMPARED, from_last_of_its_name
from applier.testing.sample_plans import MADE, new_plan
from planner.guards import Guards
from planner.guards.blast_radius import Share

AGED = Guards(approval_max_age_s=60.0, extent=(Share("hosts", 1, 2),))
LATER = MADE + timedelta(hours=1)


@pytest.fixture(params=[2, MOST_COMPARED + 1])
def plan(request, site):
    names = [f"a{i}" for i in range(request.param)]
    made = replace(new_plan(*names, uuid="6a1f"), name="nightly", guards=AGED)
    site.store.save_plan(made)
    return made


@pytest.mark.parametrize(
    "changed",
    [
        {"created_at": LATER},
        {"facts_at": LATER, "guards": AGED._replace(extent=(Share("hosts", 1, 9),))},
    ],
)
def test_a_plan_that_does_the_same_is_the_same_at_another_time(site, plan, changed):
    told = from_last_of_its_name(site.store, replace(plan, **changed))
    assert told.startswith("Same as plan 6a1f ")


def test_a_large_plan_of_which_the_digest_covers_no_facts_is_not_loaded(site, monkeypatch):
    names = [f"a{i}" for i in range(MOST_COMPARED + 1)]
    made = replace(new_plan(*names, uuid="6a1f"), name="nightly")
    site.store.save_plan(made)
    monkeypatch.setattr(type(site.store), "load_plan", None)
    told = from_last_of_its_name(site.store, replace(made, on_failure="pause", created_at=LATER))
    assert told.startswith("Differs from plan 6a1f ")


def test_a_plan_that_does_something_else_differs(site, plan):
    told = from_last_of_its_name(site.store, replace(plan, facts_at=LATER, on_failure="pause"))
    assert told.startswith("Differs from plan 6a1f ")
