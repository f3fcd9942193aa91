# SPDX-License-Identifier: Apache-2.0
"""The streams that people read: all text that is written to them has its hidden characters visible.

Only what draws on a terminal itself, such as rich, writes to the stream below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO, cast

from planner.visible_text import visible


class _Visible:
    """Writes text with hidden characters made visible. ``exact`` is the stream below."""

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
    """Return a stream that makes hidden characters visible."""
    return cast("TextIO", _Visible(exact(stream)))


def exact(stream: TextIO) -> TextIO:
    """Return the stream below, to which text is written as it is."""
    return stream.exact if isinstance(stream, _Visible) else stream
