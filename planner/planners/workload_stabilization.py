# SPDX-License-Identifier: Apache-2.0
"""Workload stabilization: actions run in parallel unless they use the same instance or host.

Source: Watcher, "Improve the storage of action plans" (planner-storage-action-plan), the second
planner that it describes, and the planner ``workload_stabilization`` in Watcher, which computes the
same parents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from planner.contract import Options
from planner.errors import InvalidInput
from planner.plan.model import ActionPlan, Effect, ProposedAction, Solution
from planner.planners import document_links, weight
from planner.planners.number_options import UNNAMED_WEIGHT, unnamed, weights_option
from planner.planners.solution import SolutionPlanner, host_of, missing_host

#: Defaults of Watcher 17 for its first types; all others of the product go last.
WEIGHTS = {
    **dict.fromkeys(weight.WEIGHTS, 0),
    "resize": 1,
    "migrate": 2,
    "sleep": 3,
    "change_nova_service_state": 4,
    "nop": 5,
}


class WorkloadStabilizationPlanner(SolutionPlanner):
    """Plans actions in parallel; only those on the same instance or host are linked.

    The parents are those of Watcher: a resize follows the migrations of its instance, and
    suspending a host follows resizes on it and migrations off it. Other actions on the same
    resource, such as several migrations of one instance, or a power off, are linked by needs. The
    host of an instance comes from the ``facts`` of the document.
    """

    NAME = "workload_stabilization"
    OPTIONS = (weights_option(WEIGHTS),)

    def plan(self, problem: Solution, options: Options) -> ActionPlan:
        """Return the plan; actions are scheduled by descending weight, equal ones in input order.

        Each comes after those that it is linked to.

        Raises InvalidInput if a host that decides about parents is not known.
        """
        goes_away = some_host_goes_away(problem)
        hosts = hosts_of(problem, goes_away)
        weights: Mapping[str, int | float] = options.weights
        draft = self.draft(problem)
        parents = _Parents(hosts)

        def weight_of(action: ProposedAction) -> int | float:
            return weights.get(action.action_type, UNNAMED_WEIGHT)

        for action in document_links.in_order(
            problem.actions, rank=lambda action: -weight_of(action)
        ):
            draft.add(action, parents.of(action, len(draft)), f"weight {weight_of(action)}")
        return draft.plan(
            warnings=[
                *unnamed(
                    "weight", weights, [a.action_type for a in problem.actions], UNNAMED_WEIGHT
                ),
                *(of_unknown_host(problem) if goes_away else ()),
            ],
        )


class _Parents:
    """Finds parents by Watcher's rules, action by action in schedule order.

    ``hosts`` is the result of :func:`hosts_of`.
    """

    def __init__(self, hosts: Mapping[int, str | None]) -> None:
        self._hosts = hosts
        self._moves_of: dict[str | None, list[int]] = defaultdict(list)
        self._moves_off: dict[str | None, list[int]] = defaultdict(list)
        self._resizes_on: dict[str | None, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)

    def of(self, action: ProposedAction, position: int) -> tuple[int, ...]:
        """Return the parents of the action that is added at ``position``, and record the action.

        It has to be called once for each action, in schedule order.
        """
        match action.action_type:
            case "migrate":
                self._moves_of[action.resource_id].append(position)
                self._moves_off[self._hosts[id(action)]].append(position)
            case "resize":
                moves = tuple(self._moves_of[action.resource_id])
                self._resizes_on[self._hosts[id(action)]].append((position, moves))
                return moves
            case "turn_host_to_acpi_s3_state":
                host = _goes_away(action)
                resizes = self._resizes_on[host]
                linked = {move for _, moves in resizes for move in moves}
                moves = tuple(m for m in self._moves_off[host] if m not in linked)
                return (*(resize for resize, _ in resizes), *moves)
        return ()


def _goes_away(action: ProposedAction) -> str | None:
    """Return the host that an action takes down: in its touches, else its ``resource_id``."""
    down = [t.resource for t in action.touches if t.effect is Effect.TAKES_DOWN]
    return down[0].partition(":")[2] if down else action.resource_id


def hosts_of(solution: Solution, goes_away: bool) -> dict[int, str | None]:
    """Map the ``id()`` of each migration and resize to the host of its instance before the action.

    The host of a resize is required only if some action takes a host down, ``goes_away``; otherwise
    it may be None. Raises InvalidInput with a mistake for each required host that is not known.
    """
    hosts: dict[int, str | None] = {}
    missing = []
    for i, action in enumerate(solution.actions):
        if action.action_type not in ("migrate", "resize"):
            continue
        host = hosts[id(action)] = host_of(action, solution.facts)
        if host is None and (goes_away or action.action_type == "migrate"):
            missing.append(missing_host(i, action))
    if missing:
        raise InvalidInput(missing)
    return hosts


def some_host_goes_away(solution: Solution) -> bool:
    """Return whether an action takes a host down."""
    return any(
        a.action_type == "turn_host_to_acpi_s3_state"
        or any(t.effect is Effect.TAKES_DOWN for t in a.touches)
        for a in solution.actions
    )


def of_unknown_host(solution: Solution) -> list[str]:
    """Return a warning for each action but migrations and resizes on an instance of unknown host.

    It matters only if some action takes a host down.
    """
    return [
        f"{action.name} may be on a host that goes away, and nothing waits for it: "
        f"facts.instances.{action.resource_id}.host is missing"
        for action in solution.actions
        if action.action_type not in ("migrate", "resize")
        and any(t.resource == f"instance:{action.resource_id}" for t in action.touches)
        and not any(t.resource.startswith("node:") for t in action.touches)
        and host_of(action, solution.facts) is None
    ]
