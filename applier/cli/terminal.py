# SPDX-License-Identifier: Apache-2.0
"""Wrappers of the standard streams, which make hidden characters visible in all written text.

Only code that itself draws on a terminal, such as rich, writes to the wrapped stream. Two more
wrappers are for runs: one waits for a slow reader of a stream that does not block, the other one
also does not fail when the reader goes away.
"""

from __future__ import annotations

import io
import os
import select
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
    """Return the stream that writes text unchanged, without :func:`with_visible_text`."""
    return stream.exact if isinstance(stream, _Visible) else stream


def patient(stream: TextIO) -> TextIO:
    """Return a stream that writes to the file of another one at once, without a buffer.

    If that file does not block, a write waits while it is full. Raises OSError if it fails.
    """
    return with_visible_text(cast("TextIO", _Patient(exact(stream))))


def lasting(stream: TextIO) -> TextIO:
    """Return a patient stream that discards all text once the other one has failed.

    A run must continue when its terminal hangs up or the reader of its pipe ends.
    """
    return with_visible_text(cast("TextIO", _Lasting(exact(stream))))


class _Patient:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding, self.errors = stream.encoding, stream.errors
        self.fileno, self.isatty, self.flush = stream.fileno, stream.isatty, stream.flush

    def write(self, text: str) -> int:
        try:
            file = self._stream.fileno()
        except io.UnsupportedOperation:
            return self._stream.write(text)
        left = text.encode(self.encoding, self.errors or "strict")
        while left:
            try:
                left = left[os.write(file, left) :]
            except BlockingIOError:
                select.select([], [file], [])
        return len(text)


class _Lasting(_Patient):
    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.flush = self._flush

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except (OSError, ValueError):
            self._drop()
            return len(text)

    def _flush(self) -> None:
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
