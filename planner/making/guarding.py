# SPDX-License-Identifier: Apache-2.0
"""Adds to a new plan its guards, and the numbers of hosts and instances that it touches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from planner import guards
from planner.errors import InvalidInput, Mistake
from planner.guards import NO_GUARDS, Guards, blast_radius
from planner.plan.extent import Members, extent, limited
from planner.plan.model import ActionPlan
from planner.schemas import ranges


class Demands(NamedTuple):
    """Guards besides those of a document.

    ``own`` replaces single guards of the document, by name. ``site`` are the guards that the
    configuration demands; only their ``blast_radius_at_once`` is written into the plan.
    """

    own: Mapping[str, Any] = {}
    site: Guards = NO_GUARDS


NO_DEMANDS = Demands()


def guarded(plan: ActionPlan, document: Mapping[str, Any], demands: Demands) -> ActionPlan:
    """Return a plan with its guards, ``facts_at``, and limits that ensure blast_radius_at_once.

    Raises InvalidInput if the guards are wrong, or if no limit can ensure that bound.
    """
    facts = document.get("facts")
    at = plan.facts_at or _read_at(facts)
    own = document.get("guards")
    if at is None and not own and demands == NO_DEMANDS:
        return plan
    known = _own(own)._replace(**demands.own) if own or demands.own else plan.guards
    at_once = guards.both(known, demands.site).blast_radius_at_once
    known = known._replace(blast_radius_at_once=at_once)
    if at is None and not at_once:
        return replace(plan, guards=known)
    members = Members(facts if at is not None and isinstance(facts, Mapping) else {})
    known = known._replace(extent=extent(plan.actions, members))
    plan = replace(plan, guards=known, facts_at=at)
    if not at_once:
        return plan
    actions, limits = limited(plan.actions, members, at_once)
    impossible = sorted(token for token, number in limits.items() if number < 1)
    if impossible:
        what = ", ".join(token.removeprefix(blast_radius.AT_ONCE) for token in impossible)
        text = (
            f"one action of this plan touches more of {what} at once than is allowed, or it is not "
            "known how many there are; accepted: a larger bound, or facts that say when they were "
            "read"
        )
        raise InvalidInput([Mistake(text, place="blast_radius_at_once")])
    return replace(plan, actions=actions, limits={**plan.limits, **limits})


def with_facts_of(plan: ActionPlan, other: ActionPlan) -> ActionPlan:
    """Return a plan with the times and the extent of the facts of another plan.

    Plans that do the same, made at different times, then have equal digests.
    """
    guards = plan.guards._replace(extent=other.guards.extent)
    return replace(plan, created_at=other.created_at, facts_at=other.facts_at, guards=guards)


def _own(value: Mapping[str, Any] | None) -> Guards:
    """Return the guards of a document; raises InvalidInput for wrong values that fit the schema."""
    try:
        return guards.of(value or {})
    except ValueError as reason:
        raise InvalidInput([Mistake(str(reason), ("guards",))]) from reason


def _read_at(facts: Any) -> datetime | None:
    """Return the time at which facts were read from a cloud; None if they have no valid time."""
    at = facts.get("at") if isinstance(facts, Mapping) else None
    try:
        return ranges.moment(at) if isinstance(at, str) else None
    except ValueError:
        return None
