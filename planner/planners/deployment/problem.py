# SPDX-License-Identifier: Apache-2.0
"""The problem of the deployment planner: tasks, nodes, and the requested part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planner.errors import Mistake, Path
from planner.plan.model import ActionPlan
from planner.planners.deployment.expressions import Evaluator
from planner.planners.deployment.name_patterns import Patterns
from planner.planners.deployment.schema import ANCHORS
from planner.planners.node_fields import ListedNode

#: The uids of the sync node, on which anchors are, and of the deployment server. A role ``*``
#: matches neither.
SYNC, MASTER = "sync", "master"


class NodeSelector(NamedTuple):
    """A selector of nodes.

    ``kind`` is every, self (the node of the task itself), sync (the sync node), master (the
    deployment server), nowhere (no node), patterns or groups. ``patterns`` are compared with the
    tags of nodes; in a selector of kind groups, also with the ids of groups.
    """

    kind: str
    patterns: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The selector as it is written in a document."""
        return " or ".join(self.patterns) or {"every": "*", "sync": "null"}.get(
            self.kind, self.kind
        )


EVERY, NOWHERE = NodeSelector("every"), NodeSelector("nowhere")


class Relation(NamedTuple):
    """A dependency of a task: it runs after, or before, the tasks of a name on some nodes.

    ``field`` is requires, required_for, cross-depends or cross-depended-by; ``any_of`` is policy
    any; ``path`` is the place in the document. ``only`` are the nodes on which the task has it, if
    not all.
    """

    field: str
    name: str
    where: NodeSelector
    any_of: bool
    path: Path
    only: frozenset[str] | None = None

    def has(self, uid: str) -> bool:
        """Return whether the task has this dependency on a node."""
        return self.only is None or uid in self.only

    @property
    def text(self) -> str:
        """The relation as it is shown in messages."""
        role = "" if self.where in (NOWHERE, EVERY) else f" on {self.where.text}"
        return f"{self.field} {self.name}{role}{' (any)' if self.any_of else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of the document, before it is placed on nodes.

    ``where`` is read from the field tags, else role, else roles, else groups; ``groups`` are also
    kept for the role-based engine. ``tasks`` are names of more tasks for the nodes of a group.
    ``skipped`` is the reason why the task does not run, or None. ``expression`` is its condition in
    yaql, which each node evaluates, as those in ``parameters``. ``most`` is the number of nodes on
    which it may run at the same time; None is no limit. ``index`` is its index in the document.
    ``versioned`` is true for version 2.x, and for types that do not run on nodes.
    """

    id: str
    type: str
    index: int
    versioned: bool
    where: NodeSelector
    groups: tuple[str, ...] = ()
    requires: Sequence[Relation] = ()
    required_for: Sequence[Relation] = ()
    cross_depends: Sequence[Relation] = ()
    cross_depended_by: Sequence[Relation] = ()
    tasks: tuple[str, ...] = ()
    strategy: str = "parallel"
    most: int | None = None
    skipped: str | None = None
    expression: str | None = None
    fault_tolerance: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    retries: int = 0

    @property
    def is_anchor(self) -> bool:
        """Whether it is a synchronization point: it does nothing, and its predecessors may fail."""
        return self.type in ANCHORS

    @property
    def is_group(self) -> bool:
        """Whether it is a group: it orders roles, and never runs on a node."""
        return self.type == "group"

    def path(self, *inside: str | int) -> Path:
        """Return the path of the task, or of something in it, in the document."""
        return ("tasks", self.index, *inside)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The requested part of a deployment: only some nodes, only some tasks, only changed tasks.

    None is no restriction. With ``changed_since``, only tasks that differ from that plan, and tasks
    that depend on them, are selected. ``fetch`` adds the dependencies of the selected tasks.
    """

    nodes: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    fetch: bool = False
    changed_since: ActionPlan | None = None


class SerialBlock(NamedTuple):
    """So many nodes at a time, of those selected: all actions on a node of the named tasks.

    Without names, of all tasks; without a selector, on all nodes. ``fields`` are those of the
    document: ``nodes``, ``keep`` ....
    """

    name: str
    tasks: tuple[str, ...]
    where: NodeSelector | None
    fields: Mapping[str, Any]
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A deployment: tasks and nodes in document order.

    ``warnings``, such as a name that matches nothing, become mistakes with the option ``strict``.
    ``notes`` are warnings that never do.
    """

    name: str | None
    tasks: Sequence[Task]
    nodes: Sequence[ListedNode]
    patterns: Patterns
    part: Part
    serial: Sequence[SerialBlock] = ()
    durations: Mapping[str, float] = field(default_factory=dict)
    evaluator: Evaluator = field(default_factory=Evaluator)
    warnings: Sequence[Mistake] = ()
    notes: Sequence[str] = ()

    @property
    def runnable(self) -> list[Task]:
        """All tasks except groups; anchors and skipped tasks are included."""
        return [task for task in self.tasks if not task.is_group]


class Told:
    """Warnings by what they are about, each with its first place and the number of the others."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, dict[Path, None]]] = {}

    def add(self, text: str, path: Path, about: str | None = None) -> None:
        """Add a warning; of those about the same thing the first text is told."""
        self._found.setdefault(about or text, (text, {}))[1][path] = None

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Mistake]:
        """Yield each warning, those that were added first first."""
        for text, paths in self._found.values():
            more = len(paths) - 1
            others = f" ({more} more place{'s' if more > 1 else ''})" if more else ""
            yield Mistake(f"{text}{others}", next(iter(paths)))
