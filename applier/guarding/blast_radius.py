# SPDX-License-Identifier: Apache-2.0
"""Decides whether a plan touches too much of the cloud, in all or at once. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from applier.wording import resources
from planner.blast_radius import HOSTS, INSTANCES, TOKENS, Bound, Share, kind_of, touched_as
from planner.errors import short
from planner.guards import Guards
from planner.model import ActionPlan


def refusal(plan: ActionPlan, demanded: Guards) -> str | None:
    """Return why a plan touches too much, in a sentence; None if it does not."""
    unknown = unknown_kinds(plan, [bound.kind for bound in demanded.blast_radius])
    for bound in demanded.blast_radius:
        if bound.kind in unknown:
            return (
                f"it is not known which {bound.kind} what plan {short(plan.uuid)} touches belongs "
                f"to, of which at most {bound.words} may be: make it with facts that say so, and "
                "when they were read (create --facts-from)"
            )
        for share in _shares(plan, bound.kind):
            why = _exceeds(bound, share)
            if why:
                return f"plan {short(plan.uuid)} touches {why}"
    if demanded.blast_radius_at_once != plan.guards.blast_radius_at_once:
        return (
            f"plan {short(plan.uuid)} was made before it was bounded what may be touched at once "
            "(blast_radius_at_once): make a new plan"
        )
    return None


def unknown_kinds(plan: ActionPlan, kinds: Iterable[str]) -> Collection[str]:
    """Return those of ``kinds``, such as ``rack``, of which it is not known what a plan touches.

    A kind is left out if the plan touches no host or, for ``group``, no instance at all.
    """
    known = {HOSTS, INSTANCES, *(kind_of(share.name) for share in plan.guards.extent)}
    unknown = set(kinds) - known
    return {kind for kind in unknown if resources(plan.actions, TOKENS[touched_as(kind)][:-1])}


def _shares(plan: ActionPlan, kind: str) -> Iterator[tuple[str, int, int | None]]:
    """Yield the name of each share of a kind, how many a plan touches, and the total or None."""
    known = {share.name: share for share in plan.guards.extent}
    if kind in (HOSTS, INSTANCES):
        touched = len(resources(plan.actions, TOKENS[kind][:-1]))
        yield kind, touched, known[kind].total if kind in known else None
    else:
        for share in known.values():
            if kind_of(share.name) == kind:
                yield share.name, share.touched, share.total


def _exceeds(bound: Bound, share: tuple[str, int, int | None]) -> str | None:
    name, touched, total = share
    allowed = bound.allowed(total)
    if not touched or (allowed is not None and touched <= allowed):
        return None
    if allowed is None:
        return (
            f"{touched} {name}, at most {bound.words} may be, and it is not known how many there "
            "are: make it with facts that say when they were read (create --facts-from)"
        )
    return f"{words(Share(name, touched, total or 0))}, and at most {bound.words} may be"


def words(share: Share) -> str:
    """Return a share of the cloud that a plan touches, in words.

    >>> words(Share("hosts", 2, 14)), words(Share("rack/r1", 1, 7)), words(Share("hosts", 1, 0))
    ('2 of 14 hosts', '1 of 7 of rack r1', '1 hosts')
    """
    number = f"{share.touched} of {share.total}" if share.total else str(share.touched)
    kind, _, name = share.name.partition("/")
    return f"{number} of {kind} {name}" if name else f"{number} {kind}"
