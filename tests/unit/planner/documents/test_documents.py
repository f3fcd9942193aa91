# SPDX-License-Identifier: Apache-2.0
"""Documents as people write them, and as they get them wrong: always with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import documents
from planner.documents import Document
from planner.errors import InvalidInput


def value(text: str, source: str = "plan.yaml") -> Any:
    return documents.parse(text, source).value


def refusal(text: str, source: str = "plan.yaml") -> str:
    with pytest.raises(InvalidInput) as refused:
        documents.parse(text, source)
    return str(refused.value)


def test_a_document_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 2**20)
    (tmp_path / "a.json").write_text('{"a": 1}'.ljust(2**20), encoding="utf-8")
    assert documents.read(tmp_path / "a.json").value == {"a": 1}
    for endless in ("/dev/zero", tmp_path / "b.yaml"):
        (tmp_path / "b.yaml").write_bytes(b"#" * (2**20 + 1))
        with pytest.raises(InvalidInput, match=f"{endless}: too large: at most 1 MiB are read"):
            documents.read(endless)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("off", "off"),
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("true", True),
        ("False", False),
        ("2026-01-02", "2026-01-02"),
        ("12:30:45", "12:30:45"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("1_000", "1_000"),
        ("2.50", 2.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("~", None),
        ("null", None),
        ("", None),
        ('"null"', "null"),
        (".inf", ".inf"),
        (".nan", ".nan"),
    ],
)
def test_a_scalar_is_read_as_yaml_1_2_reads_it(text: str, expected: object) -> None:
    found = value(f"state: {text}")["state"]
    assert found == expected
    assert type(found) is type(expected)


def test_keys_are_text() -> None:
    assert value("1: a\non: b\n2026-01-02: c\n~: d\n") == {
        "1": "a",
        "on": "b",
        "2026-01-02": "c",
        "~": "d",
    }


def test_anchors_and_merges_are_read_and_what_the_mapping_says_wins() -> None:
    text = """
base: &base {migration_type: live, source_node: c1}
a: *base
b: {<<: *base, source_node: c2}
c:
  destination_node: c3
  <<: [*base, {source_node: c9, extra: 1}]
"""
    read = value(text)
    assert read["a"] == {"migration_type": "live", "source_node": "c1"}
    assert read["b"] == {"migration_type": "live", "source_node": "c2"}
    assert read["c"] == {
        "migration_type": "live",
        "source_node": "c1",
        "destination_node": "c3",
        "extra": 1,
    }


def test_what_was_merged_is_merged_in_turn_and_of_a_list_the_first_wins() -> None:
    text = """
