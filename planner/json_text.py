# SPDX-License-Identifier: Apache-2.0
"""Writes JSON quickly: an encoder of Python's own is made once, and not for every value."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any

#: The encoder in C; None in a Python without it.
_make: Callable[..., Callable[[Any, int], list[str]]] | None = getattr(
    encoder, "c_make_encoder", None
)


def compact(*, sort_keys: bool = False) -> Callable[[Any], str]:
    """Return a function that writes a value as JSON without spaces.

    The text is that of :class:`json.JSONEncoder`, which creates a new encoder for every value: that
    takes longer than writing a short value. A value that contains itself raises RecursionError.

    >>> compact(sort_keys=True)({"b": [1, 2.5, None], "a": "ü"})
    '{"a":"\\\\u00fc","b":[1,2.5,null]}'
    """
    usual = json.JSONEncoder(sort_keys=sort_keys, separators=(",", ":"), check_circular=False)
    if _make is None:
        return usual.encode
    escaped = encoder.encode_basestring_ascii
    write = _make(None, usual.default, escaped, None, ":", ",", sort_keys, False, True)
    return lambda value: "".join(write(value, 0))
