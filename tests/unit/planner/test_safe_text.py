# SPDX-License-Identifier: Apache-2.0
"""No character that a terminal obeys, or that nobody sees, is left in visible text."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.cli.reporters.plan_table import console
from applier.cli.terminal import exact, with_visible_text
from planner.safe_text import (
    HIDDEN,
    VisibleRecord,
    visible,
    visible_json,
    with_visible_errors,
)

#: The categories of what is hidden: controls, formats, surrogates, separators of lines.
CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
ANY_TEXT = st.text(st.characters(), max_size=40) | st.text(
    st.characters(categories=CATEGORIES), max_size=10
)


def test_every_hidden_character_of_unicode_is_known() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    hidden = {c for c in every if unicodedata.category(c) in CATEGORIES} - {"\n", "\t"}
    found = set(HIDDEN.findall(every))
    assert not hidden - found
    # A later Unicode has more of them; nothing that is seen is among them.
    assert all(unicodedata.category(c) in (*CATEGORIES, "Cn", "Mn", "Lo") for c in found - hidden)


@given(ANY_TEXT)
def test_what_is_visible_has_no_hidden_character_and_is_left_alone(text: str) -> None:
    shown = visible(text)
    assert not HIDDEN.search(shown)
    assert visible(shown) == shown
    assert HIDDEN.search(text) or shown == text


@given(st.recursive(ANY_TEXT, lambda inner: st.dictionaries(ANY_TEXT, inner, max_size=3)))
def test_json_has_no_hidden_character_and_loses_nothing(value: Any) -> None:
    text = visible_json(value, indent=1)
    assert not HIDDEN.search(text)
    assert json.loads(text) == json.loads(json.dumps(value))


@given(ANY_TEXT, st.booleans())
def test_what_is_written_to_a_stream_is_visible(text: str, styled: bool) -> None:
    below = io.StringIO()
    stream = with_visible_text(with_visible_text(below))
    assert exact(stream) is below
    if styled:
        console(stream).print(text, soft_wrap=True)
    else:
        stream.writelines([text])
    assert not HIDDEN.search(below.getvalue())


@pytest.mark.parametrize("arguments", [(), ("\x1b[2J",)])
def test_a_log_message_is_visible(arguments: tuple[str, ...]) -> None:
    text = "\x9b %s" if arguments else "\x9b"
    record = VisibleRecord("n", logging.INFO, "p", 1, text, arguments, None)
    assert not HIDDEN.search(logging.Formatter().format(record))


def test_a_traceback_in_a_log_is_visible() -> None:
    formatter = with_visible_errors(logging.Formatter())
    try:
        raise ValueError("\x1b]0;title\x07 \u202e")
    except ValueError:
        record = VisibleRecord("n", logging.ERROR, "p", 1, "broke", (), sys.exc_info())
    text = formatter.format(record)
    assert not HIDDEN.search(text)
    assert text.endswith("ValueError: \\x1b]0;title\\x07 \\u202e")
