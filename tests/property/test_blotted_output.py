# SPDX-License-Identifier: Apache-2.0
"""No secret value passes, however the output is cut into pieces."""

from __future__ import annotations

import html
import json
import shlex
import subprocess
import urllib.parse

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from applier.secrets.blotting import BLOT, BlottedOutput, Blotting

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
    for letter, hidden in zip(text, covered, strict=True):
        if hidden and not before:
            expected += BLOT
        expected += "" if hidden else letter
        before = hidden
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
