# SPDX-License-Identifier: Apache-2.0
"""Weight planner: heavier action types first, in sets limited by their parallelization.

Source: Watcher, "Improve the storage of action plans" (planner-storage-action-plan); its drawing is
a case in tests/cases/weight.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from oslo_config import cfg

from planner.contract import Options
from planner.plan.graph_algorithms import topological_order
from planner.plan.model import ActionPlan, ProposedAction, Solution
from planner.planners import document_links, number_options
from planner.planners.draft import Draft
from planner.planners.solution import SolutionPlanner

#: Defaults of Watcher 17 for its types. Of the others, what makes room goes early, work on nodes
#: before they are switched off, and checks after it.
WEIGHTS = {
    "nop": 70,
    "volume_migrate": 60,
    "change_nova_service_state": 50,
    "create_instance": 45,
    "start": 43,
    "unshelve": 42,
    "sleep": 40,
    "shelve": 37,
    "stop": 35,
    "delete": 33,
    "delete_instance": 32,
    "migrate": 30,
    "resize": 20,
    **dict.fromkeys(("upload_file", "copy_files", "sync"), 18),
    **dict.fromkeys(("shell", "puppet", "ansible"), 16),
    "reboot": 14,
    "turn_host_to_acpi_s3_state": 10,
    "change_node_power_state": 9,
    "http_check": 5,
    **dict.fromkeys(("pause", "anchor", "revert", "skipped"), 0),
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
    **dict.fromkeys(("create_instance", "start", "unshelve", "delete_instance"), 2),
    **dict.fromkeys(("upload_file", "copy_files", "sync", "http_check"), 10),
    **dict.fromkeys(("shell", "puppet", "ansible", "reboot", "pause"), 1),
    **dict.fromkeys(("anchor", "revert", "skipped"), 1),
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
        number_options.weights_option(WEIGHTS),
        cfg.Opt(
            "parallelization",
            type=number_options.NumberByType(number_options.at_least_one),
            default=PARALLELIZATION,
            help="Number of actions of each type that run at once, 1 or more. The values are "
            "merged over the defaults; a type without a number has 1.",
        ),
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
        draft = self.draft(problem)
        used = sorted({action.action_type for action in problem.actions})
        limits = {}
        if options.ordering == "slots":
            _in_slots(draft, problem.actions, options.weights)
            limits = {f"type:{t}": options.parallelization.get(t, 1) for t in used}
        else:
            _in_chunks(draft, problem.actions, options)
        return draft.plan(
            limits=limits,
            warnings=[
                *number_options.unnamed(
                    "weight", options.weights, used, number_options.UNNAMED_WEIGHT
                ),
                *number_options.unnamed("parallelization", options.parallelization, used, 1),
            ],
        )


def _in_chunks(draft: Draft, actions: Sequence[ProposedAction], options: Options) -> None:
    """Add the actions to the draft set by set.

    Weights are in descending order. An action that is linked to a lighter one has its weight. Each
    set of a weight takes of each type the first actions whose links lie in earlier sets, in input
    order: without links, set k holds chunk k of each type.
    """
    links = document_links.of(actions)
    heights = _heights(actions, links, options.weights)
    sets = _sets(actions, links, heights, options.parallelization)
    before: tuple[int, ...] = ()
    for weight, chosen in sets:
        for k, chunk in enumerate(chosen, 1):
            reason = f"weight {weight}" + (f", set {k} of {len(chosen)}" if len(chosen) > 1 else "")
            before = tuple([draft.add(actions[i], before, reason) for i in chunk])


def _in_slots(
    draft: Draft, actions: Sequence[ProposedAction], weights: Mapping[str, int | float]
) -> None:
    """Add the actions weight by weight, with a join between."""
    before: tuple[int, ...] = ()
    heights = _heights(actions, document_links.of(actions), weights)
    for weight in sorted({*heights}, reverse=True):
        if before:
            before = (draft.join(before, f"everything heavier than weight {weight} has ended"),)
        members = [a for a, height in zip(actions, heights, strict=True) if height == weight]
        before = tuple([draft.add(action, before, f"weight {weight}") for action in members])


def _heights(
    actions: Sequence[ProposedAction],
    said: document_links.DocumentLinks,
    weights: Mapping[str, int | float],
) -> list[int | float]:
    """Return the weight of each action, or the least of what it is linked to, if that is less."""
    heights = [weights.get(action.action_type, number_options.UNNAMED_WEIGHT) for action in actions]
    if said:
        for i in topological_order([said.both(i) for i in range(len(actions))]):
            heights[i] = min([heights[i], *(heights[earlier] for earlier in said.before(i))])
    return heights


def _sets(
    actions: Sequence[ProposedAction],
    said: document_links.DocumentLinks,
    heights: Sequence[int | float],
    parallelization: Mapping[str, int],
) -> Iterator[tuple[int | float, list[list[int]]]]:
    """Yield each weight with its sets: of each type the first whose links lie in earlier sets."""
    # Which actions follow each over a link, and how many links each still waits for.
    after: dict[int, list[int]] = defaultdict(list)
    left = [len(set(said.before(i))) for i in range(len(actions))]
    for i in range(len(actions)):
        for earlier in set(said.before(i)):
            after[earlier].append(i)
    # The actions that wait for no link, by weight and type, the first on top.
    ready: dict[int | float, dict[str, list[int]]] = defaultdict(dict)

    def add(i: int) -> None:
        heapq.heappush(ready[heights[i]].setdefault(actions[i].action_type, []), i)

    for i, waits in enumerate(left):
        if not waits:
            add(i)
    for weight in sorted({*heights}, reverse=True):
        found = []
        while types := ready[weight]:
            chunk = []
            for name, queue in list(types.items()):
                for _ in range(min(parallelization.get(name, 1), len(queue))):
                    chunk.append(heapq.heappop(queue))
                if not queue:
                    del types[name]
            for later in [later for i in chunk for later in after.get(i, ())]:
                left[later] -= 1
                if not left[later]:
                    add(later)
            found.append(sorted(chunk))
        yield weight, found
