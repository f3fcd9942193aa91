"""The problem that the deployment planner solves: tasks, nodes, and what is wanted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planner.errors import Mistake, Path
from planner.model import ActionPlan
from planner.planners.deployment.name_patterns import Patterns
from planner.planners.deployment.schema import ANCHORS

#: Where anchors land, and the deployment server: neither is among "every node".
SYNC, MASTER = "sync", "master"


class Where(NamedTuple):
    """Which nodes are meant: ``kind`` is every, self, sync, master, nowhere, patterns or groups.

    ``patterns`` are held against the tags of nodes; of kind groups also against ids of groups.
    """

    kind: str
    patterns: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a person writes it."""
        return " or ".join(self.patterns) or {"every": "*", "sync": "null"}.get(
            self.kind, self.kind
        )


EVERY, NOWHERE = Where("every"), Where("nowhere")


class Relation(NamedTuple):
    """That a task comes after, or before, those of a name on some nodes.

    ``field`` is requires, required_for, cross-depends or cross-depended-by; ``any_of`` is policy
    any; ``path`` its place in the document.
    """

    field: str
    name: str
    where: Where
    any_of: bool
    path: Path

    @property
    def text(self) -> str:
        """As a person writes it."""
        role = "" if self.where in (NOWHERE, EVERY) else f" on {self.where.text}"
        return f"{self.field} {self.name}{role}{' (any)' if self.any_of else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of the document, before it lands anywhere.

    ``where`` is tags, else roles, else groups; ``groups`` are kept besides for the role-based
    engine. ``skipped`` says why it is not to run. ``most`` is how many of it run at once;
    ``index`` its place among the tasks; ``versioned`` is false where a 2.x is lacking.
    """

    id: str
    type: str
    index: int
    versioned: bool
    where: Where
    groups: tuple[str, ...] = ()
    requires: Sequence[Relation] = ()
    required_for: Sequence[Relation] = ()
    cross_depends: Sequence[Relation] = ()
    cross_depended_by: Sequence[Relation] = ()
    tasks: tuple[str, ...] = ()
    strategy: str = "parallel"
    most: int | None = None
    skipped: str | None = None
    fault_tolerance: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    retries: int = 0

    @property
    def is_anchor(self) -> bool:
        """A synchronization point: it has no node, and what comes before it need not end well."""
        return self.type in ANCHORS

    @property
    def is_group(self) -> bool:
        """A group orders roles; it never lands on a node."""
        return self.type == "group"

    def path(self, *inside: str | int) -> Path:
        """Give its place in the document, or that of something in it."""
        return ("tasks", self.index, *inside)


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A machine; without an address it is simulated."""

    uid: str
    tags: tuple[str, ...] = ()
    address: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What of a deployment is wanted; nothing said means all. ``fetch`` adds what it depends on."""

    nodes: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    fetch: bool = False
    changed_since: ActionPlan | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A deployment: tasks and nodes as the document has them, in its order.

    ``doubts`` are names that match nothing, found so far; ``notes`` are other warnings.
    """

    name: str | None
    tasks: Sequence[Task]
    nodes: Sequence[Node]
    patterns: Patterns
    part: Part
    durations: Mapping[str, float] = field(default_factory=dict)
    doubts: Sequence[Mistake] = ()
    notes: Sequence[str] = ()

    @property
    def runnable(self) -> list[Task]:
        """The tasks that can land on a node."""
        return [task for task in self.tasks if not task.is_group]
