# SPDX-License-Identifier: Apache-2.0
"""Reads documents in YAML or JSON, and finds the line of each value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, BinaryIO

from planner import safe_text
from planner.errors import InvalidInput, Mistake, Path

if TYPE_CHECKING:
    import yaml


#: The most bytes of a document. A saved plan has about 1 KiB for each action.
MOST_BYTES = 512 * 1024 * 1024
_PIECE = 1024 * 1024


@dataclass(frozen=True)
class Document:
    """A value, and the text that it was read from, if any.

    ``brought`` names the values that come from another document: it maps the path of a field, or of
    one entry of its list, to that document and the path in it. ``warnings`` tell what was read
    although it may be a mistake.
    """

    value: Any
    source: str | None = None
    text: str | None = None
    brought: Mapping[Path, tuple[Document, Path]] = field(default_factory=dict)
    warnings: Sequence[Mistake] = ()

    @property
    def is_plan(self) -> bool:
        """Whether it is an action plan: no other document has a field ``version``."""
        return isinstance(self.value, Mapping) and "version" in self.value

    def locate(self, path: Path) -> str | None:
        """Return ``file:line`` of the value at a path, or of the nearest value around it.

        Return only ``source``, which may be None, if no line is known.
        """
        for length in (2, 1) if self.brought else ():
            if origin := self.brought.get(path[:length]):
                document, inside = origin
                return document.locate((*inside, *path[length:]))
        if self._root is None:
            return self.source
        from planner.documents import yaml_text

        return f"{self.source}:{yaml_text.line(self._root, path) + 1}"

    @cached_property
    def _root(self) -> yaml.Node | None:
        """The text, parsed into nodes with line numbers; None if there is no text to parse.

        Only errors and warnings need it.
        """
        if self.text is None:
            return None
        import yaml

        from planner.documents import yaml_text

        try:
            return yaml_text.compose(_as_yaml(self.text))
        except (yaml.YAMLError, RecursionError):
            return None


def read(path: str | FilePath, *, last_holds: bool = False) -> Document:
    """Read a file; raises InvalidInput with file and line if it is neither YAML nor JSON.

    With ``last_holds``, the last of duplicate keys in YAML holds, with a warning.
    """
    name = str(path)
    try:
        with open(path, "rb") as file:
            return read_open(file, name, last_holds=last_holds)
    except OSError as reason:
        raise _refused(name, f"cannot be read: {reason.strerror}") from reason
    except ValueError as reason:
        raise _refused(name, f"cannot be read: {reason}") from reason


def read_open(file: BinaryIO, source: str, *, last_holds: bool = False) -> Document:
    """Read an open file; ``source`` is its name in messages. Raises InvalidInput, OSError.

    A file with more than MOST_BYTES, such as a device without an end, is not read further.
    """
    pieces, size = [], 0
    while piece := file.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise _refused(source, f"too large: at most {MOST_BYTES // 1024**2} MiB are read")
    return parse(b"".join(pieces), source, last_holds=last_holds)


def parse(text: str | bytes, source: str, *, last_holds: bool = False) -> Document:
    """Parse a text, or its UTF-8 bytes; ``source`` is its name in messages. Raises InvalidInput.

    Text that begins like JSON is read as JSON, because that is faster, and as YAML if that fails,
    unless ``source`` ends with ``.json``. All other text is read as YAML: only ``true`` and
    ``false`` are booleans, keys and dates are read as text. Refused are duplicate keys (in YAML,
    unless ``last_holds``), numbers that are not finite or too long, lists and mappings that are
    nested too deep, YAML whose aliases repeat too many values, NUL and lone surrogates.
    """
    try:
        text = safe_text.decode(text) if isinstance(text, bytes) else text
        text = text.removeprefix("\ufeff")
        safe_text.require_kept(text)
        return _parse(text, source, last_holds)
    except safe_text.RefusedText as reason:
        raise _refused(_place(source, reason.line), str(reason)) from reason


def _parse(text: str, source: str, last_holds: bool) -> Document:
    if _begins_like_json(text):
        try:
            value = _json(text, source)
            if safe_text.is_too_deep(value):
                raise safe_text.too_deep(text)
            safe_text.require_kept_escapes(text)
            return Document(value, source, text)
        except json.JSONDecodeError as reason:
            if source.endswith(".json"):
                where = f"{source}:{reason.lineno}"
                raise _refused(where, f"not JSON: {reason.msg} (column {reason.colno})") from reason
    value, warnings = _yaml(text, source, last_holds)
    if value is None:
        raise _refused(source, "empty: a document with 'actions' or a 'kind' is expected")
    return Document(value, source, text, warnings=warnings)


def _begins_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError as reason:
        raise safe_text.too_deep(text) from reason
    except _Wrong as wrong:
        raise _refused(_place(source, wrong.line(text)), str(wrong)) from None


def _yaml(text: str, source: str, last_holds: bool) -> tuple[Any, list[Mistake]]:
    # Imported here, because a document in JSON does not need YAML, and the import takes longer than
    # reading such a document.
    import yaml

    from planner.documents import yaml_text

    safe_text.require_printable(text)
    warnings: list[Mistake] = []

    def repeated(key: str, first: int, last: int) -> None:
        told = f"the key {key!r} occurs twice, first on line {first}: the last holds"
        warnings.append(Mistake(told, place=_place(source, last)))

    try:
        return yaml_text.load(text, repeated if last_holds else None), warnings
    except yaml.MarkedYAMLError as reason:
        mark = reason.problem_mark or reason.context_mark
        problem = ", ".join(filter(None, (reason.context, reason.problem)))
        lines = text.splitlines()[mark.line : mark.line + 1] if mark else []
        if any(re.match(r" *\t", line) for line in lines):
            problem = "a tab at the beginning of a line; only blanks indent"
        place = _place(source, mark.line + 1 if mark else None)
        raise _refused(place, f"not YAML: {problem}") from reason
    except yaml.YAMLError as reason:
        raise _refused(source, f"not YAML: {reason}".splitlines()[0]) from reason
    except RecursionError as reason:
        raise _refused(source, "lists and mappings are nested too deep") from reason


def _refused(place: str, text: str) -> InvalidInput:
    return InvalidInput([Mistake(text, place=place)])


def _place(source: str, line: int | None) -> str:
    return f"{source}:{line}" if line else source


class _Wrong(Exception):
    """A key or a number of JSON is refused; ``line`` finds its line in the text."""

    def __init__(self, text: str, line: Callable[[str], int | None]) -> None:
        self.line = line
        super().__init__(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Wrong(f"the key {key!r} occurs twice", partial(_line_of_second, key))
            seen.add(key)
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Wrong(f"{text[:40]} is not a finite number", partial(_line_of_number, text))
    return number


def _whole(text: str) -> int:
    if len(text) > safe_text.MOST_DIGITS:
        told = f"{text[:40]} ... has {len(text)} digits: at most {safe_text.MOST_DIGITS} are read"
        raise _Wrong(told, partial(_line_of_number, text))
    return int(text)


def _as_yaml(text: str) -> str:
    """Convert JSON to YAML with the same lines: replace tabs, escapes and control characters."""
    if not _begins_like_json(text):
        return text
    readable = safe_text.printable(text.replace("\t", " "))
    return re.sub(r"\\u[0-9a-fA-F]{4}", "______", readable)


def _line_of_number(number: str, text: str) -> int | None:
    found = re.search(rf"[\s:,\[]{re.escape(number)}[\s,\]}}]", text)
    return text.count("\n", 0, found.start() + 1) + 1 if found else None


def _line_of_second(key: str, text: str) -> int | None:
    """Return the line of a JSON text on which a key occurs for the second time in one mapping."""
    import yaml

    from planner.documents import yaml_text

    try:
        yaml_text.load(_as_yaml(text))
    except yaml_text.DuplicateKey as reason:
        if reason.problem_mark and reason.key == key:
            return int(reason.problem_mark.line) + 1
    except (yaml.YAMLError, RecursionError):
        pass
    return None


def as_document(document: Mapping[str, Any] | str | FilePath | Document) -> Document:
    """Return a document itself, a new one around a mapping, or one that is read from a path.

    Raises InvalidInput if the file cannot be read.
    """
    if isinstance(document, Document):
        return document
    if isinstance(document, str | FilePath):
        return read(document)
    return Document(document)
