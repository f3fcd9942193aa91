# SPDX-License-Identifier: Apache-2.0
"""Cuts and cleans messages and output of actions, so that every database accepts them."""

from __future__ import annotations

#: How many bytes (UTF-8) of the output of an action are stored: the last ones.
OUTPUT_LIMIT = 64 * 1024


def storable(text: str | None) -> str | None:
    r"""Return the end of a text, at most :data:`OUTPUT_LIMIT` bytes; None for None.

    NUL and lone surrogates, which databases refuse, are replaced. So any output of a command can be
    written.

    >>> storable("a\0b\ud800")
    'a�b?'
    """
    if text is None:
        return None
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return data[-OUTPUT_LIMIT:].decode("utf-8", "ignore")
