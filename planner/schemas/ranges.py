# SPDX-License-Identifier: Apache-2.0
"""Parts of JSON Schemas: documents, mappings, lists, and ranges that every store can keep. Pure.

Schemas, options and the command line take their ranges from here, so that a value that is accepted
in one place is accepted in all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeGuard, TypeVar

Read = TypeVar("Read")

#: The largest whole number: nine digits, which fit the columns of 32 bits of every database.
MOST = 999_999_999
#: How many actions run at once by default: the same on every machine, and so are forecasts.
WORKERS = 10
#: The longest duration of one action, in seconds: about 30 years. The sum of the durations of all
#: actions of a plan stays far below what a float and a timedelta can hold.
LONGEST_S = MOST
#: The most characters of a name: they fit a database column with an index.
LONGEST_NAME = 255
#: The most characters of the name of something that actions touch: with its kind before it, as in
#: ``instance:web-1``, it is still a name.
LONGEST_RESOURCE = 240
#: The most characters of a name that planners put together, such as that of an action.
LONGEST_COMPOSED = 1000
#: The most characters of a text that one argument of a command can hold.
LONGEST_ARGUMENT = 100_000
#: The most characters of any other text, such as a message or a description.
LONGEST_TEXT = 1_000_000

SECONDS: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": LONGEST_S}
SECONDS_OR_NULL = {**SECONDS, "type": ["number", "null"]}
POSITIVE_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_S}
POSITIVE_SECONDS_OR_NULL = {**POSITIVE_SECONDS, "type": ["number", "null"]}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MOST}
COUNT_OF_ONE_OR_MORE = {**COUNT, "minimum": 1}
NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
NAME_OR_NULL = {**NAME, "type": ["string", "null"]}
RESOURCE: dict[str, Any] = {**NAME, "maxLength": LONGEST_RESOURCE}
COMPOSED_NAME: dict[str, Any] = {**NAME, "maxLength": LONGEST_COMPOSED}
ARGUMENT: dict[str, Any] = {"type": "string", "maxLength": LONGEST_ARGUMENT}
TEXT: dict[str, Any] = {"type": "string", "maxLength": LONGEST_TEXT}
TEXT_OR_NULL = {**TEXT, "type": ["string", "null"]}
#: The part of a schema of a mapping whose keys are names of users.
BY_NAME: dict[str, Any] = {"propertyNames": {"maxLength": LONGEST_NAME}}
UUID: dict[str, Any] = {
    "type": "string",
    "title": "a UUID in lower case",
    "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
}
TIME: dict[str, Any] = {
    "type": ["string", "null"],
    "title": "a time such as 2026-03-01T12:00:00+00:00",
    "maxLength": 100,
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$",
}
#: The years that every database can keep, whatever the zone of the time.
_FIRST, _LAST = datetime(1000, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


def mapping(*required: str, **fields: Any) -> dict[str, Any]:
    """Return the schema of a mapping that may have these fields, and no others.

    >>> mapping("id", id=NAME)["required"]
    ['id']
    """
    needed = {"required": [*required]} if required else {}
    return {"type": "object", **needed, "additionalProperties": False, "properties": fields}


def document(title: str, description: str, *required: str, **fields: Any) -> dict[str, Any]:
    """Return the schema of a whole document with these fields."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    head = {"$schema": draft, "title": title, "description": description}
    return head | mapping(*required, **fields)


def list_of(entry: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a list; ``more`` are keywords such as ``minItems``."""
    return {"type": "array", "items": entry, **more}


def by_name(value: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of a mapping whose keys are names of users, and all values alike."""
    return {"type": "object", **BY_NAME, "additionalProperties": value, **more}


def by_token(value: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of a mapping whose keys are tokens or other composed names."""
    return {**by_name(value, **more), "propertyNames": {"maxLength": LONGEST_COMPOSED}}


def is_duration(seconds: object) -> TypeGuard[int | float]:
    """Return whether a value is a duration in the range of SECONDS.

    >>> [is_duration(s) for s in (0, 2.5, float("nan"), -1, 1e308, True, "1")]
    [True, True, False, False, False, False, False]
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 <= seconds <= LONGEST_S


def moment(text: str) -> datetime:
    """Parse a time that fits TIME, and convert it to UTC; raises ValueError.

    A time without an offset is in UTC.

    >>> moment("2026-03-01T12:00:00+02:00").isoformat()
    '2026-03-01T10:00:00+00:00'
    >>> moment("2026-02-30T12:00:00")
    Traceback (most recent call last):
    ValueError: '2026-02-30T12:00:00' is not a time that exists: day is out of range for month
    """
    try:
        read = datetime.fromisoformat(text)
        found = read.replace(tzinfo=read.tzinfo or UTC)
        if not _FIRST < found.replace(tzinfo=UTC) < _LAST:
            raise ValueError("a year from 1000 to 9999 is expected")
        return found.astimezone(UTC)
    except ValueError as reason:
        raise ValueError(f"{text!r} is not a time that exists: {reason}") from reason


def whole_number(text: str) -> int | None:
    """Parse a whole number of 1 or more; returns None for any other text.

    >>> [whole_number(text) for text in ("12", "0", "-1", "1.5", "9" * 99)]
    [12, None, None, None, None]
    """
    # Python refuses to parse very long numbers, and no setting needs ten digits.
    return int(text) or None if re.fullmatch("[0-9]{1,9}", text) else None


def pairs(
    value: str | Mapping[str, Any], read: Callable[[str, str], Read | None], expected: str
) -> list[Read]:
    """Return what ``read`` makes of each pair of a mapping, or of a text ``KEY=VALUE, KEY=VALUE``.

    A list in a mapping has several values of one key. Raises one ValueError with all pairs of which
    ``read`` makes None, and with what is expected.

    >>> pairs("a=1, b = 2", lambda key, text: (key, int(text)), "KEY=N")
    [('a', 1), ('b', 2)]
    """
    if isinstance(value, Mapping):
        lists = [(k, v if isinstance(v, list | tuple) else [v]) for k, v in value.items()]
        written = [(str(key), str(one)) for key, each in lists for one in each]
    else:
        texts = [text.rpartition("=") for text in re.split(r"[,\n]", value) if text.strip()]
        written = [(key.strip(), text.strip()) for key, _, text in texts]
    made = [read(key, text) for key, text in written]
    wrong = [
        f"{key}={text} is not {expected}" if key else f"{text} is not {expected}"
        for (key, text), found in zip(written, made, strict=True)
        if found is None
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    return [found for found in made if found is not None]


def distinct(
    value: str | Sequence[str], separator: str, read: Callable[[str], str]
) -> tuple[str, ...]:
    """Return what ``read`` makes of each text but empty ones, without duplicates.

    A single text is split at the separator, a regular expression. Raises one ValueError with all
    that ``read`` refuses.
    """
    parts = re.split(separator, value) if isinstance(value, str) else value
    wrong, found = [], []
    for part in filter(None, map(str.strip, parts)):
        try:
            found.append(read(part))
        except ValueError as reason:
            wrong.append(str(reason))
    if wrong:
        raise ValueError("; ".join(wrong))
    return tuple(dict.fromkeys(found))
