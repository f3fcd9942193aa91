# SPDX-License-Identifier: Apache-2.0
"""The role-based engine: deploys groups of nodes, as Fuel did before task-based deployment.

Source: Fuel's orchestrator of releases 6.1 to 8.0. The tasks before ``deploy_start`` run first, one
after another, each on all its nodes. Then the groups are deployed in waves: a wave consists of the
groups whose predecessors are deployed. Then the tasks after ``deploy_end`` run, as those before.
Cross dependencies are ignored. A task runs only once on a node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from planner.errors import InvalidInput, Mistake
from planner.plan.graph_algorithms import CycleError, topological_order
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.problem import MASTER, Deployment, Task
from planner.planners.deployment.steps import DeploymentStep
from planner.planners.deployment.task_placement import Places, TaskPlacement

if TYPE_CHECKING:
    import networkx as nx

#: Groups of which no node may fail, unless the document gives them a fault tolerance.
CRITICAL = ("primary-controller", "controller", "ceph-osd", "primary-mongo")
START, END = "deploy_start", "deploy_end"


class RoleRun(NamedTuple):
    """The tasks that one node runs, one after another, for one role."""

    uid: str
    role: str
    tasks: tuple[Task, ...]


class Stage(NamedTuple):
    """Role runs that are executed in parallel; if ``strict``, the next stage needs all of them."""

    name: str
    entries: Sequence[RoleRun]
    strict: bool = False


class TaskOrder:
    """A topological order of the tasks, whose positions are their indexes in the document.

    ``before`` holds the predecessors of each task, ``positions`` the order. The constructor raises
    InvalidInput for unknown names and for cycles.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._tasks = deployment.tasks
        self._index = deployment.patterns.index({task.id: None for task in self._tasks})
        self._place = {task.id: i for i, task in enumerate(self._tasks)}
        groups = {task.id: None for task in self._tasks if task.is_group}
        self._groups = deployment.patterns.index(groups)
        self.before: list[dict[int, None]] = [{} for _ in self._tasks]
        mistakes: list[Mistake] = []
        for task in self._tasks:
            self._link(task, mistakes)
        if mistakes:
            raise InvalidInput(mistakes)
        try:
            self.positions = topological_order([[tuple(found)] for found in self.before])
        except CycleError as error:
            raise InvalidInput(map(self._loop, error.cycles())) from error

    def _link(self, task: Task, mistakes: list[Mistake]) -> None:
        own = self._place[task.id]
        links = [(r.name, self._index, r.field, r.path) for r in task.requires]
        links += [(r.name, self._index, r.field, r.path) for r in task.required_for]
        links += [
            (name, self._groups, "groups", task.path("groups"))
            for name in ([] if task.is_group else task.groups)
        ]
        links += [(name, self._index, "tasks", task.path("tasks")) for name in task.tasks]
        for name, index, field, path in links:
            found = index(name)
            if not found:
                what = "group" if field == "groups" else "task"
                text = f"no {what} is called {name!r}{near(name, self._place, mistakes)}"
                why = "the role-based engine requires every task that is named"
                mistakes.append(Mistake(f"{text}; {why}", path))
            for other in (self._place[task_id] for task_id in found):
                if other != own and field in ("requires", "tasks"):
                    self.before[own][other] = None
                elif other != own:
                    self.before[other][own] = None

    def _loop(self, cycle: Sequence[int]) -> Mistake:
        names = [self._tasks[p].id for p in (*cycle, cycle[0])]
        return Mistake(f"a cycle: {' -> '.join(names)}", self._tasks[cycle[0]].path())

    @cached_property
    def graph(self) -> nx.DiGraph[int]:
        """The positions of the tasks, with an edge to each from those that precede it directly."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.before)))
        graph.add_edges_from((p, i) for i, found in enumerate(self.before) for p in found)
        return graph

    def around(self, task_id: str, reached: Callable[[nx.DiGraph[int], int], set[int]]) -> set[int]:
        """Return the positions that ``reached`` finds from a task; none without such a task."""
        start = self._place.get(task_id)
        return set() if start is None else reached(self.graph, start)

    def groups(self) -> dict[str, list[str]]:
        """Return, by task, the groups that it names in ``groups``, or that name it in ``tasks``."""
        found = {t.id: [g for name in t.groups for g in self._groups(name)] for t in self._tasks}
        for group in self._tasks:
            for name in group.tasks if group.is_group else ():
                found.setdefault(name, []).append(group.id)
        return found


class RoleBased:
    """Divides a deployment into stages by roles."""

    def __init__(self, deployment: Deployment, placement: TaskPlacement) -> None:
        self._deployment, self._cluster = deployment, placement.cluster
        self._placement = placement
        self._places = placement.places
        self._order = TaskOrder(deployment)
        import networkx as nx

        tasks, order = deployment.tasks, self._order
        early, late = order.around(START, nx.ancestors), order.around(END, nx.descendants)
        sorted_tasks = [(i, tasks[i]) for i in order.positions]
        run = [(i, t) for i, t in sorted_tasks if not (t.is_group or t.is_anchor)]
        self._early = [task for i, task in run if i in early]
        self._late = [task for i, task in run if i in late and i not in early]
        self._tasks = [task for i, task in run if i not in early and i not in late]

    def warnings(self) -> list[Mistake]:
        """Return the warnings of relations between tasks of groups that share no node.

        The tasks before and after the groups run one after another, on whatever nodes.
        """
        return self._placement.apart(self._tasks)

    def stages(self) -> list[Stage]:
        """Return the stages in order, named by part and priority: ``pre-deployment-100``."""
        middle = [s._replace(name=f"deployment-{k}00") for k, s in enumerate(self._waves(), 1)]
        return [
            *_hooks("pre-deployment", self._early, self._places, strict=True),
            *middle,
            *_hooks("post-deployment", self._late, self._places, strict=False),
        ]

    def _waves(self) -> Iterator[Stage]:
        import networkx as nx

        tasks = self._deployment.tasks
        groups = {i: task for i, task in enumerate(tasks) if task.is_group}
        nodes = {i: list(self._cluster.of(task.where)) for i, task in groups.items()}
        deployed = self._order.graph.subgraph([i for i in groups if nodes[i]])
        for wave in nx.topological_generations(deployed):
            yield from self._wave([(groups[i], nodes[i]) for i in sorted(wave)])
        grouped = {uid for found in nodes.values() for uid in found}
        uids = [MASTER, *(n.name for n in self._deployment.nodes if n.name != MASTER)]
        rest = [self._entry(uid, None) for uid in uids if uid not in grouped]
        alone = [entry for entry in rest if entry.tasks]
        if alone:
            yield Stage("", alone)

    def _wave(self, groups: Sequence[tuple[Task, Sequence[str]]]) -> Iterator[Stage]:
        """Yield the stages of groups that are deployed in one wave.

        A group with the strategy one_by_one has a stage for each node, one with an amount a stage
        for each chunk of nodes. All other groups of the wave share stages; no node is in one stage
        twice.
        """
        made = [(group, [self._entry(uid, group) for uid in uids]) for group, uids in groups]
        for group, entries in made:
            if group.strategy == "one_by_one":
                yield from (Stage("", [entry]) for entry in entries)
        together: list[list[RoleRun]] = []
        times: dict[str, int] = {}
        for group, entries in made:
            if group.strategy == "one_by_one":
                continue
            if group.most is not None:
                for k in range(0, len(entries), group.most):
                    yield Stage("", entries[k : k + group.most])
                continue
            for entry in entries:
                turn = times[entry.uid] = times.get(entry.uid, -1) + 1
                if turn == len(together):
                    together.append([])
                together[turn].append(entry)
        yield from (Stage("", entries) for entries in together)

    def _entry(self, uid: str, group: Task | None) -> RoleRun:
        """Return the run of a node for a group: the tasks of the group, and tasks without a group.

        The latter are the tasks that the roles of the node place there, and none of their groups.
        If ``group`` is None, there are only these.
        """
        of_group, of_roles = self._chosen
        positions = {*of_roles[uid], *(of_group[group.id] if group else ())}
        return RoleRun(
            uid, group.id if group else "", tuple([self._tasks[i] for i in sorted(positions)])
        )

    @cached_property
    def _chosen(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The positions of the tasks of each group, and of those that roles place on each node."""
        bound = self._order.groups()
        nodes = {task.id: self._cluster.of(task.where) for task in self._deployment.tasks}
        of_group, of_roles = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for i, task in enumerate(self._tasks):
            brought = {uid for group in bound[task.id] for uid in nodes[group]}
            for group in bound[task.id]:
                of_group[group].append(i)
            for uid in self._places[task.id]:
                if uid not in brought:
                    of_roles[uid].append(i)
        return of_group, of_roles


