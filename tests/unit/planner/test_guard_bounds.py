# SPDX-License-Identifier: Apache-2.0
"""The largest and smallest values of guards, in a document and on the command line."""

from __future__ import annotations

import pytest

from planner import guards, make_plan
from planner.errors import InvalidInput

WINDOW, BUDGET = "sat 22:00-04:00 UTC", "3 in 1h"


def planned(**demanded):
    return make_plan({"actions": [{"action_type": "nop"}], "guards": demanded}).guards


def test_texts_of_a_document_have_a_longest():
    assert planned(windows=[WINDOW.ljust(200)]).windows == planned(windows=[WINDOW]).windows
    assert planned(failure_budget=[BUDGET.ljust(300)]).failure_budget == (BUDGET,)
    assert planned(labels=["l" * 255]).labels == ("l" * 255,)


@pytest.mark.parametrize(
    "demanded",
    [
        {"windows": [WINDOW.ljust(201)]},
        {"failure_budget": [BUDGET.ljust(301)]},
        {"labels": ["l" * 256]},
        {"blast_radius": {"k" * 201: 1}},
    ],
)
def test_a_longer_text_is_refused(demanded):
    with pytest.raises(InvalidInput, match="too long"):
        planned(**demanded)


def test_settings_reach_their_bounds():
    assert guards.read_setting("approvals", "100") == 100
    assert guards.read_setting("approvals", "0") == 0
    assert guards.read_setting("approval_by_another", "false") is False
    assert guards.read_setting("approval_max_age_s", "0.5") == 0.5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("approvals", "101"),
        ("approvals", "-1"),
        ("approval_by_another", "yes"),
        ("approval_max_age_s", "0"),
        ("approval_max_age_s", "1e3"),
        ("approval_max_age_s", "9999999999"),
    ],
)
def test_a_setting_beyond_its_bounds_is_refused(name, text):
    with pytest.raises(ValueError, match="is not"):
        guards.read_setting(name, text)
