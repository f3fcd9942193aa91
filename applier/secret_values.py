# SPDX-License-Identifier: Apache-2.0
"""Reads the secrets to which parameters refer, and hides their values in texts and in output.

They are read on the machine and as the user of the applier.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from applier.errors import ActionFailed
from planner.errors import Path, path_text
from planner.schemas.hidden_values import accepting, hidden_texts, label, replaced

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


#: A hidden value in a plan with fewer characters, such as ``1``, is not replaced in output.
SHORTEST_LITERAL = 8
#: A larger file is refused.
MOST_BYTES = 64 * 1024


class SecretText(str):
    """The value of a secret: a text whose ``repr`` is its reference."""

    __slots__ = ("reference",)
    reference: str

    def __repr__(self) -> str:
        return f"<{label(self.reference)}>"


#: For parameters without secrets.
NO_SECRETS = Blotting()


class Resolved(NamedTuple):
    """Parameters with the values of their secrets, and the function that hides these in texts."""

    parameters: Mapping[str, Any]
    blotting: Blotting


def resolve(parameters: Mapping[str, Any], schema: Mapping[str, Any]) -> Resolved:
    """Read the value of each reference, and check it against the schema of the parameters.

    The blotting also replaces values in the plan that the schema hides, from SHORTEST_LITERAL
    characters on. Raises ActionFailed with all references that cannot be used, and why, without
    their values.
    """
    if not parameters:
        return Resolved(parameters, NO_SECRETS)
    values: dict[Path, SecretText] = {}
    wrong: list[str] = []

    def value(path: Path, text: str) -> str:
        kind, _, name = text.partition(" ")
        try:
            found = SecretText(_of_environment(name) if kind == "env" else _of_file(name))
        except (OSError, ValueError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else reason
            wrong.append(_unusable(path, text, why))
            return ""
        found.reference = text
        values[path] = found
        return found

    known = replaced(parameters, value)
    if values and not wrong:
        why = "the action type does not accept its value"
        refused = _refused(parameters, values, schema)
        wrong = [_unusable(path, values[path].reference, why) for path in sorted(refused, key=str)]
    if wrong:
        raise ActionFailed("; ".join(wrong))
    marked = hidden_texts(schema, parameters)
    literal = (text for text in marked if len(text) >= SHORTEST_LITERAL)
    secrets = [*values.values(), *literal]
    return Resolved(known, Blotting(secrets) if secrets else NO_SECRETS)


def _refused(
    parameters: Mapping[str, Any], values: Mapping[Path, SecretText], schema: Mapping[str, Any]
) -> set[Path]:
    """Return the places of references whose values the schema refuses.

    These are all places, where it is not known which value is wrong.
    """
    # Imported here: few plans have secrets.
    from planner.schemas import checking

    # The fast validator accepts no subclasses of str.
    known = replaced(parameters, lambda path, _: str(values[path]))
    if not checking.compiled(schema)(known):
        return set()
    from planner.schemas import schema_errors

    found = schema_errors.places(schema, known) & values.keys()
    # If the parameters have no mistake before the values are known, the values are the mistake.
    return found or set(() if checking.compiled(accepting(schema))(parameters) else values)


def _unusable(path: Path, text: str, why: object) -> str:
    return f"{path_text(path)}: the secret '{text}' cannot be used: {why}"


def shown(value: object) -> str:
    """Return a value as text for messages; for the value of a secret, its reference."""
    return label(value.reference) if isinstance(value, SecretText) else str(value)


def _of_environment(name: str) -> str:
    found = os.environ.get(name)
    if found is None:
        raise ValueError("the environment where it runs has no such variable")
    return _usable(os.fsencode(found))


def _of_file(path: str) -> str:
    # O_NONBLOCK: a pipe without a writer is refused, not waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"the file is larger than {MOST_BYTES // 1024} KiB")
    return _usable(data).removesuffix("\n")


def _usable(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError("it is not text in UTF-8")
    if not text.strip():
        raise ValueError("it is empty")
    return text