def _hooks(name: str, tasks: Sequence[Task], places: Places, *, strict: bool) -> Iterator[Stage]:
    """Yield a stage for each task that has nodes, with an entry for each of the nodes."""
    number = 0
    for task in tasks:
        uids = places[task.id]
        if uids:
            number += 1
            yield Stage(f"{name}-{number}00", [RoleRun(uid, "", (task,)) for uid in uids], strict)


def steps(stages: Sequence[Stage]) -> list[DeploymentStep]:
    """Turn stages into steps: the tasks of a node one after another, and a join after each stage.

    After a task failed, its node runs no more tasks. After a failure in a strict stage, no node
    runs more tasks.
    """
    made: list[DeploymentStep] = []
    last: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    gates: dict[bool, int] = {}  # the last join of each kind, strict or not
    for stage in stages:
        ends: list[int] = []
        for uid, role, tasks in stage.entries:
            first = True
            for task in tasks:
                if (uid, task.id) in seen:
                    continue
                seen.add((uid, task.id))
                own = (last[uid],) if uid in last else ()
                before = tuple(sorted({*own, *(gates.values() if first else ())}))
                why = f"{stage.name}: role {role}" if role else stage.name
                made.append(DeploymentStep(f"{uid}/{task.id}", uid, task, before, reason=why))
                last[uid], first = len(made) - 1, False
            if not first:
                ends.append(last[uid])
        if ends:
            # Entries follow the last join of both kinds, so a join needs no link to the join before
            # it.
            name, members = f"join/{stage.name}", tuple(sorted(ends))
            made.append(
                DeploymentStep(name, before=members, order_only=not stage.strict, reason=stage.name)
            )
            gates[stage.strict] = len(made) - 1
    return made
