# SPDX-License-Identifier: Apache-2.0
"""Wrappers of the standard streams, which make hidden characters visible in all written text.

Only code that itself draws on a terminal, such as rich, writes to the wrapped stream. A second
wrapper is for runs: it does not fail when the reader of the stream goes away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TextIO, cast

from planner.safe_text import visible


class _Visible:
    """Writes text with hidden characters made visible to ``exact``, the wrapped stream."""

    def __init__(self, stream: TextIO) -> None:
        self.exact = stream

    def write(self, text: str) -> int:
        self.exact.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.exact, name)


def with_visible_text(stream: TextIO) -> TextIO:
    """Return a stream that writes to another one with hidden characters made visible."""
    return cast("TextIO", _Visible(exact(stream)))


def exact(stream: TextIO) -> TextIO:
    """Return the wrapped stream, which writes text unchanged; a stream without a wrapper itself."""
    return stream.exact if isinstance(stream, _Visible) else stream


def lasting(stream: TextIO) -> TextIO:
    """Return a stream that writes to another one until that fails, and then discards all text.

    A run must continue when its terminal hangs up or the reader of its pipe ends.
    """
    return with_visible_text(cast("TextIO", _Lasting(exact(stream))))


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
        """Redirect the stream to /dev/null, so that its buffered text causes no later error."""
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
