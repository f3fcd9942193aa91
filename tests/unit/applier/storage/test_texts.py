# SPDX-License-Identifier: Apache-2.0
"""What is stored of messages and output."""

from __future__ import annotations

import pytest

from applier.storage.texts import OUTPUT_LIMIT, storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (None, None),
        ("", ""),
        ("a" * OUTPUT_LIMIT, "a" * OUTPUT_LIMIT),
        ("b" + "a" * OUTPUT_LIMIT, "a" * OUTPUT_LIMIT),
        # The first character that is kept would be cut in two.
        ("é" + "a" * (OUTPUT_LIMIT - 1), "a" * (OUTPUT_LIMIT - 1)),
        ("\0\ud800\N{SNOWMAN}", "\N{REPLACEMENT CHARACTER}?\N{SNOWMAN}"),
    ],
)
def test_the_end_of_a_text_is_stored(text, stored):
    assert storable(text) == stored
