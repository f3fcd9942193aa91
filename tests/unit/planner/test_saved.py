# SPDX-License-Identifier: Apache-2.0
"""Plans that come back: what is read, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import make_plan, saved
from planner.documents import as_document
from planner.errors import InvalidInput, InvalidPlan
from planner.model import ActionPlan


def written(**changed: Any) -> dict[str, Any]:
    """A plan of two actions as a mapping, with some fields changed."""
    document = {"name": "two", "actions": [{"action_type": "nop"}, {"action_type": "sleep"}]}
    value: dict[str, Any] = json.loads(json.dumps(make_plan(document, check_types=False).to_dict()))
    return value | changed


def test_a_saved_plan_is_read_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    value = written()
    file.write_text(json.dumps(value))
    assert saved.read_plan(file) == ActionPlan.from_dict(value)


def test_a_plan_is_told_from_a_document_by_its_version() -> None:
    assert saved.is_plan(as_document(written()))
    assert not saved.is_plan(as_document({"actions": []}))


def test_a_plan_without_its_digest_is_read() -> None:
    value = written()
    del value["digest"]
    assert saved.read_plan(value).name == "two"


def test_a_plan_with_a_digest_of_an_older_version_is_read_and_checked_by_its_rule() -> None:
    value = written()
    value["digest"] = ActionPlan.from_dict(value).digest_of_version(1)
    assert saved.read_plan(value).name == "two"
    value["on_failure"] = "continue"
    assert saved.read_plan(value).on_failure == "continue"
    value["actions"][1]["parents"] = []
    with pytest.raises(InvalidInput, match="digest: does not fit the plan"):
        saved.read_plan(value)


def test_another_on_failure_is_a_change_of_the_plan() -> None:
    with pytest.raises(InvalidInput, match="digest: does not fit the plan"):
        saved.read_plan(written(on_failure="continue"))


def test_a_plan_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    value = written()
    value["actions"][1]["parents"] = []
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(value, indent=1))
    with pytest.raises(InvalidInput, match=r"plan\.json:\d+: digest: does not fit the plan"):
        saved.read_plan(file)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"version": "3.0"}, "version: version '3.0' is not supported, only '2.0'"),
        ({"colour": "red"}, "colour: not a field here"),
        ({"state": "DONE"}, "state: 'DONE' is not accepted"),
        ({"limits": {"node:*": 0}}, r"limits\.node:\*: 0 is less than 1"),
        ({"actions": [{"action_type": "nop"}]}, r"actions\[0\]: the field 'uuid' is missing"),
        ({"created_at": "yesterday"}, "created_at: 'yesterday' is not"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        saved.read_plan(written(**changed))


def test_links_that_make_no_graph_are_refused() -> None:
    value = written()
    value["actions"][0]["parents"] = [value["actions"][1]["uuid"]]
    with pytest.raises(InvalidPlan, match="a cycle: nop-1 -> sleep-1 -> nop-1"):
        saved.read_plan(value)
