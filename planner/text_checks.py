# SPDX-License-Identifier: Apache-2.0
"""Refuses text that cannot be read safely or kept: each error has its line. Needs no YAML. Pure."""

from __future__ import annotations

import re
from typing import Any

#: The maximum nesting of lists and mappings: what handles them calls itself for each level, and
#: Python ends that after about a thousand calls.
DEEPEST = 200
TOO_DEEP = f"lists and mappings are nested more than {DEEPEST} deep"

#: NUL, which databases refuse, and lone surrogates, which have no encoding.
UNKEPT = re.compile("[\0\ud800-\udfff]")
#: The characters that YAML refuses.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: The escapes of JSON: a pair of surrogates, else one that is refused, else any other.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|\\.",
    re.DOTALL,
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class RefusedText(ValueError):
    """A text that is refused. ``line`` is counted from 1."""

    def __init__(self, text: str, line: int) -> None:
        self.line = line
        super().__init__(text)


def decode(data: bytes) -> str:
    """Decode UTF-8, with any line ends; raises Unreadable."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as reason:
        text = f"not UTF-8 text: {reason.reason} at byte {reason.start}"
        raise RefusedText(text, data.count(b"\n", 0, reason.start) + 1) from reason


def require_kept(text: str) -> None:
    """Raise Unreadable for the first character that no store can keep."""
    if found := UNKEPT.search(text):
        raise RefusedText(refused_character(found[0]), _line(text, found.start()))


def require_printable(text: str) -> None:
    """Raise Unreadable for the first character that YAML refuses."""
    if found := _UNPRINTABLE.search(text):
        raise RefusedText(refused_character(found[0]), _line(text, found.start()))


def require_kept_escapes(text: str) -> None:
    """Raise Unreadable for the first escape in a JSON text that encodes a refused character."""
    for found in _ESCAPE.finditer(text):
        if found[1]:
            character = chr(int(found[1], 16))
            raise RefusedText(refused_character(character), _line(text, found.start()))


def printable(text: str) -> str:
    """Replace the characters that YAML refuses by as many others."""
    return _UNPRINTABLE.sub("_", text)


def refused_character(character: str) -> str:
    """Write the message for a character that is refused.

    >>> refused_character(chr(0))
    'the character U+0000 is not allowed'
    """
    return f"the character U+{ord(character):04X} is not allowed"


def is_too_deep(value: Any) -> bool:
    """Return whether lists and mappings are nested deeper than DEEPEST."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for found in level
            for child in (found.values() if isinstance(found, dict) else found)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def too_deep(text: str) -> RefusedText:
    """Return the error for a JSON text that is nested too deep, with the line where it begins."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > DEEPEST:
            return RefusedText(TOO_DEEP, _line(text, found.start()))
    return RefusedText(TOO_DEEP, 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
