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
from contextlib import suppress
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
    return with_visible_text(cast("TextIO", _Patient(exact(stream), lasts=False)))


def lasting(stream: TextIO) -> TextIO:
    """Return a patient stream that discards all text once the other one has failed.

    A run must continue when its terminal hangs up or the reader of its pipe ends.
    """
    return with_visible_text(cast("TextIO", _Patient(exact(stream), lasts=True)))


class _Patient:
    """See :func:`patient`, and with ``lasts`` :func:`lasting`."""

    def __init__(self, stream: TextIO, *, lasts: bool) -> None:
        self._stream, self._lasts = stream, lasts
        self.encoding, self.errors = stream.encoding, stream.errors
        self.fileno, self.isatty = stream.fileno, stream.isatty

    def write(self, text: str) -> int:
        try:
            self._write(text)
        except (OSError, ValueError):
            self._drop()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._drop()

    def _write(self, text: str) -> None:
        try:
            file = self._stream.fileno()
        except io.UnsupportedOperation:
            self._stream.write(text)
            return
        left = text.encode(self.encoding, self.errors or "strict")
        while left:
            try:
                left = left[os.write(file, left) :]
            except BlockingIOError:
                select.select([], [file], [])

    def _drop(self) -> None:
        """Redirect a stream that lasts to /dev/null, so its buffered text causes no later error.

        Any other stream raises the error that is handled.
        """
        if not self._lasts:
            raise
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
