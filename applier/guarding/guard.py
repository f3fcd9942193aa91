# SPDX-License-Identifier: Apache-2.0
"""Decides whether a plan may run, for every verb, request and service.

Its only I/O is to read the approvals of a plan from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from applier.errors import GuardRefusal
from applier.guarding import approval, blast_radius
from applier.store.approvals import ApprovalStore
from planner import guards
from planner.blast_radius import kind_of
from planner.guards import NO_GUARDS, Guards
from planner.model import JOIN, ActionPlan


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

    def _assumed(self, plan: ActionPlan) -> Iterator[str]:
        """Yield the labels of hosts, such as ``rack/r1``, if it is not known what a plan touches.

        They count as touched. Otherwise a plan would need fewer approvals if it was made without
        facts.
        """
        labels = guards.labels_of(self.approvals_for)
        of_hosts = [label for label in labels if kind_of(label) != label]
        unknown = blast_radius.unknown_kinds(plan, map(kind_of, of_hosts))
        return (label for label in of_hosts if kind_of(label) in unknown)

    def refusal(self, plan: ActionPlan, store: ApprovalStore, now: datetime) -> str | None:
        """Return why a plan may not run, in a sentence; None if it may."""
        demanded = self.demanded(plan)
        exceeded = blast_radius.refusal(plan, demanded)
        if exceeded or not demanded.approvals:
            return exceeded
        return approval.refusal(plan, demanded, store.approvals(plan.uuid), now)

    def require(self, plan: ActionPlan, store: ApprovalStore, now: datetime) -> None:
        """Raise GuardRefusal if a plan may not run."""
        why = self.refusal(plan, store, now)
        if why:
            raise GuardRefusal(plan.uuid, why)
