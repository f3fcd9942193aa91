# SPDX-License-Identifier: Apache-2.0
"""Planner ``rack_by_rack``: one failure domain at a time."""

from __future__ import annotations

from collections.abc import Sequence

from oslo_config import cfg

from planner.contract import Options
from planner.errors import InvalidInput, Mistake
from planner.plan.model import ActionPlan, Effect, ProposedAction, Solution
from planner.planners.solution import SolutionPlanner


class RackByRackPlanner(SolutionPlanner):
    """Finishes one rack before it starts the next; in a rack, hosts go side by side.

    Actions of one host follow each other as the document lists them. What concerns no host comes
    last. The rack of a host comes from the document's ``facts.hosts``.
    """

    NAME = "rack_by_rack"
    OPTIONS = (
        cfg.ListOpt(
            "racks",
            default=[],
            help="Racks that go first, in this order; the others follow in the order in which the "
            "document comes to them.",
        ),
    )

    def plan(self, problem: Solution, options: Options) -> ActionPlan:
        """Put a join between racks; inside one, chain the actions of each host."""
        hosts = [host_of(action, problem) for action in problem.actions]
        racks = racks_of(hosts, problem)
        present = dict.fromkeys(rack for rack in racks if rack is not None)
        draft = self.draft(problem)
        ends: tuple[int, ...] = ()
        for rack in [*dict.fromkeys([*options.racks, *present]), None]:
            members = [i for i, own in enumerate(racks) if own == rack]
            if members and ends:
                ends = (draft.join(ends, "the rack before is finished"),)
            chains: dict[str | None, tuple[int, ...]] = {}
            for i in members:
                reason = f"rack {rack}, {hosts[i]}" if rack else "concerns no host"
                before = chains.get(hosts[i], ends)
                chains[hosts[i]] = (draft.add(problem.actions[i], before, reason),)
            ends = tuple(end for (end,) in chains.values()) or ends
        idle = [
            f"option racks: nothing is done in {r!r}" for r in options.racks if r not in present
        ]
        return draft.plan(warnings=idle)


def host_of(action: ProposedAction, problem: Solution) -> str | None:
    """Name the host that an action works on: for a move the one that it leaves."""
    touched = [t.resource.partition(":") for t in action.touches if t.effect is not Effect.ENTERS]
    on = {kind: name for kind, _, name in touched}
    fact = problem.facts.get("instances", {}).get(on.get("instance", ""), {})
    return on.get("node") or fact.get("host")


def racks_of(hosts: Sequence[str | None], problem: Solution) -> list[str | None]:
    """Give the rack of each host; raises InvalidInput with every one that the facts do not know."""
    known = problem.facts.get("hosts", {})
    racks = [None if host is None else known.get(host, {}).get("rack") for host in hosts]
    missing = [
        Mistake(f"facts.hosts.{host}.rack is missing: it decides when this is done", ("actions", i))
        for i, (host, rack) in enumerate(zip(hosts, racks, strict=True))
        if host is not None and rack is None
    ]
    if missing:
        raise InvalidInput(missing)
    return racks
