# SPDX-License-Identifier: Apache-2.0
"""What is replaced in messages: the value, and the forms in which others repeat it."""

from __future__ import annotations

import html
import json
import shlex

import pytest

from applier.secrets.blotting import BlottedOutput, Blotting

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