a: &a {x: a, y: a, z: a}
b: &b {<<: *a, y: b}
c: &c {x: c, w: c}
first: {<<: [*b, *c, *a]}
last: {<<: [*c, *b], z: own}
again: {<<: [*b, *c, *a]}
"""
    read = value(text)
    assert read["b"] == {"x": "a", "y": "b", "z": "a"}
    assert read["first"] == read["again"] == {"x": "a", "y": "b", "z": "a", "w": "c"}
    assert read["last"] == {"x": "c", "w": "c", "y": "b", "z": "own"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "plan.yaml:3: not YAML: the key 'a' occurs twice"),
        ("x:\n  a: 1\n  a: 1\n", "plan.yaml:3: not YAML: the key 'a' occurs twice"),
        (
            "a: 1\n<<: 5\n",
            "plan.yaml:2: not YAML: only a mapping, or a list of mappings, can be merged",
        ),
        (
            "a: &a {}\nb:\n  <<: [*a,\n    7]\n",
            "plan.yaml:4: not YAML: only a mapping, or a list of mappings, can be merged",
        ),
        ("a: [1,\nb: 2\n", "plan.yaml:3: not YAML: while parsing a flow"),
        ("a: *nobody\n", "plan.yaml:1: not YAML: found undefined alias"),
        ("a:\n\tb: 1\n", "plan.yaml:2: not YAML: a tab at the beginning of a line"),
        ("a: 1\n---\nb: 2\n", "plan.yaml:2: not YAML: expected a single document"),
        ("a: 1e999\n", "plan.yaml:1: not YAML: '1e999' is not a finite number"),
        (f"\na: {'9' * 5000}\n", "plan.yaml:2: not YAML: '99999"),
        ("a: !!int x\n", "plan.yaml:1: not YAML: 'x' is not a whole number"),
        ("a: !!set {b}\n", "plan.yaml:1: not YAML: could not determine a constructor"),
        ("\n? [a]\n: 1\n", "plan.yaml:2: not YAML: a key is a list or mapping"),
        ("a: !!python/object:os.system ls\n", "plan.yaml:1: not YAML: could not"),
        ("- " * 300, "plan.yaml:1: not YAML: lists and mappings are nested more than 200"),
        ("\n" + "[ " * 100_000, "plan.yaml:2: lists and mappings are nested more than 200 deep"),
        ("a: {\n", "plan.yaml:2: not YAML: "),
    ],
)
def test_what_is_wrong_with_yaml_is_said_with_its_line(text: str, expected: str) -> None:
    assert refusal(text).startswith(expected)


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "null", "---\n"])
def test_an_empty_document_is_refused_with_what_is_expected(text: str) -> None:
    assert all(word in refusal(text) for word in ("empty", "'actions'", "'kind'"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', "plan.json:3: the key 'a' occurs twice"),
        ('{"x": {"a": 1,\n\t"a": 3}}', "plan.json:2: the key 'a' occurs twice"),
        # Both name a key that occurs twice, and each another one.
        ('{"x": 1,\n "x": {"key": 1,\n "key": 2}}', "plan.json: the key 'key' occurs twice"),
        ('{"a": 1, b}', "plan.json:1: not JSON: Expecting property name"),
        # What is said of it depends on the version of Python.
        ('{"a": 1,}', "plan.json:1: not JSON: "),
        ('{"a": 1\n "b": 2}', "plan.json:2: not JSON: Expecting ',' delimiter"),
        ('{"a":\n NaN}', "plan.json:2: NaN is not a finite number"),
        ('{"a": "NaN",\n "b": -Infinity}', "plan.json:2: -Infinity is not a finite number"),
        ('{"a": [1,\n\n1e999]}', "plan.json:3: 1e999 is not a finite number"),
        ('{"a": 1} {"b": 2}', "plan.json:1: not JSON: Extra data"),
        ("[\n" + "[" * 100_000, "plan.json:2: lists and mappings are nested more than 200 deep"),
        (f"[{'9' * 5000}]", "plan.json:1: "),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_line(text: str, expected: str) -> None:
    assert refusal(text, "plan.json").startswith(expected)


def test_what_begins_like_json_and_is_yaml_is_read_as_yaml() -> None:
    assert value("{a: off, # a comment\n b: [1, 2]}") == {"a": "off", "b": [1, 2]}


@pytest.mark.parametrize("text", ['\ufeff{"a": 1}', "\ufeffa: 1\n"])
def test_a_byte_order_mark_is_passed_over(text: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    assert documents.read(file).value == {"a": 1}


def test_json_with_tabs_knows_its_lines() -> None:
    read = documents.parse('{\n\t"a": [\n\t\t1,\n\t\t{"b": "\\ud83d\\ude00"}\n\t]\n}', "plan.json")
    assert read.locate(("a", 1, "b")) == "plan.json:4"


def test_a_list_is_a_value_like_any_other() -> None:
    assert value("- 1\n- 2\n") == [1, 2]


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"no-such/plan\.yaml: .*: No such file"):
        documents.read("no-such/plan.yaml")


def test_a_folder_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        documents.read(tmp_path)


def test_a_path_that_cannot_be_one_is_named() -> None:
    with pytest.raises(InvalidInput, match="cannot be read: embedded null byte"):
        documents.read("plan\0.yaml")


def test_text_that_is_not_utf_8_is_refused_with_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes("a: ü".encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"plan\.yaml:1: .*UTF-8.* byte 3$"):
        documents.read(file)


TEXT = """\
kind: solution
actions:
  - action_type: nop

  - action_type: migrate
    input_parameters:
      source_node: c1
options: {weights: {nop: 1}}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("kind",), 1),
        (("actions",), 2),
        (("actions", 0), 3),
        (("actions", 1), 5),
        (("actions", 1, "input_parameters", "source_node"), 7),
        (("actions", 1, "input_parameters", "destination_node"), 6),
        (("actions", 9), 2),
        (("options", "weights", "nop"), 8),
        (("nothing",), 1),
    ],
)
def test_a_place_is_the_line_or_the_nearest_around_it(path: tuple, line: int) -> None:
    assert documents.parse(TEXT, "plan.yaml").locate(path) == f"plan.yaml:{line}"


def test_the_same_places_are_found_in_json() -> None:
    text = json.dumps(value(TEXT), indent=2)
    read = documents.parse(text, "plan.json")
    line = next(n for n, one in enumerate(text.splitlines(), 1) if '"source_node"' in one)
    assert read.locate(("actions", 1, "input_parameters", "source_node")) == f"plan.json:{line}"


def test_a_mapping_has_no_lines() -> None:
    read = documents.as_document({"actions": []})
    assert read == Document({"actions": []})
    assert read.locate(("actions",)) is None


def test_a_document_that_was_read_stays_as_it_is() -> None:
    read = documents.parse(TEXT, "plan.yaml")
    assert documents.as_document(read) is read
