# SPDX-License-Identifier: Apache-2.0
"""The quick encoder writes what Python's own does, byte by byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import json_text
from planner.states import ActionState

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_what_is_written_is_what_json_writes(value, sort_keys):
    usual = json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
    assert json_text.compact(sort_keys=sort_keys)(value) == usual


def test_one_encoder_writes_on_after_a_value_that_it_refused():
    write = json_text.compact()
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        write(endless)
    with pytest.raises(TypeError, match=r"type object .*JSON"):
        write([object()])
    assert write([endless[:0], ActionState.PENDING]) == '[[],"PENDING"]'


def test_without_the_encoder_in_c_the_same_is_written(monkeypatch):
    monkeypatch.setattr(json_text, "_make", None)
    assert json_text.compact(sort_keys=True)({"b": 1.5, "a": "ü"}) == '{"a":"\\u00fc","b":1.5}'
