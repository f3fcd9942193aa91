# SPDX-License-Identifier: Apache-2.0
"""Parameters that nobody checked are read without an error."""

from __future__ import annotations

import pytest

from applier.actions.parameters import one_line, resource, text, touch
from planner.plan.model import Effect, Touch


@pytest.mark.parametrize("value", [None, "", "  ", 5, True, ["a"], {"a": 1}])
def test_what_is_no_text_is_nothing(value):
    assert text({"flavor": value}, "flavor") is None


def test_a_name_is_read_before_an_id():
    assert resource({"resource_id": "6a1f", "resource_name": "web-1"}, "it") == "web-1"
    assert resource({"resource_id": "6a1f"}, "it") == "6a1f"
    assert resource({}, "it") == "it"


def test_what_has_no_name_or_no_effect_is_not_touched():
    assert touch("node", "compute-1", Effect.LEAVES) == (Touch("node:compute-1", Effect.LEAVES),)
    assert touch("node", None) == ()
    assert touch("node", "compute-1", None) == ()


def test_what_steers_a_terminal_is_not_shown():
    assert one_line("a\x1b[2Jb\x07") == "a?[2Jb?"


def test_a_line_is_cut_to_its_limit():
    assert one_line("x" * 60, 60) == "x" * 60
    assert one_line("x" * 61, 60) == "x" * 59 + "…"
