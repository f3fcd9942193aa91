# SPDX-License-Identifier: Apache-2.0
"""Node resource consolidation: disable hosts, migrate node by node, enable hosts.

Source: Watcher's planner of that name. Actions that disable a host have no parents. The migrations
off one source node form a chain, and each also follows all disabling actions. All other changes of
a service's state follow the last migration of each chain.
"""

from __future__ import annotations

from collections import defaultdict

from planner.contract import Options
from planner.errors import InvalidInput, Mistake
from planner.plan.model import ActionPlan, ProposedAction, Solution
from planner.planners import document_links
from planner.planners.solution import SolutionPlanner, host_of

TYPES = ("change_nova_service_state", "migrate")


class NodeResourceConsolidationPlanner(SolutionPlanner):
    """Disables hosts first, migrates in one chain for each source node, enables hosts last.

    As in Watcher, only ``change_nova_service_state`` and ``migrate`` are accepted, and every state
    other than ``disabled`` enables the host.
    """

    NAME = "node_resource_consolidation"

    def plan(self, problem: Solution, options: Options) -> ActionPlan:  # noqa: ARG002
        """Return the plan; chains are in the order in which their source nodes first occur.

        Raises InvalidInput for actions of types that are not in TYPES.
        """
        disables, chains, enables = sort(problem)
        draft = self.draft(problem)
        disabled = tuple([draft.add(a, (), "disabled first") for a in disables])
        last: list[int] = []
        for node, moves in chains.items():
            parents = disabled
            for k, action in enumerate(moves, 1):
                reason = f"move {k} of {len(moves)} off {node or 'an unknown host'}"
                position = draft.add(action, parents, reason)
                parents = (*disabled, position)
            last.append(position)
        after = tuple(last)
        for action in enables:
            draft.add(action, after, "enabled last")
        return draft.plan()


def sort(
    solution: Solution,
) -> tuple[list[ProposedAction], dict[str | None, list[ProposedAction]], list[ProposedAction]]:
    """Return disabling actions, migrations by source node, enabling actions; each in input order.

    Migrations whose source node is not known form one chain, with the key None, as in Watcher. They
    can occur only if parameters are not checked. Raises InvalidInput for actions of types that are
    not in TYPES.
    """
    disables: list[ProposedAction] = []
    enables: list[ProposedAction] = []
    wrong = [
        Mistake(
            f"this planner knows {' and '.join(TYPES)}, not {action.action_type!r}",
            ("actions", i, "action_type"),
        )
        for i, action in enumerate(solution.actions)
        if action.action_type not in TYPES
    ]
    if wrong:
        raise InvalidInput(wrong)
    chains: dict[str | None, list[ProposedAction]] = defaultdict(list)
    for action in document_links.in_order(solution.actions, rank=lambda _: 0):
        if action.action_type == "migrate":
            chains[host_of(action, solution.facts)].append(action)
        else:
            disable = action.input_parameters.get("state") == "disabled"
            (disables if disable else enables).append(action)
    return disables, dict(chains), enables
