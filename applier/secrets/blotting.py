# SPDX-License-Identifier: Apache-2.0
"""Replaces secret values in the output, the messages and the logs of an action."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator

#: Stands in place of a value.
BLOT = "***"
#: A line of a value that has several lines is replaced by itself if it has so many characters.
_SHORTEST_LINE = 8
#: What stands at the end of a text that was cut.
CUT = "…"
#: From and up to how many characters the beginning of a value is replaced at a cut.
_SHORTEST_BEGINNING, _LONGEST_BEGINNING = 3, 400


class Blotting:
    """Replaces these values in texts.

    Forms in which programs and messages repeat a value are replaced, too: quoted for a shell, with
    other white space, and each longer line of it by itself.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self.longest = len(forms[0]) if forms else 0
        self._pattern = re.compile("|".join(map(re.escape, forms)) or r"(?!)")
        self._forms = forms

    def __call__(self, text: str) -> str:
        """Return a whole text without the values, and without the beginning of one at a cut."""
        if not self._forms:
            return text
        kept, end = [], 0
        for first, last in sorted([*self.spans(text), *self._beginnings(text)]):
            if first >= end:
                kept += [text[end:first], BLOT]
            end = max(end, last)
        return "".join([*kept, text[end:]])

    def _beginnings(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the longest beginning of a value at each place of a cut."""
        cuts = (place for place, letter in enumerate(text) if letter == CUT)
        for cut in (*cuts, len(text)):
            lengths = (self._beginning(form, text, cut) for form in self._forms)
            if longest := max(lengths):
                yield cut - longest, cut

    def _beginning(self, form: str, text: str, end: int) -> int:
        """Return the length of the longest beginning of a form that ends there; 0 if none does."""
        for length in range(min(len(form), _LONGEST_BEGINNING), _SHORTEST_BEGINNING - 1, -1):
            if text.endswith(form[:length], 0, end):
                return length
        return 0

    def spans(self, text: str, covered: int = 0) -> list[tuple[int, int]]:
        """Return begin and end of each part of a text to replace; overlapping parts are one.

        ``covered`` are the first characters that belong to an occurrence that began before.
        """
        found = [(0, covered)] if covered else []
        match = self._pattern.search(text)
        while match:
            if found and match.start() < found[-1][1]:
                found[-1] = (found[-1][0], max(match.end(), found[-1][1]))
            else:
                found.append(match.span())
            match = self._pattern.search(text, match.start() + 1)
        return found


class BlottedOutput:
    """Passes output on without the values, also those that are split over several pieces.

    May be used from several threads.

    >>> seen = []
    >>> output = BlottedOutput(Blotting(["swordfish"]), seen.append)
    >>> for piece in ("it is sword", "fish", ", he said"): output(piece)
    >>> output.close(); "".join(seen)
    'it is ***, he said'
    """

    def __init__(self, blotting: Blotting, write: Callable[[str], None]) -> None:
        self._blotting, self._write = blotting, write
        #: The end of the output, in which a value may have begun, and how many characters at its
        #: beginning belong to a value that was replaced already.
        self._held, self._covered = "", 0
        self._lock = threading.Lock()

    def __call__(self, piece: str) -> None:
        """Take a piece, and pass on what can no longer be a part of a value."""
        if not self._blotting.longest:
            self._write(piece)
            return
        with self._lock:
            self._pass_on(self._held + piece, self._blotting.longest - 1)

    def close(self) -> None:
        """Pass on the rest."""
        with self._lock:
            self._pass_on(self._held, 0)

    def _pass_on(self, text: str, hold: int) -> None:
        keep = max(0, len(text) - hold)
        said, end = [], 0
        covered = max(0, self._covered - keep)
        for first, last in self._blotting.spans(text, self._covered):
            if first >= keep:
                break
            said.append(text[end:first])
            # Of an occurrence that began in an earlier piece, the replacement is written already.
            said += [BLOT] if first or not self._covered else []
            end, covered = last, max(0, last - keep)
        said.append(text[end:keep])
        self._held, self._covered = text[keep:], covered
        if whole := "".join(said):
            self._write(whole)


def _forms(value: str) -> Iterator[str]:
    yield value
    yield shlex.quote(value)
    yield " ".join(value.split()) or value
    lines = [line.strip() for line in value.splitlines()]
    yield from (line for line in lines if len(lines) > 1 and len(line) >= _SHORTEST_LINE)
