# SPDX-License-Identifier: Apache-2.0
"""Replaces secret values in the output, the messages and the logs of an action."""

from __future__ import annotations

import json
import re
import shlex
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

#: Stands in place of a value.
BLOT = "***"
#: A line of a value that has several lines is replaced by itself if it has so many characters.
_SHORTEST_LINE = 8
#: The last character of a text that was cut, so that a value in it may be incomplete.
CUT = "…"
#: The least and the most characters of the beginning of a value that is replaced at a cut.
_SHORTEST_BEGINNING, _LONGEST_BEGINNING = 3, 400
#: Output is looked through when so much of what is kept back is new: this part of it.
_NEW_PART = 8
#: What ``printf %q`` of bash puts a backslash before, and how it writes control characters.
_BACKSLASHED = r"""[ "'\\|&;()<>!{}*[\]?^$`,]|^[#~]|(?<=[:=])~"""
_CONTROLS = dict(zip("\a\b\t\n\v\f\r\x1b\\'", map("\\{}".format, "abtnvfrE\\'"), strict=True))


class Blotting:
    """Replaces ``values`` by ``***`` in texts.

    Forms in which programs and messages repeat a value are replaced, too: with other white space,
    each longer line of it by itself, and these as JSON, Python, HTML, URLs and shells write them.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self.longest = len(forms[0]) if forms else 0
        self._pattern = re.compile("|".join(map(re.escape, forms)) or r"(?!)")
        self._forms = sorted(forms)

    def __call__(self, text: str) -> str:
        """Return a text with each value replaced, and each beginning of one at its end or a cut.

        A cut is marked by :data:`CUT`.
        """
        if not self._forms:
            return text
        kept, end = [], 0
        for first, last in sorted([*self.spans(text), *self._beginnings(text)]):
            if first >= end:
                kept += [text[end:first], BLOT]
            end = max(end, last)
        return "".join([*kept, text[end:]])

    def _beginnings(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the longest beginning of a value before each cut and the end."""
        cuts = (place for place, letter in enumerate(text) if letter == CUT)
        for cut in (*cuts, len(text)):
            if longest := self._beginning(text, cut):
                yield cut - longest, cut

    def _beginning(self, text: str, end: int) -> int:
        """Return the length of the longest beginning of a form that ends at ``end``; 0 if none."""
        most = min(self.longest, _LONGEST_BEGINNING, end)
        for length in range(most, _SHORTEST_BEGINNING - 1, -1):
            beginning = text[end - length : end]
            place = bisect_left(self._forms, beginning)
            if place < len(self._forms) and self._forms[place].startswith(beginning):
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
    """Passes output on with secret values replaced, even those split over several pieces.

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
        #: How many characters at the end of it were not looked through.
        self._new = 0
        self._lock = threading.Lock()

    def __call__(self, piece: str) -> None:
        """Accept a piece; pass on all output but an end that may be a part of a value."""
        if not self._blotting.longest:
            self._write(piece)
            return
        with self._lock:
            self._held += piece
            self._new += len(piece)
            if self._new >= self._blotting.longest // _NEW_PART:
                self._pass_on(self._held, self._blotting.longest - 1)
                self._new = 0

    def close(self) -> None:
        """Pass on the output that was kept back."""
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
    lines = [line.strip() for line in value.splitlines()]
    longer = [line for line in lines if len(lines) > 1 and len(line) >= _SHORTEST_LINE]
    for text in (value, " ".join(value.split()) or value, *longer):
        yield text
        yield from _written(text)


def _written(text: str) -> Iterator[str]:
    """Yield a text as JSON, Python, HTML, URLs and shells write it, mostly without quotes."""
    # Imported here: few plans have secrets.
    from html import escape
    from urllib.parse import quote, quote_plus

    yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    # In a text with both kinds of quotes, Python escapes one of them.
    yield from (str.__repr__(text)[1:-1], repr("'\"" + text)[4:-1])
    yield from (escape(text), escape(text, quote=False))
    yield from (quote(text, safe, errors="replace") for safe in ("", "/"))
    yield quote_plus(text, errors="replace")
    yield from (shlex.quote(text), *(text.replace("'", q) for q in ("'\"'\"'", r"'\''")))
    yield re.sub(r'[$`"\\]', r"\\\g<0>", text)
    yield re.sub(_BACKSLASHED, r"\\\g<0>", text)
    yield re.sub(r"[\x01-\x1f\x7f\\']", _in_dollar_quotes, text)


def _in_dollar_quotes(found: re.Match[str]) -> str:
    return _CONTROLS.get(found[0]) or f"\\{ord(found[0]):03o}"
