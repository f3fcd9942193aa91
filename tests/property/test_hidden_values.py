# SPDX-License-Identifier: Apache-2.0
"""No secret value is shown: not what a schema marks, nor in any form that output writes it in."""

from __future__ import annotations

import html
import json
import shlex
import subprocess
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from applier.secret_values import BLOT, BlottedOutput, Blotting
from planner.errors import Mistake
from planner.schemas import schema_errors
from planner.schemas.hidden_values import hidden

NAMES = ("a", "b", "ab")
leaves = st.sampled_from(
    [{}, True, {"writeOnly": True}, {"type": "string"}, {"type": "object"}, {"required": ["a"]}]
)


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make schemas of some keywords with schemas inside."""
    named = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
    listed = st.lists(inner, min_size=1, max_size=2)
    one = ("additionalProperties", "unevaluatedProperties", "propertyNames", "items")
    one += ("unevaluatedItems", "contains", "not", "if", "then", "else")
    keywords: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(one, inner),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), listed),
        **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), named),
        "writeOnly": st.just(True),
        "type": st.sampled_from(["string", "object", "array"]),
    }
    some = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return some.flatmap(lambda used: st.fixed_dictionaries({k: keywords[k] for k in used}))


schemas = st.recursive(leaves, schemas_of, max_leaves=8)
shapes = st.recursive(
    st.just("text"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


def numbered(shape: Any) -> Any:
    """Return a value of a shape in which each text is another one."""
    numbers = iter(range(1000))

    def made(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: made(held) for key, held in part.items()}
        if isinstance(part, list):
            return [made(held) for held in part]
        return f"text-{next(numbers):03}"

    return made(shape)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else ():
        yield from texts(part)
    for part in value if isinstance(value, list) else ():
        yield from texts(part)


def marked(schema: Any, value: Any) -> tuple[set[str], list[ValidationError]]:
    """Return the texts that jsonschema finds to be marked, not names of fields, and its errors."""
    found: set[str] = set()

    def write_only(_: Any, is_set: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
        if is_set:
            found.update(text for text in texts(instance) if text.startswith("text-"))
        return iter(())

    checker = validators.extend(Draft202012Validator, {"writeOnly": write_only})
    return found, list(checker(schema).iter_errors(value))


@given(schemas, shapes.map(numbered))
def test_what_is_marked_is_never_shown(schema: Any, value: Any) -> None:
    reached, errors = marked(schema, value)
    shown = json.dumps(hidden(schema, value))
    assert [text for text in reached if text in shown] == []
    told: list[Mistake] = schema_errors.find(schema, value) if errors else []
    repeated = [(text, m) for text in reached for m in told if text in str(m)]
    assert repeated == []


# No secret value passes, however the output is cut into pieces.

# Few letters, so that values overlap each other and themselves.
letters = st.text("ab", min_size=1, max_size=5)
values = st.sets(letters, min_size=1, max_size=3)


@settings(max_examples=examples(200))
@given(values, st.lists(st.text("abc", max_size=6), max_size=8))
def test_pieces_give_what_the_whole_gives_and_no_value_is_in_it(secrets, pieces):
    blotting, seen = Blotting(secrets), []
    output = BlottedOutput(blotting, seen.append)
    for piece in pieces:
        output(piece)
    output.close()
    whole, text = "".join(seen), "".join(pieces)
    covered = [False] * len(text)
    for value in secrets:
        for first in range(len(text)):
            if text.startswith(value, first):
                covered[first : first + len(value)] = [True] * len(value)
    expected, before = "", False
    for letter, is_hidden in zip(text, covered, strict=True):
        if is_hidden and not before:
            expected += BLOT
        expected += "" if is_hidden else letter
        before = is_hidden
    # Two occurrences side by side may have one mark each.
    while BLOT * 2 in whole:
        whole = whole.replace(BLOT * 2, BLOT)
    assert whole == expected
    assert not any(value in whole for value in secrets)


@settings(max_examples=examples(200))
@example(value="00000000\x1f0000", most=15)
@example(value="0000\x1e00000000\r", most=16)
@given(value=st.text(min_size=3, max_size=40), most=st.integers(3, 60))
def test_a_message_that_was_cut_in_a_value_keeps_no_beginning_of_it(value, most):
    blotting = Blotting([value])
    said = blotting(f"x: {value}"[:most] + "…")
    assert value[:3] not in said.removeprefix("x: ").removesuffix("…") or value[:3] in BLOT


AROUND = 'it\'s "said" <b> '
WRITTEN = {
    "JSON": lambda text: json.dumps({"value": text}),
    "JSON with all letters": lambda text: json.dumps({"value": text}, ensure_ascii=False),
    "Python": lambda text: repr([text]),
    "Python, in a text": lambda text: repr(AROUND + text),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "URL": urllib.parse.quote,
    "form": lambda text: urllib.parse.urlencode({"value": text}),
    "shlex": lambda text: shlex.join(["login", text]),
    "trace of a shell": lambda text: "+ login '" + text.replace("'", r"'\''") + "'",
    "bash": lambda text: subprocess.run(
        ["bash", "-c", 'printf "login %q" "$1"', "sh", text],
        capture_output=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        check=True,
    ).stdout.decode(),
}


@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=[pytest.mark.slow] if f == "bash" else []) for f in WRITTEN]
)
@settings(max_examples=examples(100))
@example(middle="\x7f")
@example(middle="'\"")
@example(middle="~#!{a,b}$x`\\\n\t\x01")
@given(middle=st.text(st.sampled_from("ab '\"\\<>&$`/+%=:~#!\n\t\x01\x7fäß€"), max_size=12))
def test_no_form_in_which_programs_write_a_value_passes(form, middle):
    value = f"sword{middle}fish"
    text = WRITTEN[form](value)
    seen = []
    output = BlottedOutput(Blotting([value]), seen.append)
    for place in range(0, len(text), 5):
        output(text[place : place + 5])
    output.close()
    for said in ("".join(seen), Blotting([value])(text)):
        assert BLOT in said
        assert "sword" not in said
        assert "fish" not in said
