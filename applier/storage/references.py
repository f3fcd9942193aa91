# SPDX-License-Identifier: Apache-2.0
"""Finds the plan that a user names: by its uuid, the beginning of its uuid, or its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from applier.errors import PlanNotFound

#: A reference with fewer characters is compared with names only, not with beginnings of uuids.
SHORTEST_BEGINNING = 4
#: ``last`` or ``last~N``.
LAST = re.compile("last(?:~([0-9]{1,9}))?")


def before_last(reference: str) -> int | None:
    """Return how many plans were saved after the one that ``last`` or ``last~N`` names.

    None for any other reference.

    >>> before_last("last"), before_last("last~1"), before_last("lasting")
    (0, 1, None)
    """
    found = LAST.fullmatch(reference)
    return int(found[1] or 0) if found else None


def choose(reference: str, known: Collection[tuple[str, str | None]]) -> str:
    """Return the uuid of the plan that matches a reference; ``known`` are (uuid, name) pairs.

    An equal uuid is preferred. Otherwise exactly one plan must match by its name or by the
    beginning of its uuid. Raises PlanNotFound with the shortened uuids of all plans that match.

    >>> plans = [("6a1f-1", "web"), ("6a1f-2", None), ("77e0-3", "web-2")]
    >>> choose("77e0", plans), choose("web", plans), choose("6a1f-2", plans)
    ('77e0-3', '6a1f-1', '6a1f-2')
    >>> choose("6a1f", plans)
    Traceback (most recent call last):
    applier.errors.PlanNotFound: '6a1f' matches 2 plans: 6a1f-1, 6a1f-2
    """
    if any(uuid == reference for uuid, _ in known):
        return reference
    long_enough = len(reference) >= SHORTEST_BEGINNING
    fits = [
        uuid
        for uuid, name in known
        if name == reference or (long_enough and uuid.startswith(reference))
    ]
    if len(fits) != 1:
        raise PlanNotFound(reference, beginnings(fits))
    return fits[0]


def beginnings(uuids: Iterable[str]) -> list[str]:
    """Shorten uuids to eight characters, or to more if they are not distinct then; sorted."""
    whole = sorted(uuids)
    for length in range(8, max(map(len, whole), default=0)):
        short = [uuid[:length] for uuid in whole]
        if len(set(short)) == len(whole):
            return short
    return whole
