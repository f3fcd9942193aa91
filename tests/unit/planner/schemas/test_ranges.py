# SPDX-License-Identifier: Apache-2.0
"""Every number that a schema or an option lets in has a range, and a plan in its range is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporary_store import TemporaryStore

from applier.clouds import simulated_document
from planner import documents, make_plan
from planner.errors import InvalidInput
from planner.making import registry, saved
from planner.schemas import ranges

SCHEMAS: dict[str, Mapping[str, Any]] = {
    "saved plan": saved.SCHEMA,
    "simulated cloud": simulated_document.SCHEMA,
    **{name: registry.planner(name).SCHEMA for name in registry.names(registry.PLANNERS)},
    **{name: kind.SCHEMA for name, kind in registry.ActionTypes().items()},
}


def parts(schema: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any], set[str]]]:
    """Yield the path, the schema and the types of each part of a schema."""
    if isinstance(schema, list):
        for entry in schema:
            yield from parts(entry, path)
        return
    if not isinstance(schema, Mapping):
        return
    kinds = schema.get("type")
    yield path, schema, set([kinds] if isinstance(kinds, str) else kinds or ())
    for key, inside in schema.items():
        if key not in ("examples", "default", "enum", "const", "type"):
            yield from parts(inside, f"{path}.{key}")


#: A pattern that every text of some length breaks.
BOUNDED = re.compile(r"\^(?:[^*+{]|\{[0-9]+(?:,[0-9]+)?\})*\$")


def all_parts() -> Iterator[tuple[str, Mapping[str, Any], set[str]]]:
    for name, schema in SCHEMAS.items():
        yield from parts(schema, name)


def test_every_text_of_a_schema_has_a_largest_length() -> None:
    without = [
        path
        for path, schema, kinds in all_parts()
        if "string" in kinds
        and not ({"maxLength", "enum", "const"} & schema.keys())
        and not BOUNDED.fullmatch(schema.get("pattern", ""))
    ]
    assert not without


def test_every_free_name_of_a_schema_has_a_largest_length() -> None:
    without = [
        path
        for path, schema, _ in all_parts()
        if isinstance(schema.get("additionalProperties"), dict)
        and not ({"maxLength", "enum"} & schema.get("propertyNames", {}).keys())
    ]
    assert not without


def test_every_number_of_a_schema_has_a_range() -> None:
    without = [
        path
        for path, schema, kinds in all_parts()
        # A text or a number is a name: 3 is the uid "3".
        if {"integer", "number"} & kinds
        and "string" not in kinds
        and not ("maximum" in schema and {"minimum", "exclusiveMinimum"} & set(schema))
    ]
    assert not without


HUGE = ("1e308", str(10**30), "9" * 320, "1000000000", "-1")
FIELDS = ("estimate_s", "timeout_s", "retries")


@pytest.mark.parametrize("field", FIELDS)
def test_a_number_out_of_its_range_is_refused_with_its_line(field: str) -> None:
    for number in HUGE:
        text = f"actions:\n  - action_type: nop\n    {field}: {number}\n"
        for source, written in (
            ("a.yaml", text),
            ("a.json", f'{{"actions":\n [{{"action_type": "nop",\n "{field}": {number}}}]}}'),
        ):
            sentence = rf"^{source}:3: actions\[0\]\.{field}: .* than "
            with pytest.raises(InvalidInput, match=sentence):
                make_plan(documents.parse(written, source))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("actions: [{action_type: sleep, input_parameters: {duration: 1e300}}]", "is more than"),
        ("actions: []\nlimits: {'node:*': 1000000000000}", "is more than"),
        ("actions: []\nlimits: {'node:*': " + "9" * 320 + "}", "is more than"),
        ("actions: []\nname: " + "n" * 256, "is too long: at most 255 characters"),
        ("actions: [{action_type: " + "n" * 256 + "}]", "is too long: at most 255 characters"),
        ("actions: []\noptions: {parallelization: {nop: 1e300}}", "is more than"),
    ],
)
def test_what_no_store_keeps_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        make_plan(documents.parse(text, "a.yaml"))


def test_json_with_more_digits_than_python_reads_has_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"^a\.json:2: "):
        documents.parse('{"actions":\n [' + "9" * 5000 + "]}", "a.json")


@given(
    estimate=st.floats(0, ranges.LONGEST_S),
    retries=st.integers(0, ranges.MOST),
    limit=st.integers(1, ranges.MOST),
    name=st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=255),
)
def test_what_is_in_its_range_is_kept(estimate: float, retries: int, limit: int, name: str) -> None:
    action = {"action_type": "nop", "estimate_s": estimate, "retries": retries}
    document = {"name": name, "actions": [action] * 3, "limits": {"type:nop": limit}}
    plan = make_plan(document)
    store = TemporaryStore()
    try:
        store.save_plan(plan)
        assert store.load_plan(plan.uuid) == plan
    finally:
        store.close()
    assert saved.read_plan(json.loads(json.dumps(plan.to_dict()))) == plan


def named(name: str) -> dict[str, Mapping[str, Any]]:
    """Return documents with things of a name that planners put into tokens."""
    instance = "6a1f0001-0000-4000-8000-000000000001"
    move = {"resource_id": instance, "migration_type": "live", "source_node": name}
    power = {"resource_id": name, "state": "off"}
    create = {"name": name, "configuration": {}}
    tasks = [{"id": name, "type": "shell", "role": "*", "parameters": {"cmd": "true"}}]
    given = {"migrate": move, "change_node_power_state": power, "create_instance": create}
    return {
        "deployment": {"kind": "deployment", "nodes": [{"uid": name}], "tasks": tasks},
        **{
            kind: {"actions": [{"action_type": kind, "input_parameters": parameters}]}
            for kind, parameters in given.items()
        },
    }


@pytest.mark.parametrize("kind", named("n"))
def test_a_name_that_is_accepted_fits_into_tokens(kind: str) -> None:
    plan = make_plan(named("n" * ranges.LONGEST_RESOURCE)[kind])
    assert saved.read_plan(json.loads(json.dumps(plan.to_dict()))) == plan
    with pytest.raises(InvalidInput, match="is too long: at most 240 characters"):
        make_plan(named("n" * (ranges.LONGEST_RESOURCE + 1))[kind])


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00",
        "2026-01-01T25:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "0000-01-01T00:00:00",
        "9999-12-31T23:59:59-12:00",
        "2026-01-01T00:00:00+99:00",
    ],
)
@pytest.mark.parametrize("field", ["created_at", "updated_at", "started_at", "ended_at"])
def test_a_time_that_does_not_exist_is_refused_with_its_line(
    text: str, field: str, tmp_path: Path
) -> None:
    value = json.loads(json.dumps(make_plan({"actions": [{"action_type": "nop"}]}).to_dict()))
    place = value if field in value else value["actions"][0]
    place[field] = text
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(value, indent=1))
    line = next(i for i, found in enumerate(file.read_text().splitlines(), 1) if text in found)
    with pytest.raises(InvalidInput, match=rf"plan\.json:{line}: .*{field}: .*time that exists"):
        saved.read_plan(file)


@given(st.datetimes(datetime(1000, 1, 3), datetime(9999, 12, 29)))  # noqa: DTZ001
def test_every_time_that_a_database_keeps_is_read_as_it_is(found: Any) -> None:
    assert ranges.moment(found.isoformat()) == found.replace(tzinfo=UTC)
