# SPDX-License-Identifier: Apache-2.0
"""Expands settings with several values: ``migrate.parallelization=1..8``, ``max_workers=2,4``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from planner.errors import InvalidInput, Mistake

#: The maximum number of combinations; a longer table would not be readable.
MOST = 200


def expand(texts: Sequence[str]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the keys with several values, and all combinations of settings, the last key fastest.

    Raises InvalidInput for a range that runs backwards and for too many combinations.

    >>> expand(["ordering=slots", "migrate.parallelization=1..3"])[0]
    ['migrate.parallelization']
    >>> expand(["a=1..2", "b=x,y"])[1]
    [('a=1', 'b=x'), ('a=1', 'b=y'), ('a=2', 'b=x'), ('a=2', 'b=y')]
    """
    keys, choices, wrong = [], [], []
    for text in texts:
        key, _, value = text.partition("=")
        found = list(_values(value))
        if not found:
            wrong.append(
                Mistake(f"{value!r} is not a range from low to high", place=f"--set {text}")
            )
        if len(found) > 1:
            keys.append(key)
        choices.append([f"{key}={one}" for one in found])
    number = 1
    for choice in choices:
        number *= len(choice)
    if number > MOST:
        text = f"more than {MOST} combinations: at most {MOST} are accepted"
        wrong.append(Mistake(text, place="--set"))
    if wrong:
        raise InvalidInput(wrong)
    return keys, list(itertools.product(*choices))


def values(keys: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Return the value of each key in a combination of settings.

    >>> values(["b"], ["a=1", "b=x"])
    ['x']
    """
    given = dict(setting.split("=", 1) for setting in settings)
    return [given[key] for key in keys]


def _values(text: str) -> Iterator[str]:
    between = re.fullmatch(r"([0-9]{1,6})\.\.([0-9]{1,6})", text)
    if between:
        return map(str, range(int(between[1]), min(int(between[2]), int(between[1]) + MOST) + 1))
    return iter(text.split(",")) if "," in text and ":" not in text else iter([text])
