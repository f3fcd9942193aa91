# SPDX-License-Identifier: Apache-2.0
"""The output of a running action, of which the end is kept."""

from __future__ import annotations

import threading

#: The maximum size of an action's kept output, in bytes of UTF-8; the end is kept.
KEPT_BYTES = 64 * 1024


class ActionOutput:
    """Keeps the end of the output of an action. Several threads may use it at once.

    >>> output = ActionOutput(kept=8)
    >>> output.write("one, two, "); output.write("three")
    >>> output.text()
    'o, three'
    """

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._bytes = bytearray()
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Append text; drop the oldest text if there is too much."""
        chunk = text[-self._kept :].encode(errors="replace")
        with self._lock:
            self._bytes += chunk
            if len(self._bytes) > 2 * self._kept:  # not at each write: it copies
                del self._bytes[: -self._kept]

    def text(self) -> str | None:
        """Return the kept text; None if nothing was printed."""
        with self._lock:
            kept = bytes(self._bytes[-self._kept :])
        return kept.decode(errors="ignore") or None
