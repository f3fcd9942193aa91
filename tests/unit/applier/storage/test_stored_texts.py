# SPDX-License-Identifier: Apache-2.0
"""What is stored of messages and output."""

from __future__ import annotations

import pytest

from applier.storage.rows import storable

KEPT = 64 * 1024


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (None, None),
        ("", ""),
        ("a" * KEPT, "a" * KEPT),
        ("b" + "a" * KEPT, "a" * KEPT),
        # The first character that is kept would be cut in two.
        ("é" + "a" * (KEPT - 1), "a" * (KEPT - 1)),
        ("\0\ud800\N{SNOWMAN}", "\N{REPLACEMENT CHARACTER}?\N{SNOWMAN}"),
    ],
)
def test_the_end_of_a_text_is_stored(text, stored):
    assert storable(text) == stored
