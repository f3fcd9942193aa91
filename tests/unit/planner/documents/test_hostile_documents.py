# SPDX-License-Identifier: Apache-2.0
"""Documents that repeat themselves, nest too deep or cannot be kept: refused, with the line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner import documents
from planner.documents import yaml_text
from planner.errors import InvalidInput
from planner.safe_text import DEEPEST

REPEATS = "aliases repeat more than 1,000,000 values"
DEEP = "lists and mappings are nested more than 200 deep"


def refusal(text: str | bytes, source: str = "plan.yaml") -> str:
    with pytest.raises(InvalidInput) as refused:
        documents.parse(text, source)
    (mistake,) = refused.value.mistakes
    return str(mistake)


def laughs(levels: int, inner: str, each: str) -> str:
    """Repeat nine times on each level what the level before repeats nine times."""
    lines = [f"a0: &a0 {inner}"]
    lines += [
        f"a{i}: &a{i} {each.replace('...', ', '.join([f'*a{i - 1}'] * 9))}"
        for i in range(1, levels)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        laughs(30, "[lol, lol]", "[...]"),
        laughs(30, "{k: lol}", "{<<: [...]}"),
        laughs(30, "lol", "[[...], {k: v}]"),
        laughs(30, "lol", "!Join [...]"),
        laughs(5, f"'{'long ' * 20000}'", "[...]"),
    ],
    ids=["lists", "merges", "mixed", "short forms", "long texts"],
)
def test_what_aliases_of_aliases_repeat_is_bounded_before_it_is_read(text: str) -> None:
    calls = [0]

    def count(*_: object) -> None:
        calls[0] += 1

    sys.setprofile(count)
    try:
        said = refusal(text)
    finally:
        sys.setprofile(None)
    assert said.startswith("plan.yaml:")
    assert said.endswith(f": not YAML: {REPEATS}")
    assert calls[0] < 20_000, "the work must not grow with what the aliases repeat"


def test_the_line_is_that_of_the_alias_that_repeats_too_much() -> None:
    # Line n + 1 repeats nine times what line n is: 9, 90, 819, ... 597,870, and then too much.
    assert refusal(laughs(30, "lol", "[...]")).startswith("plan.yaml:8: ")


def test_as_many_as_a_large_plan_repeats_are_read() -> None:
    parameters = ", ".join(f"key{i}: {i}" for i in range(50))
    entries = "".join("  - {action_type: nop, input_parameters: *p}\n" for _ in range(2000))
    text = f"p: &p {{{parameters}}}\nactions:\n{entries}"
    read = documents.parse(text, "plan.yaml").value
    assert len(read["actions"]) == 2000
    assert read["actions"][-1]["input_parameters"]["key49"] == 49


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x [*x]", 1),
        ("a: &x\n  b: *x", 2),
        ("a: &x\n  - [1,\n  {b: *x}]", 3),
        ("a: &x\n  b: 1\n  <<: *x", 3),
        ("&x\na: &y\n  - *y\n", 3),
        ("- &x {a: 1}\n- &y [&z [*x, *y]]", 2),
    ],
)
def test_an_alias_inside_what_it_stands_for_is_refused_with_its_line(text: str, line: int) -> None:
    said = refusal(text)
    assert said.startswith(f"plan.yaml:{line}: not YAML: the alias *")
    assert said.endswith(" is inside what it stands for")


def nested(depth: int, opens: str, closes: str) -> str:
    return opens * depth + "1" + closes * depth


FLOW = [("[", "]"), ('{"a": ', "}"), ('[{"a": ', "}]")]


@pytest.mark.parametrize("source", ["plan.yaml", "plan.json"])
@pytest.mark.parametrize("prefix", ["", "a:\n  "], ids=["JSON", "YAML"])
@pytest.mark.parametrize("brackets", FLOW, ids=["lists", "mappings", "both"])
def test_the_deepest_is_read_and_one_more_is_refused_with_its_line(source, prefix, brackets):
    levels = DEEPEST - 2 * bool(prefix)
    levels = levels // 2 if len(brackets[1]) == 2 else levels
    documents.parse(prefix + nested(levels, *brackets), source)
    deeper = nested(levels + 2, *brackets)
    line = 2 if prefix else 1
    assert refusal(prefix + deeper, source).startswith(f"plan.{source[-4:]}:{line}: ")
    assert refusal(prefix + deeper, source).endswith(DEEP)


@pytest.mark.parametrize("count", [DEEPEST + 1, 1_000, 100_000])
@pytest.mark.parametrize("source", ["plan.yaml", "plan.json"])
def test_brackets_that_only_open_are_refused_with_their_line(count: int, source: str) -> None:
    text = '{"a[[[": "[[[\\"[[[",\n "b":\n' + "[" * count
    assert refusal(text, source).startswith(f"{source}:3: ")


def test_aliases_nest_as_deep_as_what_they_stand_for() -> None:
    half = DEEPEST // 2
    inner = f"a: &a {nested(half, '[', ']')}\nb: "
    assert documents.parse(inner + nested(half - 2, "[", "]").replace("1", "*a"), "plan.yaml")
    said = refusal(inner + nested(half + 1, "[", "]").replace("1", "*a"))
    assert said == f"plan.yaml:2: not YAML: {DEEP}"


@pytest.mark.parametrize("deep", ["!Join [", "{<<: ", "{k: !Ref [", "[{<<: {a: "])
def test_the_deepest_is_read_also_with_short_forms_and_merges(deep: str) -> None:
    times = (DEEPEST - 2) // sum(deep.count(c) for c in "[{")
    closes = "".join("]" if c == "[" else "}" for c in reversed(deep) if c in "[{")
    inner = "{}" if "<<" in deep else "1"
    text = f"Resources: 1\na: {deep * times}{inner}{closes * times}\n"
    assert documents.parse(text, "plan.yaml").locate(("a",)) == "plan.yaml:2"


NOT_ALLOWED = "is not allowed"


def test_a_character_that_no_store_keeps_is_refused_with_its_line():
    yaml_texts = ("a{}: 1\n", "a: x{}\n", "# {}\na: 1\n")
    json_texts = ('{{"a{}": 1}}', '{{"a": "{}"}}', '{{"a": 1}} {}')
    for text in (*yaml_texts, *json_texts):
        for character in map(chr, (0, 0xD800, 0xDBFF, 0xDC00, 0xDFFF)):
            said = refusal("\n\n" + text.format(character))
            assert said == f"plan.yaml:3: the character U+{ord(character):04X} {NOT_ALLOWED}"


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\uDBFF", "\\udc00", "\\udfFF"])
@pytest.mark.parametrize("text", ['{{"a": 1,\n "b{}": 1}}', '{{"a": [1,\n "\\\\{} x"]}}'])
def test_an_escape_for_such_a_character_is_refused_with_its_line(text: str, escape: str) -> None:
    said = refusal(text.format(escape), "plan.json")
    assert said == f"plan.json:2: the character U+{escape[2:].upper()} {NOT_ALLOWED}"


@pytest.mark.parametrize("escape", ["\\0", "\\x00", "\\u0000", "\\ud800"])
def test_an_escape_of_yaml_is_refused_with_its_line(escape: str) -> None:
    assert refusal(f'a: 1\nb: "x{escape}"\n').startswith("plan.yaml:2: not YAML: ")


@pytest.mark.parametrize("text", ['["\\ud83d\\ude00"]', '["\\\\u0000", "\\\\ud800", "\\u00e9"]'])
def test_pairs_of_surrogates_and_escaped_backslashes_are_text(text: str) -> None:
    assert documents.parse(text, "plan.json").value == json.loads(text)


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\x7f", "\x9b", "\ufffe"])
def test_a_control_character_in_yaml_is_refused_with_its_line(character: str) -> None:
    said = refusal(f"a: 1\n\nb: x{character}\n")
    assert said == f"plan.yaml:3: the character U+{ord(character):04X} {NOT_ALLOWED}"


def test_json_with_a_control_character_that_json_allows_knows_its_lines() -> None:
    read = documents.parse('{"a": "\x7f",\n "b": 1}', "plan.json")
    assert read.locate(("b",)) == "plan.json:2"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a: ü".encode("latin-1"), 1),
        (b"a: 1\r\nb: \xff", 2),
        (b"a: 1\n\n\xed\xa0\x80", 3),
        (b"a: \xc0\x80", 1),
        ('{"a": 1}'.encode("utf-16"), 1),
        (b"\x7fELF\x00\n\xfe", 2),
    ],
)
def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path, data: bytes, line: int):
    file = tmp_path / "plan.yaml"
    file.write_bytes(data)
    with pytest.raises(InvalidInput) as refused:
        documents.read(file)
    assert str(refused.value).startswith(f"{file}:{line}: not UTF-8 text: ")


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 4000, "0o" + "7" * 5000, "9" * 5000, "9" * 4001, "-" + "9" * 4001]
)
def test_a_number_of_too_many_digits_is_refused_in_every_base_with_its_line(number: str) -> None:
    text = refusal(f"actions:\n- action_type: nop\n  retries: {number}\n")
    why = f"{number[:40]!r} is not a whole number of at most 4000 digits"
    assert text == f"plan.yaml:3: not YAML: {why}"


@pytest.mark.parametrize("number", ["9" * 4000, "0x" + "f" * 3320, "-" + "9" * 4000])
def test_a_number_of_the_most_digits_is_read(number: str) -> None:
    assert documents.parse(f"a: {number}\n", "a.yaml").value == {"a": int(number, 0)}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end: str) -> None:
    read = documents.parse(end.join(["a: 1", "b: |", "  x", "  y", "c: 2"]).encode(), "plan.yaml")
    assert read.value == {"a": 1, "b": "x\ny\n", "c": 2}
    assert read.locate(("c",)) == "plan.yaml:5"


#: What a document is made of: texts, lists and mappings, some of them anchored, and aliases.
shapes = st.recursive(
    st.sampled_from(["text", "alias"]),
    lambda inner: st.tuples(st.booleans(), st.lists(inner, max_size=4)),
    max_leaves=25,
)


def written(shape: Any, anchors: list[str]) -> str:
    """Write a shape as YAML; an alias is of the newest anchor that is complete."""
    if shape == "text" or (shape == "alias" and not anchors):
        return "text"
    if shape == "alias":
        return f"*{anchors[-1]}"
    anchored, inner = shape
    text = "[" + ", ".join([written(one, anchors) for one in inner]) + "]"
    if anchored:
        anchors.append(f"a{len(anchors)}")
        text = f"&{anchors[-1]} {text}"
    return text


def values(found: Any) -> int:
    return 1 + sum(map(values, found)) if isinstance(found, list) else 1


def depth(found: Any) -> int:
    return 1 + max(map(depth, found), default=0) if isinstance(found, list) else 0


@given(shapes, st.integers(0, 40), st.integers(1, 8))
def test_the_bounds_are_those_of_the_document_with_its_aliases_written_out(shape, most, deepest):
    text = f"[{written(shape, [])}]"
    whole = yaml.safe_load(text)
    nodes = sum(
        isinstance(e, yaml.ScalarEvent | yaml.CollectionStartEvent) for e in yaml.parse(text)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "MOST_REPEATED", most)
        patch.setattr(yaml_text, "DEEPEST", deepest)
        refused = False
        try:
            yaml_text.require_bounded(yaml.parse(text))
        except yaml.MarkedYAMLError:
            refused = True
    assert refused == (values(whole) - nodes > most or depth(whole) > deepest)
