# SPDX-License-Identifier: Apache-2.0
"""Warnings that are told once, however often there is a reason for them."""

from __future__ import annotations

from collections.abc import Iterator

from planner.errors import Mistake, Path


class Told:
    """Warnings by what they are about, each with its first place and the number of the others."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, dict[Path, None]]] = {}

    def add(self, text: str, path: Path, about: str | None = None) -> None:
        """Add a warning; of those about the same thing the first text is told."""
        self._found.setdefault(about or text, (text, {}))[1][path] = None

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Mistake]:
        """Yield each warning, those that were added first first."""
        for text, paths in self._found.values():
            more = len(paths) - 1
            others = f" ({more} more place{'s' if more > 1 else ''})" if more else ""
            yield Mistake(f"{text}{others}", next(iter(paths)))
