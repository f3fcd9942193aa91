# SPDX-License-Identifier: Apache-2.0
"""Option types for a number per action type: ``nop:70,sleep:40`` in ``watcher.conf``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from oslo_config import cfg, types

from planner.schemas import ranges


def finite(value: object) -> int | float:
    """Return a number, or the number in a text, as int or float.

    Raises ValueError for infinity, NaN, a bool, and a text with underscores or non-ASCII digits.

    >>> [finite(v) for v in (9, "100", "2.5", -5)]
    [9, 100, 2.5, -5]
    """
    number = value
    if isinstance(value, str) and value.isascii() and "_" not in value:
        with suppress(ValueError):
            number = float(value)
            number = int(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def at_least_one(value: object) -> int:
    """Return an integer of 1 to ``ranges.MOST``, read from a number or a text; raises ValueError.

    >>> at_least_one("2")
    2
    >>> at_least_one(0)
    Traceback (most recent call last):
    ValueError: 0 is not a whole number of 1 or more
    """
    try:
        number = value if type(value) is int else finite(value)
    except ValueError:
        number = 0
    if number < 1 or number != int(number):
        raise ValueError(f"{value!r} is not a whole number of 1 or more")
    if number > ranges.MOST:
        raise ValueError(f"{value!r} is more than {ranges.MOST}")
    return int(number)


class NumberByType(types.Dict):
    """Option type: a number for each action type, as text (``nop:70,sleep:40``) or as a mapping.

    ``read`` converts each number; it raises ValueError for an invalid one.
    """

    def __init__(self, read: Any) -> None:
        super().__init__(value_type=types.String(), bounds=False)
        self.read = read

    def __call__(self, value: object) -> dict[str, Any]:
        """Return the numbers by action type; raises one ValueError that names all invalid ones."""
        if not isinstance(value, str | Mapping):
            raise ValueError(f"{value!r} is neither a mapping nor NAME:NUMBER pairs")
        pairs: Mapping[str, object] = (
            value if isinstance(value, Mapping) else super().__call__(value)
        )
        numbers, wrong = {}, []
        for name, number in pairs.items():
            try:
                numbers[str(name)] = self.read(number)
            except ValueError as reason:
                wrong.append(f"{name}: {reason}")
        if wrong:
            raise ValueError("; ".join(wrong))
        return numbers


def weights_option(default: Mapping[str, int]) -> cfg.Opt:
    """Return the option ``weights``: finite numbers; the heaviest types are planned first."""
    return cfg.Opt(
        "weights",
        type=NumberByType(finite),
        default=dict(default),
        help="Weight of each action type: any finite number; heavier types go first. The values "
        "are merged over the defaults; a type without a weight has 0.",
    )


#: The weight of an action type that the option ``weights`` does not name.
UNNAMED_WEIGHT = 0


def unnamed(
    option: str, numbers: Mapping[str, object], used: Sequence[str], instead: int
) -> list[str]:
    """Return a warning for each used action type that is not in ``numbers``.

    ``instead`` is the number that is used for it. ``option`` is the name of the option in the text.
    """
    return [
        f"action type {name!r} has no {option}: {instead} is used"
        for name in sorted(set(used) - set(numbers))
    ]
