# SPDX-License-Identifier: Apache-2.0
"""Where the values of secrets come from, and what is said about one that cannot be used."""

from __future__ import annotations

import html
import json
import os
import shlex

import pytest

from applier.errors import ActionFailed
from applier.secret_values import MOST_BYTES, BlottedOutput, Blotting, SecretText, resolve, shown

SCHEMA = {"type": "object"}


def value(text, schema=SCHEMA):
    return resolve({"a": [1, {"secret": text}]}, schema).parameters["a"][1]


def test_a_variable(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", " swordfish ")
    assert value("env DB_PASSWORD") == " swordfish "


@pytest.mark.parametrize(
    ("content", "read"), [("one", "one"), ("one\n", "one"), ("one\n\n", "one\n"), ("a\r\n", "a\r")]
)
def test_a_file_without_its_last_line_feed(tmp_path, content, read):
    (tmp_path / "pass word").write_bytes(content.encode())
    assert value(f"file {tmp_path}/pass word") == read


def test_what_is_no_reference_stays_and_is_not_copied():
    parameters = {"a": {"secret": "swordfish"}, "b": {"secret": "env A", "c": 1}, "c": ["x"]}
    assert resolve(parameters, SCHEMA).parameters is parameters


def test_a_value_is_a_text_that_is_not_shown(monkeypatch):
    monkeypatch.setenv("A", "swordfish")
    found = value("env A")
    assert isinstance(found, str)
    assert found == "swordfish"
    assert isinstance(found, SecretText)
    assert repr([found]) == "[<secret:env:A>]"
    assert shown(found) == "secret:env:A"


def refused(text, schema=SCHEMA):
    with pytest.raises(ActionFailed) as caught:
        value(text, schema)
    return str(caught.value)


def test_what_cannot_be_used_is_said_without_a_value(tmp_path, monkeypatch):
    place = tmp_path / "f"
    said = f"a[1]: the secret 'file {place}' cannot be used: "
    assert refused(f"file {place}") == f"{said}No such file or directory"
    for content, why in [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"sword\0fish", "it is not text in UTF-8"),
        (b"sword\xff", "it is not text in UTF-8"),
        (b"s" * (MOST_BYTES + 1), "the file is larger than 64 KiB"),
    ]:
        place.write_bytes(content)
        assert refused(f"file {place}") == said + why
    place.unlink()
    os.mkfifo(place)
    assert refused(f"file {place}") == f"{said}it is not a regular file"
    monkeypatch.delenv("NOSUCH", raising=False)
    assert "'env NOSUCH'" in refused("env NOSUCH")


def test_all_that_cannot_be_used_is_said_at_once():
    with pytest.raises(ActionFailed) as caught:
        resolve({"a": {"secret": "file /nosuch"}, "b": {"secret": "file /none"}}, SCHEMA)
    assert str(caught.value).count("No such file") == 2


def test_a_value_that_the_schema_refuses_is_not_used(monkeypatch):
    schema = {"properties": {"a": {"items": {"type": ["integer", "string"], "pattern": "^http"}}}}
    monkeypatch.setenv("A", "file:///etc/shadow")
    assert refused("env A", schema).startswith("a[1]: the secret 'env A' ")
    monkeypatch.setenv("A", "https://example.com")
    assert value("env A", schema) == "https://example.com"


DIGITS = {"type": "string", "pattern": "^[0-9]+$"}


def test_a_value_that_is_refused_in_a_hidden_mapping_is_not_used(monkeypatch):
    env = {"propertyNames": {"writeOnly": True}, "additionalProperties": DIGITS}
    schema = {"properties": {"env": env, "other": {"type": "integer"}}}
    parameters = {"env": {"A": {"secret": "env A"}, "B": {"secret": "env B"}}, "other": "x"}
    monkeypatch.setenv("A", "swordfish")
    monkeypatch.setenv("B", "1")
    with pytest.raises(ActionFailed) as caught:
        resolve(parameters, schema)
    assert str(caught.value).startswith("env.A: the secret 'env A' ")
    assert "swordfish" not in str(caught.value)
    monkeypatch.setenv("A", "2")
    assert resolve(parameters, schema).parameters["env"] == {"A": "2", "B": "1"}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"properties": {"a": {"contains": {"const": "root"}}}}},
        {"if": {"properties": {"a": {"contains": {"const": "root"}}}}, "then": {"required": ["b"]}},
        {"properties": {"a": {"items": {"pattern": r"^(\p{Lu}+$|[0-9])"}}}},
    ],
)
def test_a_value_for_which_the_schema_refuses_other_parts_is_not_used(schema, monkeypatch):
    monkeypatch.setenv("A", "root")
    assert refused("env A", schema).startswith("a[1]: the secret 'env A' ")
    monkeypatch.setenv("A", "1")
    assert value("env A", schema) == "1"


