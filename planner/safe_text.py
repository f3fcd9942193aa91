# SPDX-License-Identifier: Apache-2.0
"""Refuses text that cannot be parsed safely or stored, and makes hidden characters visible. Pure.

Hidden are control characters (C0, DEL, C1), which a terminal obeys, marks that change the direction
of text, characters without a width, line separators and surrogates. Line breaks and tabs are left
as they are. A refusal has the line.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

#: The maximum nesting of lists and mappings: functions that handle them call themselves for each
#: level, and Python limits that to about a thousand calls.
DEEPEST = 200
TOO_DEEP = f"lists and mappings are nested more than {DEEPEST} deep"
#: Whole numbers of more digits are refused: Python converts no more than 4300 digits to text.
MOST_DIGITS = 4000

#: NUL, which databases refuse, and lone surrogates, which have no encoding.
UNKEPT = re.compile("[\0\ud800-\udfff]")
#: The characters that YAML refuses.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
#: An escape of JSON: a pair of surrogates, else one that is refused (group 1), else any other.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|\\.",
    re.DOTALL,
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
#: The Unicode categories Cc, Cf, Cs, Zl and Zp, without tab and line feed.
HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001-\U000e007f]"
)


class RefusedText(ValueError):
    """A text that is refused. ``line`` is counted from 1."""

    def __init__(self, text: str, line: int) -> None:
        self.line = line
        super().__init__(text)


def decode(data: bytes) -> str:
    """Decode UTF-8, and convert all line ends to line feeds; raises RefusedText."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as reason:
        text = f"not UTF-8 text: {reason.reason} at byte {reason.start}"
        raise RefusedText(text, data.count(b"\n", 0, reason.start) + 1) from reason


def require_kept(text: str) -> None:
    """Raise RefusedText for the first character that no store can keep."""
    if found := UNKEPT.search(text):
        raise RefusedText(refused_character(found[0]), _line(text, found.start()))


def require_printable(text: str) -> None:
    """Raise RefusedText for the first character that YAML refuses."""
    if found := _UNPRINTABLE.search(text):
        raise RefusedText(refused_character(found[0]), _line(text, found.start()))


def require_kept_escapes(text: str) -> None:
    """Raise RefusedText for the first escape in a JSON text that encodes a refused character."""
    for found in _ESCAPE.finditer(text):
        if found[1]:
            character = chr(int(found[1], 16))
            raise RefusedText(refused_character(character), _line(text, found.start()))


def printable(text: str) -> str:
    """Replace each character that YAML refuses by an underscore."""
    return _UNPRINTABLE.sub("_", text)


def refused_character(character: str) -> str:
    """Write the message for a character that is refused.

    >>> refused_character(chr(0))
    'the character U+0000 is not allowed'
    """
    return f"the character U+{ord(character):04X} is not allowed"


def is_too_deep(value: Any) -> bool:
    """Return whether lists and mappings are nested deeper than DEEPEST."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            child
            for found in level
            for child in (found.values() if isinstance(found, dict) else found)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def too_deep(text: str) -> RefusedText:
    """Return the error for a JSON text that is nested too deep, with the first line that is."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > DEEPEST:
            return RefusedText(TOO_DEEP, _line(text, found.start()))
    return RefusedText(TOO_DEEP, 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def visible(text: str) -> str:
    r"""Return a text in which each hidden character is written as Python escapes it.

    >>> print(visible("no route\x1b[2J\u202e"))
    no route\x1b[2J\u202e
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


#: Writes a value as JSON without spaces. A value that contains itself raises RecursionError.
compact_json: Callable[[Any], str] = json.JSONEncoder(
    separators=(",", ":"), check_circular=False
).encode
#: Writes a value as :func:`compact_json` does, with sorted keys.
sorted_json: Callable[[Any], str] = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, sort_keys=True
).encode


def visible_json(value: Any, **options: Any) -> str:
    r"""Return a value as JSON in which hidden characters are escaped, so that no data is lost.

    >>> print(visible_json("a\u202e\x9b\U000e0001"))
    "a\u202e\u009b\udb40\udc01"
    """
    text = json.dumps(value, ensure_ascii=False, **options)
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def with_visible_errors(formatter: logging.Formatter) -> logging.Formatter:
    """Change a formatter to make hidden characters in tracebacks visible; return it."""
    inner = formatter.formatException

    def format_exception(*given: Any, **named: Any) -> str:
        return visible(inner(*given, **named))

    vars(formatter)["formatException"] = format_exception
    return formatter


class VisibleRecord(logging.LogRecord):
    """A log record whose message has its hidden characters made visible."""

    def getMessage(self) -> str:  # noqa: N802 - the name is that of the library
        """Return the message, made visible."""
        return visible(super().getMessage())
