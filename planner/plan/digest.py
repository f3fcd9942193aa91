# SPDX-License-Identifier: Apache-2.0
"""Checksums of action plans: plans that would run in the same way have equal digests.

A digest covers every field that changes what a run does or whether it may start. The uuids of a
plan do not change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.plan.graph_algorithms import once
from planner.safe_text import sorted_json

#: The first characters of a digest.
PREFIX = "sha256:"
#: The names of the ``values`` of a CoveredAction.
COVERED = (
    *("name", "action_type", "resource_id", "input_parameters"),
    *("tokens", "estimate_s", "timeout_s", "retries"),
)


class CoveredAction(NamedTuple):
    """The parts of an action that a digest covers; links name other actions by uuid.

    ``values`` are the other fields that a run uses, named by COVERED. A trigger or a blocker is a
    uuid and outcomes.
    """

    uuid: str
    values: Sequence[Any]
    parents: tuple[str, ...]
    needs: tuple[str, ...]
    needs_any: Sequence[tuple[str, ...]]
    triggers: Sequence[tuple[str, Sequence[str]]]
    blocked_by: Sequence[tuple[str, Sequence[str]]]
    places: Sequence[tuple[str, str]] = ()


def of(actions: Sequence[CoveredAction], head: Mapping[str, Any]) -> str:
    """Return the digest of a plan with these actions; ``head`` are its own values, as JSON types.

    The time is linear in actions and edges: a tuple of uuids that many actions share is read once.
    """
    total = hashlib.sha256(sorted_json(head).encode())
    for line in _lines(actions):
        total.update(f"\n{line}".encode())
    return PREFIX + total.hexdigest()


def _lines(actions: Sequence[CoveredAction]) -> Iterator[str]:
    """Yield the covered parts of each action as JSON, with links as positions in the plan."""
    position = {action.uuid: i for i, action in enumerate(actions)}

    def positions(uuids: tuple[str, ...]) -> str:
        return ",".join([str(position.get(u, u)) for u in uuids])

    links = once(positions)

    def events(pairs: Iterable[tuple[str, Sequence[str]]]) -> list[Any]:
        return [[position.get(uuid, uuid), outcomes] for uuid, outcomes in pairs]

    # Few actions have groups, triggers or blockers.
    for _, values, parents, needs, needs_any, triggers, blocked_by, places in actions:
        groups = [links(group) for group in needs_any] if needs_any else ()
        after = links(parents) if parents else "", links(needs) if needs else "", groups
        of_others = events(triggers) if triggers else (), events(blocked_by) if blocked_by else ()
        yield sorted_json([values, after, of_others, *([places] if places else [])])
