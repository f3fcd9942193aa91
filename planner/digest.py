# SPDX-License-Identifier: Apache-2.0
"""Checksums of action plans: plans that would run in the same way have equal digests.

The uuids of a plan do not change its digest. A digest begins with its version. Version 5 covers
every field that changes what a run does or whether it may start, and the guards of plans that have
some. Version 4 leaves out the time and the extent of the facts. Version 3 also leaves out
``cloud``. Version 2 does so, too, and differs for durations of 5 and 5.0 seconds. Version 1 also
leaves out ``tolerances`` and ``on_failure``. Plans of older releases have older versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from planner import json_text

#: The version of the digests of new plans.
NEWEST = 5
#: The first version that covers the cloud.
WITH_CLOUD = 4
#: The first version that covers the time and the extent of the facts.
WITH_FACTS = 5
#: The first characters of a digest, by version.
PREFIXES: Mapping[int, str] = {
    1: "sha256:",
    2: "v2:sha256:",
    3: "v3:sha256:",
    4: "v4:sha256:",
    NEWEST: "v5:sha256:",
}

_text = json_text.compact(sort_keys=True)


class CoveredAction(NamedTuple):
    """The parts of an action that a digest covers; links name other actions by uuid.

    ``values`` are the other fields that a run uses. A trigger or a blocker is a uuid and outcomes.
    """

    uuid: str
    values: Sequence[Any]
    parents: tuple[str, ...]
    needs: tuple[str, ...]
    needs_any: Sequence[tuple[str, ...]]
    triggers: Sequence[tuple[str, Sequence[str]]]
    blocked_by: Sequence[tuple[str, Sequence[str]]]


def of(
    actions: Sequence[CoveredAction],
    *,
    planner: str,
    limits: Mapping[str, int],
    tolerances: Sequence[Mapping[str, Any]],
    on_failure: str | None,
    cloud: str | None,
    aged_from: datetime | None,
    guards: Mapping[str, Any],
    version: int = NEWEST,
) -> str:
    """Return the digest of a plan with these actions and values.

    ``aged_from`` is the time from which the age of the plan counts, if it has to be kept.
    The time is linear in actions and edges: a tuple of uuids that many actions share is read once.
    """
    head: dict[str, Any] = {"planner": planner, "limits": limits}
    if version > 1:
        head["tolerances"] = [dict(tolerance) for tolerance in tolerances]
        head["on_failure"] = on_failure
    if version >= WITH_CLOUD:
        head["cloud"] = cloud
    if version >= WITH_FACTS:
        head["aged_from"] = None if aged_from is None else aged_from.astimezone(UTC).isoformat()
    if guards:
        head["guards"] = guards
    total = hashlib.sha256(_text(head).encode())
    for line in _lines(actions):
        total.update(f"\n{line}".encode())
    return PREFIXES[version] + total.hexdigest()


def versions_of(digest: str) -> list[int]:
    """Return the version of a digest as a list of one; an empty list for any other text."""
    return [version for version, prefix in PREFIXES.items() if digest.startswith(prefix)]


def is_older(digest: str | None, version: int) -> bool:
    """Return whether a digest has a version below ``version``; False if it is no digest."""
    return digest is not None and any(v < version for v in versions_of(digest))


def _lines(actions: Sequence[CoveredAction]) -> Iterator[str]:
    """Yield the covered parts of each action as JSON, with links as positions in the plan."""
    position = {action.uuid: i for i, action in enumerate(actions)}
    shared: dict[int, str] = {}

    def links(uuids: tuple[str, ...]) -> str:
        text = shared.get(id(uuids))
        if text is None:
            text = shared[id(uuids)] = ",".join([str(position.get(u, u)) for u in uuids])
        return text

    def events(pairs: Iterable[tuple[str, Sequence[str]]]) -> list[Any]:
        return [[position.get(uuid, uuid), outcomes] for uuid, outcomes in pairs]

    # Few actions have groups, triggers or blockers.
    for _, values, parents, needs, needs_any, triggers, blocked_by in actions:
        groups = [links(group) for group in needs_any] if needs_any else ()
        after = links(parents) if parents else "", links(needs) if needs else "", groups
        covered = [values, after, events(triggers) if triggers else ()]
        if blocked_by:
            covered.append(events(blocked_by))
        yield _text(covered)
