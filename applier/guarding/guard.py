# SPDX-License-Identifier: Apache-2.0
"""Decides whether a plan may run, for every verb, request and service.

Its only I/O is to read the approvals of a plan, by a function that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from applier.errors import GuardRefusal
from applier.guarding import approval
from applier.store.entries import GivenApprovals
from applier.wording import resources
from planner import guards
from planner.errors import short
from planner.guards import NO_GUARDS, Guards
from planner.guards.blast_radius import (
    AT_ONCE,
    HOSTS,
    INSTANCES,
    TOKENS,
    Bound,
    Share,
    kind_of,
    touched_as,
)
from planner.plan.model import JOIN, ActionPlan


class Guard(NamedTuple):
    """The demands of a site on all plans; a plan may demand more.

    ``approvals_for`` is how many approvals some plans need, by planner, size or label: see
    :func:`planner.guards.approvals_for`.
    """

    site: Guards = NO_GUARDS
    approvals_for: Mapping[str, int] = {}

    def demanded(self, plan: ActionPlan) -> Guards:
        """Return the demands on a plan: those of the site, and its own."""
        found = guards.both(plan.guards, self.site)
        size = sum(action.action_type != JOIN for action in plan.actions)
        touched = (share.name for share in found.extent if share.touched)
        labels = (*found.labels, *touched, *self._assumed(plan))
        more = guards.approvals_of(
            self.approvals_for, planner=plan.planner, size=size, labels=labels
        )
        return found._replace(approvals=max(found.approvals, more))

    @property
    def most_approvals(self) -> int:
        """How many approvals the site demands of a plan at most."""
        return max(self.site.approvals, *self.approvals_for.values(), 0)

    def _assumed(self, plan: ActionPlan) -> Iterator[str]:
        """Yield the labels of hosts, such as ``rack/r1``, if it is not known what a plan touches.

        They count as touched. Otherwise a plan would need fewer approvals if it was made without
        facts.
        """
        labels = guards.labels_of(self.approvals_for)
        of_hosts = [label for label in labels if kind_of(label) != label]
        unknown = unknown_kinds(plan, map(kind_of, of_hosts))
        return (label for label in of_hosts if kind_of(label) in unknown)

    def refusal(
        self, plan: ActionPlan, given: Callable[[str], GivenApprovals], now: datetime
    ) -> str | None:
        """Return why a plan may not run, in a sentence; None if it may.

        ``given`` returns the approvals of the plan of a uuid.
        """
        demanded = self.demanded(plan)
        exceeded = touches_too_much(plan, demanded)
        if exceeded or not demanded.approvals:
            return exceeded
        return approval.refusal(plan, demanded, given(plan.uuid), now)

    def require(
        self, plan: ActionPlan, given: Callable[[str], GivenApprovals], now: datetime
    ) -> None:
        """Raise GuardRefusal if a plan may not run; the parameters are those of :meth:`refusal`."""
        why = self.refusal(plan, given, now)
        if why:
            raise GuardRefusal(plan.uuid, why)


def touches_too_much(plan: ActionPlan, demanded: Guards) -> str | None:
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


def raise_refused(plan: ActionPlan, demanded: Guards, wanted: Mapping[str, int]) -> str | None:
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
