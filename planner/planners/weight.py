# SPDX-License-Identifier: Apache-2.0
"""Weight planner: heavier action types first, in sets limited by their parallelization.

Source: Watcher, "Improve the storage of action plans" (planner-storage-action-plan); its drawing is
a case in tests/cases/weight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from oslo_config import cfg

from planner.contract import Options
from planner.model import ActionPlan, ProposedAction, Solution
from planner.planners.numbers import (
    UNNAMED_WEIGHT,
    parallelization_option,
    unnamed,
    weights_option,
)
from planner.planners.solution import SolutionPlanner

#: Defaults of Watcher 17.
WEIGHTS = {
    "nop": 70,
    "volume_migrate": 60,
    "change_nova_service_state": 50,
    "sleep": 40,
    "shelve": 37,
    "stop": 35,
    "delete": 33,
    "migrate": 30,
    "resize": 20,
    "turn_host_to_acpi_s3_state": 10,
    "change_node_power_state": 9,
}
PARALLELIZATION = {
    "turn_host_to_acpi_s3_state": 2,
    "resize": 2,
    "stop": 2,
    "delete": 2,
    "shelve": 2,
    "migrate": 2,
    "sleep": 1,
    "change_nova_service_state": 1,
    "nop": 1,
    "change_node_power_state": 2,
    "volume_migrate": 2,
}


class WeightPlanner(SolutionPlanner):
    """Orders actions by the weight of their types, highest first, in sets of limited size.

    The option ``parallelization`` is the maximum number of actions of a type in a set. With
    ``ordering = chunks``, each action of a set has all actions of the previous set as parents. With
    ``ordering = slots``, all actions of one weight form one set, which follows the previous one
    through a join. Limits then bound the number of running actions of each type, so that no action
    waits for the slowest of a chunk.
    """

    NAME = "weight"
    OPTIONS = (
        weights_option(WEIGHTS),
        parallelization_option(PARALLELIZATION),
        cfg.StrOpt(
            "ordering",
            choices=[
                ("chunks", "a set starts when all of the set before has ended, as in Watcher"),
                ("slots", "the next of a weight starts as soon as one of its type has ended"),
            ],
            default="chunks",
            help="How actions of the same weight are ordered.",
        ),
    )

    def plan(self, problem: Solution, options: Options) -> ActionPlan:
        """Return the plan; each set follows all actions of the previous set.

        With ``ordering = slots``, a join is between them.
        """
        draft = self.draft(problem)
        levels: list[int] = []
        slots = options.ordering == "slots"
        width = {} if slots else options.parallelization
        before: tuple[int, ...] = ()
        for level, (weight, k, n, members) in enumerate(
            sets(problem.actions, options.weights, width, whole=slots)
        ):
            reason = f"weight {weight}" if n == 1 else f"weight {weight}, set {k} of {n}"
            if slots and before:
                before = (draft.join(before, f"everything heavier than weight {weight} has ended"),)
                levels.append(level)
            before = tuple([draft.add(action, before, reason) for action in members])
            levels += [level] * len(members)
        used = sorted({action.action_type for action in problem.actions})
        wide = {f"type:{t}": options.parallelization.get(t, 1) for t in used}
        return draft.plan(
            precedes=lambda a, b: levels[a] < levels[b],
            limits=wide if slots else {},
            warnings=[
                *unnamed("weight", options.weights, used, UNNAMED_WEIGHT),
                *unnamed("parallelization", options.parallelization, used, 1),
            ],
        )


def sets(
    actions: Sequence[ProposedAction],
    weights: Mapping[str, int | float],
    parallelization: Mapping[str, int],
    *,
    whole: bool = False,
) -> list[tuple[int | float, int, int, list[ProposedAction]]]:
    """List the sets in order, as (weight, number within the weight, number of sets, members).

    Weights are in descending order. Set k of a weight holds chunk k of each type of that weight, in
    input order. With ``whole``, each weight is one set.

    >>> three = [ProposedAction(name=f"resize-{i}", action_type="resize") for i in (1, 2, 3)]
    >>> nap = ProposedAction(name="sleep-1", action_type="sleep")
    >>> found = sets([*three, nap], {"sleep": 70, "resize": 50}, {"resize": 2})
    >>> [[a.name for a in members] for *_, members in found]
    [['sleep-1'], ['resize-1', 'resize-2'], ['resize-3']]
    """
    by_weight: dict[int | float, list[ProposedAction]] = defaultdict(list)
    for action in actions:
        by_weight[weights.get(action.action_type, UNNAMED_WEIGHT)].append(action)
    found = []
    for weight in sorted(by_weight, reverse=True):
        seen: dict[str, int] = defaultdict(int)
        chunks: dict[int, list[ProposedAction]] = defaultdict(list)
        for action in by_weight[weight]:
            width = parallelization.get(action.action_type, 1)
            chunks[0 if whole else seen[action.action_type] // width].append(action)
            seen[action.action_type] += 1
        # Chunk k of a type is always created after its chunk k - 1.
        found += [(weight, k + 1, len(chunks), chunks[k]) for k in sorted(chunks)]
    return found