def test_a_mistake_of_the_parameters_themselves_is_not_said_of_a_value(monkeypatch):
    monkeypatch.setenv("A", "swordfish")
    assert value("env A", {"required": ["b"]}) == "swordfish"


ENV = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "env": {"type": "object", "writeOnly": True, "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("text", "kept"),
    [("1", True), ("en_US", True), ("seven77", True), ("eight888", False), ("swordfish", False)],
)
def test_a_hidden_value_in_the_plan_is_replaced_unless_it_is_short(text, kept):
    """Short values are common words, without which no output could be read."""
    parameters = {"command": "a long command", "env": {"A": text, "B": None}}
    blotting = resolve(parameters, ENV).blotting
    assert blotting(f"it is {text}.") == (f"it is {text}." if kept else "it is ***.")
    assert blotting("a long command") == "a long command", "it is not hidden"


# What is replaced in messages: the value, and the forms in which others repeat it.

KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKC\nxy\n-----END KEY-----"


@pytest.mark.parametrize(
    ("value", "text", "said"),
    [
        ("swordfish", "it is swordfish!", "it is ***!"),
        ("p w'd", f"cannot run {shlex.quote('p w')} {shlex.quote(chr(112))}", None),
        ("p w'd", f"run {shlex.quote(chr(112) + ' w' + chr(39) + 'd')}", "run ***"),
        ("two  blanks", "said two blanks", "said ***"),
        (KEY, f"<{KEY}>", "<***>"),
        (KEY, "line 2: MIIEpAIBAAKC", "line 2: ***"),
        (KEY, json.dumps({"key": KEY}), '{"key": "***"}'),
        ("say \"ä'", repr({"key": "say \"ä'"}), "{'key': '***'}"),
        ("a&b c", f"<{html.escape('a&b c')}> a%26b+c a%26b%20c a&b%20c", "<***> *** *** a&b%20c"),
        ("say 'ä", r"say\ \'ä", "***"),
        ("swordfish", "run: login swordf…: exit code 1", "run: login ***…: exit code 1"),
        ("swordfish", "run: login swo", "run: login ***"),
        ("swordfish", "sworn swan", "sworn swan"),
        ("1", "a1b1", "a***b***"),
    ],
)
def test_a_text_without_the_value(value, text, said):
    assert Blotting([value])(text) == (text if said is None else said)


def test_without_values_nothing_changes_and_nothing_is_held_back():
    seen = []
    output = BlottedOutput(Blotting(), seen.append)
    output("abc")
    assert seen == ["abc"]
    assert Blotting()("abc…") == "abc…"


def test_output_that_is_far_from_a_value_is_passed_on_at_once():
    seen = []
    output = BlottedOutput(Blotting(["swordfish"]), seen.append)
    output("x" * 100)
    assert "".join(seen) == "x" * 92


def test_a_long_value_of_many_lines_costs_little_however_small_the_pieces_are():
    value = "\n".join(f"line {number:08}" for number in range(1500))
    seen, searched = [], []

    class Counting(Blotting):
        def spans(self, text, covered=0):
            searched.append(len(text))
            return super().spans(text, covered)

    output = BlottedOutput(Counting([value]), seen.append)
    for number in range(1500):
        output(f"said {number}\n")
    output.close()
    # Of 1500 pieces only so many had the held end of the output searched once more.
    assert len(searched) < 20
    assert "".join(seen).count("said") == 1500
