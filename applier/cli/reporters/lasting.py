# SPDX-License-Identifier: Apache-2.0
"""A stream that does not fail when its reader goes away."""

from __future__ import annotations

import os
from typing import Any, TextIO, cast

from applier.cli.terminal import exact, with_visible_text


def lasting(stream: TextIO) -> TextIO:
    """Return a stream that passes text to another one until that fails, and then drops it.

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
