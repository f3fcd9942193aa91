# SPDX-License-Identifier: Apache-2.0
"""Plans that come back: what is read, and what is refused with its place."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planner import make_plan
from planner.documents import as_document
from planner.errors import InvalidInput
from planner.making import saved
from planner.making.planning import ParameterCheck
from planner.making.registry import ActionTypes
from planner.plan.model import ActionPlan


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


def test_a_plan_is_read_without_its_digest_and_with_the_limits_that_are_shown() -> None:
    value = written()
    assert saved.read_plan(value | {"limits_now": {"node:*": 1}}) == saved.read_plan(value)
    del value["digest"]
    assert saved.read_plan(value).name == "two"
    assert as_document(value).is_plan
    assert not as_document({"actions": []}).is_plan


def test_a_saved_plan_keeps_its_cloud_and_another_one_is_refused() -> None:
    document = {"actions": [{"action_type": "nop"}]}
    value = make_plan(document, cloud="east").to_dict()
    assert value["cloud"] == saved.read_plan(value).cloud == "east"
    with pytest.raises(InvalidInput, match="digest: does not fit the plan"):
        saved.read_plan({**value, "cloud": "west"})


def test_a_plan_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    value = written()
    value["actions"][1]["parents"] = []
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(value, indent=1))
    with pytest.raises(InvalidInput, match=r"plan\.json:\d+: digest: does not fit"):
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
        ({"on_failure": "continue"}, "digest: does not fit the plan"),
        ({"digest": "v5:sha256:b8e4"}, r"digest: .*without this line"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        saved.read_plan(written(**changed))


def test_links_that_make_no_graph_are_refused() -> None:
    value = written()
    value["actions"][0]["parents"] = [value["actions"][1]["uuid"]]
    with pytest.raises(InvalidInput, match="a cycle: nop-1 -> sleep-1 -> nop-1"):
        saved.read_plan(value)


ANOTHER = "11111111-1111-4111-8111-111111111111"


def of(text: str, value: dict[str, Any], folder: Path) -> tuple[Path, int]:
    """Write a plan with a line for each value; return the file, and the line with the text."""
    file = folder / "plan.json"
    file.write_text(json.dumps(value, indent=1))
    lines = file.read_text().splitlines()
    return file, max(i for i, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("field", ["parents", "needs", "needs_any", "triggers", "blocked_by"])
def test_a_link_to_an_unknown_action_has_its_line(field: str, tmp_path: Path) -> None:
    value = written()
    link = {"action": ANOTHER, "outcomes": ["failed"]}
    value["actions"][1][field] = (
        [link] if field in ("triggers", "blocked_by") else [[ANOTHER]] if "any" in field else []
    )
    if field in ("parents", "needs"):
        value["actions"][1][field] = [ANOTHER]
    text = '"action"' if field in ("triggers", "blocked_by") else ANOTHER
    file, line = of(text, value, tmp_path)
    with pytest.raises(InvalidInput) as refused:
        saved.read_plan(file)
    places = [m.place for m in refused.value.mistakes]
    # An entry of a list begins on the line of its bracket or brace.
    assert str(file) in str(places[0])
    assert int(str(places[0]).rpartition(":")[2]) in (line - 1, line)


def test_a_cycle_and_what_stands_twice_have_their_lines(tmp_path: Path) -> None:
    value = written()
    first, second = (action["uuid"] for action in value["actions"])
    value["actions"][0]["parents"] = [second]
    value["actions"][1]["parents"] = [first]
    file, _ = of(first, value, tmp_path)
    with pytest.raises(InvalidInput, match=r"plan\.json:\d+: actions\[0\]\.parents\[0\]: a cycle"):
        saved.read_plan(file)
    value["actions"][0]["parents"] = []
    value["actions"][1] |= {"uuid": first, "parents": [], "name": value["actions"][0]["name"]}
    file, line = of(f'"uuid": "{first}"', value, tmp_path)
    with pytest.raises(InvalidInput, match=rf"plan\.json:{line}: .* occurs twice") as refused:
        saved.read_plan(file)
    assert len(refused.value.mistakes) == 2


def test_a_uuid_that_is_none_is_refused() -> None:
    wrong = ("last", "%", "--help", "", "a", "../x", f"{ANOTHER}\n", ANOTHER.upper()[:35], "*")
    for uuid, of_plan in product(wrong, (True, False)):
        value = written()
        (value if of_plan else value["actions"][0])["uuid"] = uuid
        with pytest.raises(InvalidInput, match=r"uuid: .*is not a UUID"):
            saved.read_plan(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", "SUCCEEDED"),
        ("state", "ONGOING"),
        ("outcome", "ok"),
        ("state_reason", "operator"),
        ("started_at", "2026-01-01T00:00:00Z"),
        ("ended_at", "2026-01-01T00:00:00Z"),
        ("attempts", 1),
    ],
)
def test_what_only_a_run_writes_is_not_new(field: str, value: Any, tmp_path: Path) -> None:
    changed = written()
    changed["actions"][1][field] = value
    file, line = of(f'"{field}": {json.dumps(value)}', changed, tmp_path)
    plan = saved.read_plan(file)
    with pytest.raises(InvalidInput, match=rf"plan\.json:{line}: actions\[1\]\.{field}: "):
        saved.require_new(plan, as_document(file))


def test_a_plan_as_it_is_made_is_new() -> None:
    value = written()
    saved.require_new(saved.read_plan(value), as_document(value))


def test_parameters_and_types_are_checked_with_their_lines(tmp_path: Path) -> None:
    value = written()
    del value["digest"]
    value["actions"][0]["action_type"] = "nopp"
    value["actions"][1]["input_parameters"] = {"duration": "long"}
    file, line = of('"long"', value, tmp_path)
    plan, known = saved.read_plan(file), ActionTypes()
    with pytest.raises(InvalidInput) as refused:
        saved.require_known_types(plan, as_document(file), known, ParameterCheck(known))
    first, second = refused.value.mistakes
    assert first.path == ("actions", 0, "action_type")
    assert "did you mean 'nop'?" in first.text
    assert str(second).startswith(f"{file}:{line}: actions[1].input_parameters.duration: 'long' ")
