# SPDX-License-Identifier: Apache-2.0
"""Checksums of action plans: plans that would run in the same way have equal digests.

A digest covers every field that changes what a run does or whether it may start. The uuids of a
plan do not change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner.plan.graph_algorithms import once
from planner.safe_text import sorted_json

#: An action of :mod:`planner.plan.model`, which imports this module.
Action = Any
#: The first characters of a digest.
PREFIX = "sha256:"


def of(actions: Sequence[Action], head: Mapping[str, Any]) -> str:
    """Return the digest of a plan with these actions; ``head`` are its own values, as JSON types.

    The time is linear in actions and edges: a tuple of uuids that many actions share is read once.
    """
    total = hashlib.sha256(sorted_json(head).encode())
    for line in _lines(actions):
        total.update(f"\n{line}".encode())
    return PREFIX + total.hexdigest()


def covered(action: Action) -> dict[str, Any]:
    """Return the covered fields of an action, as JSON types, without its links and places.

    The same number of seconds has the same digest, whether it is written 5 or 5.0.
    """
    estimate_s, timeout_s = action.estimate_s, action.timeout_s
    return {
        "name": action.name,
        "action_type": action.action_type,
        "resource_id": action.resource_id,
        "input_parameters": action.input_parameters,
        "tokens": action.tokens,
        "estimate_s": None if estimate_s is None else float(estimate_s),
        "timeout_s": None if timeout_s is None else float(timeout_s),
        "retries": action.retries,
    }


def _lines(actions: Sequence[Action]) -> Iterator[str]:
    """Yield the covered parts of each action as JSON, with links as positions in the plan."""
    position = {action.uuid: i for i, action in enumerate(actions)}

    def positions(uuids: tuple[str, ...]) -> str:
        return ",".join([str(position.get(u, u)) for u in uuids])

    links = once(positions)

    def events(pairs: Iterable[tuple[str, Sequence[str]]]) -> list[Any]:
        return [[position.get(uuid, uuid), outcomes] for uuid, outcomes in pairs]

    # Few actions have groups, triggers, blockers or places.
    for a in actions:
        groups = [links(group) for group in a.needs_any] if a.needs_any else ()
        after = links(a.parents) if a.parents else "", links(a.needs) if a.needs else "", groups
        triggers = events(a.triggers) if a.triggers else ()
        blockers = events(a.blocked_by) if a.blocked_by else ()
        places = [a.places] if a.places else []
        yield sorted_json([[*covered(a).values()], after, (triggers, blockers), *places])
