"""A stream that outlives whoever reads it."""

from __future__ import annotations

import os
from typing import Any, TextIO, cast


def lasting(stream: TextIO) -> TextIO:
    """Give a stream that writes to another until that fails, and nowhere from then on.

    A terminal may hang up, the reader of a pipe may end: a plan that runs must not break for that.
    """
    return cast("TextIO", _Lasting(stream))


class _Lasting:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._drop()

    def _drop(self) -> None:
        """Point the stream at nothing, so that what it still holds fails nobody later."""
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
