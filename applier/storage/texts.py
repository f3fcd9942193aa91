# SPDX-License-Identifier: Apache-2.0
"""Messages and output of actions, in the length and the characters that a database takes."""

from __future__ import annotations

#: Of what an action printed, this many bytes (UTF-8) are kept: the last ones.
OUTPUT_LIMIT = 64 * 1024


def storable(text: str | None) -> str | None:
    r"""Return the end of a text, at most :data:`OUTPUT_LIMIT` bytes; None for None.

    NUL and lone surrogates, which databases refuse, are replaced: whatever a command prints, its
    outcome can be written.

    >>> storable("a\0b\ud800")
    'a�b?'
    """
    if text is None:
        return None
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return data[-OUTPUT_LIMIT:].decode("utf-8", "ignore")
