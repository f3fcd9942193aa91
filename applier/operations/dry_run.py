# SPDX-License-Identifier: Apache-2.0
"""Checks a plan without running it: the prechecks of its actions, the cloud, and the guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from applier.assembly import Assembly
from applier.errors import GuardRefusal
from applier.operations import drift
from applier.run import plan_cloud
from applier.run.prechecks import Precheck, Prechecked, check_all
from planner.model import ActionPlan


class DryRun(NamedTuple):
    """The findings of a dry run.

    ``checked`` are the results of the prechecks in plan order. ``moved`` are sentences about what
    differs in the cloud from the plan; None if the plan needs no cloud. ``guard`` is the sentence
    with which a guard refuses the plan; None if none does.
    """

    checked: Sequence[Prechecked]
    moved: Sequence[str] | None
    guard: str | None

    @property
    def is_refused(self) -> bool:
        """Whether anything is refused, or not as planned."""
        refused = any(one.found is Precheck.REFUSED for one in self.checked)
        return refused or bool(self.moved) or self.guard is not None


def dry_run(assembly: Assembly, plan: ActionPlan) -> DryRun:
    """Call the prechecks of a plan, compare it with the cloud, and check its guards.

    Nothing is stored or changed. Raises ActionFailed if the cloud cannot be read.
    """
    environment = assembly.environment.of_plan(plan)
    try:
        checked = check_all(plan.actions, environment)
    finally:
        environment.close()
    needs_cloud = plan_cloud.needed_by(plan, assembly.plugins) is not None
    moved = None
    if needs_cloud:
        moved = [difference.detail for difference in drift.found(plan, assembly.facts())]
    guard = None
    try:
        assembly.require_allowed(plan)
    except GuardRefusal as refusal:
        guard = str(refusal)
    return DryRun(checked, moved, guard)


def as_dict(plan: ActionPlan, found: DryRun) -> dict[str, Any]:
    """Return what a dry run found as a mapping, for JSON."""
    return {
        "uuid": plan.uuid,
        "name": plan.name,
        "cloud": plan_cloud.name_of(plan),
        "refused": found.is_refused,
        "guard": found.guard,
        "moved": None if found.moved is None else list(found.moved),
        "actions": [
            {
                "uuid": one.action.uuid,
                "name": one.action.name,
                "found": str(one.found),
                "why": one.why,
            }
            for one in found.checked
        ],
    }
