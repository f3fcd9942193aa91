# SPDX-License-Identifier: Apache-2.0
"""Checksums of action plans: plans with the same actions and links have equal digests.

The uuids of a plan do not change its digest. A digest begins with its version. Version 2 covers
every field that changes what a run does. Version 1 leaves out ``tolerances`` and ``on_failure``;
plans that older releases saved have a digest of version 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model import Action, ActionPlan, Blocker, Trigger

#: The version of the digests of new plans.
NEWEST = 2
#: The first characters of a digest, by version.
PREFIXES: Mapping[int, str] = {1: "sha256:", NEWEST: "v2:sha256:"}


def of(plan: ActionPlan, version: int = NEWEST) -> str:
    """Return the digest of a plan.

    The time is linear in actions and edges: a tuple of uuids that many actions share is read once.
    """
    head: dict[str, Any] = {"planner": plan.planner, "limits": plan.limits}
    if version > 1:
        head["tolerances"] = [dict(tolerance) for tolerance in plan.tolerances]
        head["on_failure"] = plan.on_failure
    total = hashlib.sha256(_encode(head))
    for line in _lines(plan.actions):
        total.update(b"\n" + line)
    return PREFIXES[version] + total.hexdigest()


def fits(plan: ActionPlan, digest: str) -> bool:
    """Return whether a digest, of any known version, is the digest of this plan."""
    versions = (version for version, prefix in PREFIXES.items() if digest.startswith(prefix))
    return any(digest == of(plan, version) for version in versions)


def _lines(actions: Sequence[Action]) -> Iterator[bytes]:
    """Encode the fields of each action that the digest covers. Links are written as positions."""
    position = {action.uuid: i for i, action in enumerate(actions)}
    shared: dict[int, str] = {}

    def links(uuids: tuple[str, ...]) -> str:
        text = shared.get(id(uuids))
        if text is None:
            text = shared[id(uuids)] = ",".join(str(position.get(u, u)) for u in uuids)
        return text

    def events(pairs: Iterable[Trigger | Blocker]) -> list[Any]:
        return [[position.get(p.action, p.action), p.outcomes] for p in pairs]

    for a in actions:
        what: list[Any] = [a.name, a.action_type, a.resource_id, a.input_parameters]
        what += [a.tokens, a.estimate_s, a.timeout_s, a.retries]
        after = [links(a.parents), links(a.needs), [links(group) for group in a.needs_any]]
        covered = [what, after, events(a.triggers)]
        if a.blocked_by:
            covered.append(events(a.blocked_by))
        yield _encode(covered)


def _encode(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
