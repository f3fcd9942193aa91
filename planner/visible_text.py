# SPDX-License-Identifier: Apache-2.0
"""Makes characters visible that would change what a terminal shows. Pure.

These are control characters (C0, DEL, C1), marks that change the direction of text, characters
without a width, line separators and surrogates. Line breaks and tabs are left as they are.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

#: The Unicode categories Cc, Cf, Cs, Zl and Zp, without tab and line feed.
HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Return a text in which each hidden character is written as Python escapes it.

    >>> print(visible("no route\x1b[2J\u202e"))
    no route\x1b[2J\u202e
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(value: Any, **options: Any) -> str:
    r"""Return a value as JSON in which hidden characters are escaped, so that no data is lost.

    >>> print(visible_json("a\u202e\x9b\U000e0001"))
    "a\u202e\u009b\udb40\udc01"
    """
    text = json.dumps(value, ensure_ascii=False, **options)
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def with_visible_errors(formatter: logging.Formatter) -> logging.Formatter:
    """Let a formatter write tracebacks with their hidden characters made visible; return it."""
    inner = formatter.formatException

    def format_exception(*given: Any, **named: Any) -> str:
        return visible(inner(*given, **named))

    vars(formatter)["formatException"] = format_exception
    return formatter


class VisibleRecord(logging.LogRecord):
    """A log record whose message has its hidden characters made visible."""

    def getMessage(self) -> str:  # noqa: N802 - the name is that of the library
        """Return the message."""
        return visible(super().getMessage())
