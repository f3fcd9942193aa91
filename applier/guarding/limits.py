# SPDX-License-Identifier: Apache-2.0
"""Decides whether limits of a plan may be raised while it runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from planner.errors import short
from planner.guards import Guards
from planner.guards.blast_radius import AT_ONCE
from planner.plan.model import ActionPlan


class Raised(NamedTuple):
    """A requested limit of a token of resources, and the smaller one of the plan."""

    token: str
    wanted: int
    planned: int


def raised_limits(plan: ActionPlan, wanted: Mapping[str, int]) -> Iterator[Raised]:
    """Yield the limits that are larger than those of the plan.

    ``KIND:*`` is the limit of each token of that kind that has no limit of its own.
    """
    for token, number in wanted.items():
        planned = plan.limits.get(token, plan.limits.get(f"{token.partition(':')[0]}:*"))
        if planned is not None and number > planned:
            yield Raised(token, number, planned)


def touches_more_at_once(plan: ActionPlan, wanted: Mapping[str, int]) -> bool:
    """Return whether limits would let a plan touch more at once than its guards allow."""
    return any(one.token.startswith(AT_ONCE) for one in raised_limits(plan, wanted))


def refusal(plan: ActionPlan, demanded: Guards, wanted: Mapping[str, int]) -> str | None:
    """Return why limits may not be raised, in a sentence; None if they may.

    Limits of what may be touched at once are never raised, and none of a plan that needs approvals:
    it was approved with its limits.
    """
    for one in raised_limits(plan, wanted):
        if one.token.startswith(AT_ONCE):
            why = "blast_radius_at_once bounds it"
        elif demanded.approvals:
            why = "it was approved with that"
        else:
            continue
        return (
            f"the limit of {one.token} in plan {short(plan.uuid)} is {one.planned}, and {why}: it "
            f"may be lowered, not raised to {one.wanted}"
        )
    return None
