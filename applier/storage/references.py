# SPDX-License-Identifier: Apache-2.0
"""Which plan a person means: by its uuid, the beginning of its uuid, or its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from applier.errors import PlanNotFound

#: The fewest characters that are read as the beginning of a uuid; fewer are only a name.
SHORTEST_BEGINNING = 4
#: The word for the plan that was saved last.
LAST = "last"


def choose(reference: str, known: Collection[tuple[str, str | None]]) -> str:
    """Return the uuid of the plan that a reference means, of (uuid, name) pairs.

    A whole uuid is preferred to a beginning or a name; of these there must be only one. Raises
    PlanNotFound with the beginnings of the uuids of all plans that fit.

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
    """Cut uuids to the first eight characters, or to as many as tell them apart; sorted."""
    whole = sorted(uuids)
    for length in range(8, max(map(len, whole), default=0)):
        short = [uuid[:length] for uuid in whole]
        if len(set(short)) == len(whole):
            return short
    return whole
