# SPDX-License-Identifier: Apache-2.0
"""Assigns tasks to nodes, by the roles and tags of the nodes and by the tasks of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from planner.errors import InvalidInput, Mistake
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.problem import (
    MASTER,
    SYNC,
    Deployment,
    NodeSelector,
    Relation,
    Task,
    Told,
)

#: Maps the id of each task to its nodes, in document order, and each node to the position there.
Places = Mapping[str, Mapping[str, int]]


class Cluster:
    """The nodes of a deployment, by tag. The tags of a node that names none are its roles."""

    def __init__(self, deployment: Deployment) -> None:
        self._nodes = [node for node in deployment.nodes if node.name != MASTER]
        self._place = {node.name: i for i, node in enumerate(self._nodes)}
        #: The places of the nodes that have each tag.
        self.tags: dict[str, list[int]] = {}
        for i, node in enumerate(self._nodes):
            for tag in node.tags:
                self.tags.setdefault(tag, []).append(i)
        self._index = deployment.patterns.index(self.tags)
        self._groups = {task.id: task.where for task in deployment.tasks if task.is_group}
        self._group_index = deployment.patterns.index(self._groups)
        self._found: dict[NodeSelector, dict[str, None]] = {}

    @cached_property
    def every(self) -> Mapping[str, None]:
        """All nodes that have a role, without the deployment server and the sync node."""
        return {node.name: None for node in self._nodes if node.tags}

    def of(self, where: NodeSelector) -> Mapping[str, None]:
        """Return the uids that a selector matches, in document order.

        A selector of kind self or nowhere matches none. ``master`` among patterns is the deployment
        server, which no other pattern matches.
        """
        if where.kind not in ("patterns", "groups"):
            special = {"sync": {SYNC: None}, "master": {MASTER: None}, "every": self.every}
            return special.get(where.kind, {})
        found = self._found.get(where)
        if found is None:
            tags = {tag for pattern in where.patterns for tag in self._index(pattern)}
            uids = set(self._of_groups(where)) if where.kind == "groups" else set()
            found = {MASTER: None} if MASTER in uids or MASTER in where.patterns else {}
            places = {i for tag in tags for i in self.tags[tag]}
            places.update(self._place[uid] for uid in uids if uid in self._place)
            found |= {self._nodes[i].name: None for i in sorted(places)}
            self._found[where] = found
        return found

    def _of_groups(self, where: NodeSelector) -> Iterator[str]:
        for pattern in where.patterns:
            for group in self._group_index(pattern):
                if self._groups[group].kind != "groups":
                    yield from self.of(self._groups[group])

    def unmatched(self, where: NodeSelector) -> Iterator[str]:
        """Yield the patterns that match no tag and, in a selector of kind groups, no group."""
        for pattern in where.patterns:
            meant = where.kind == "groups" and self._group_index(pattern)
            if not (meant or pattern == MASTER or self._index(pattern)):
                yield pattern


class TaskPlacement:
    """All pairs of a node and a task that runs on it, by position.

    The first pairs are the anchors, on the sync node. The pairs of the deployment server follow,
    then those of the nodes in document order; the tasks of a node are in document order. Raises
    InvalidInput for an unknown task in a group that has nodes.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.cluster = Cluster(deployment)
        self.warnings: list[Mistake] = []
        tasks = {task.id: task for task in deployment.runnable}
        nodes = {
            task.id: {SYNC: None} if task.is_anchor else dict(self.cluster.of(task.where))
            for task in tasks.values()
        }
        self._with_groups(deployment, tasks, nodes)
        self._warn_roles(deployment.tasks)
        order = [SYNC, MASTER, *(node.name for node in deployment.nodes if node.name != MASTER)]
        landed: dict[str, list[Task]] = {uid: [] for uid in order}
        for task in tasks.values():
            for uid in nodes[task.id]:
                landed[uid].append(task)
        #: The pairs (uid, task) by position.
        self.pairs: Sequence[tuple[str, Task]] = [(uid, t) for uid in order for t in landed[uid]]
        places: dict[str, dict[str, int]] = {task_id: {} for task_id in tasks}
        for position, (uid, task) in enumerate(self.pairs):
            places[task.id][uid] = position
        self.places: Places = places
        self.names = deployment.patterns.index({task.id: None for task in deployment.tasks})

    def name(self, position: int) -> str:
        """Return the name of an action: ``UID/TASK``."""
        uid, task = self.pairs[position]
        return f"{uid}/{task.id}"

    def apart(self, tasks: Sequence[Task]) -> list[Mistake]:
        """Return one warning of the local relations that mean tasks on other nodes alone.

        A task that names them in a cross dependency as well is not meant.
        """
        found = Told()
        for task in tasks:
            for relation in self._apart(task):
                text = f"{relation.name!r} runs on no node of {task.id!r}: use cross-depends"
                found.add(text, relation.path, "apart")
        return [*found]

    def _apart(self, task: Task) -> Iterator[Relation]:
        here = self.places.get(task.id, {})
        crossing = {r.name for r in (*task.cross_depends, *task.cross_depended_by)}
        for relation in (*task.requires, *task.required_for) if here else ():
            meant = [i for i in self.names(relation.name) if i != task.id and self.places.get(i)]
            shared = any(SYNC in self.places[i] or here.keys() & self.places[i] for i in meant)
            if meant and not shared and relation.name not in crossing:
                yield relation

    def _with_groups(
        self, deployment: Deployment, tasks: Mapping[str, Task], nodes: dict[str, dict[str, None]]
    ) -> None:
        mistakes = []
        groups = {task.id for task in deployment.tasks if task.is_group}
        for group in deployment.tasks:
            found = self.cluster.of(group.where) if group.is_group else {}
            for k, task_id in enumerate(group.tasks if found else ()):
                if task_id in tasks:
                    if not tasks[task_id].is_anchor:
                        nodes[task_id].update(found)
                elif task_id in groups:
                    text = f"{task_id!r} is a group: only tasks run on nodes"
                    self.warnings.append(Mistake(text, group.path("tasks", k)))
                else:
                    text = f"no task {task_id!r}{near(task_id, tasks)}"
                    mistakes.append(Mistake(text, group.path("tasks", k)))
        if mistakes:
            raise InvalidInput(mistakes)

    def _warn_roles(self, tasks: Sequence[Task]) -> None:
        """Warn once of each role that no node has: where it occurs first, and how often."""
        found = Told()
        for task in tasks:
            if task.where.kind == "nowhere" and not task.is_anchor:
                text = f"task {task.id!r} names no role, tags or groups: it runs on no node"
                self.warnings.append(Mistake(text, task.path()))
            relations = (*task.cross_depends, *task.cross_depended_by)
            own = (task.where, task.path()) if not task.is_anchor else (NodeSelector("sync"), ())
            for where, path in (own, *((r.where, r.path) for r in relations)):
                for pattern in self.cluster.unmatched(where):
                    hint = near(pattern, self.cluster.tags, found)
                    found.add(f"no node has the role {pattern!r}{hint}", path, pattern)
        self.warnings += found
