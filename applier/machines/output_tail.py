# SPDX-License-Identifier: Apache-2.0
"""Passes the output of a program on as text, and keeps its last line."""

from __future__ import annotations

import codecs
from collections.abc import Callable

#: The number of characters of output in which the last line is searched.
_TAIL = 2000


class Tail:
    """Passes the output of a program on as text, and keeps its last line.

    >>> tail = Tail(lambda text: None)
    >>> tail.write(b"one\\ntw"); tail.write(b"o\\n\\n"); tail.close()
    >>> tail.last_line()
    'two'
    """

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = ""
        #: The place in the output up to which it was passed on, in bytes.
        self.seen = 0

    def write(self, piece: bytes) -> None:
        """Pass a piece on as text; it may end inside a character."""
        self.seen += len(piece)
        self._print(self._decoder.decode(piece))

    def skip(self, place: int) -> None:
        """Go on at byte ``place`` of the output; pass on a note if that leaves output out."""
        left_out, self.seen = place - self.seen, place
        if left_out > 0:
            self._print(f"\n[{left_out} bytes of output were dropped]\n")

    def close(self) -> None:
        """Pass on a replacement for a character that was never completed."""
        self._print(self._decoder.decode(b"", final=True))

    def last_line(self) -> str:
        """Return the last line that is not blank, or an empty text."""
        lines = [line.strip() for line in self._end.splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def _print(self, text: str) -> None:
        if text:
            self._end = (self._end + text[-_TAIL:])[-_TAIL:]
            self._output(text)
