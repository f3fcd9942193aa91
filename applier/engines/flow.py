# SPDX-License-Identifier: Apache-2.0
"""A plan as a taskflow flow: one task for each name, one link for each order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from taskflow import flow


class Tasks(dict[str, Any]):
    """The tasks of a flow by name; each is made when it is first read."""

    def __init__(self, make_task: Callable[[str], Any]) -> None:
        super().__init__()
        self._make_task = make_task

    def __missing__(self, name: str) -> Any:
        made = self[name] = self._make_task(name)
        return made


class PlanFlow(flow.Flow):
    """A flow that gets all tasks and links at once; any engine of taskflow can run it.

    ``after`` maps the name of each task to the names of its successors, without cycles. taskflow's
    own graph flow would copy and check the whole graph for each link.
    """

    def __init__(
        self, name: str, after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any]
    ):
        super().__init__(name)
        self.after, self.tasks = after, Tasks(make_task)

    def __len__(self) -> int:
        return len(self.after)

    def __iter__(self) -> Iterator[Any]:
        return map(self.tasks.__getitem__, self.after)

    def iter_nodes(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield each task, with empty metadata."""
        return ((task, {}) for task in self)

    def iter_links(self) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        """Yield each link: a task, a successor, the metadata of an explicit link."""
        meta = {flow.LINK_MANUAL: True}
        for name, others in self.after.items():
            task = self.tasks[name]
            for other in others:
                yield task, self.tasks[other], meta

    @property
    def requires(self) -> frozenset[str]:
        """The symbols that the tasks require: none."""
        return frozenset()

    def add(self, *items: Any) -> PlanFlow:
        """Refuse further tasks, with TypeError: a flow is made with all tasks of its plan."""
        raise TypeError(f"{self} has all tasks of its plan, so that {len(items)} cannot be added")


def build(
    after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any], name: str = "plan"
) -> PlanFlow:
    """Make a flow of the graph ``after`` (name to successors); ``make_task`` makes each task."""
    return PlanFlow(name, after, make_task)
