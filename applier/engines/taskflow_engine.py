# SPDX-License-Identifier: Apache-2.0
"""The workflow engine ``taskflow``: a plan becomes a flow, which taskflow's loader runs.

The flow has one task for each action, and one link for each order.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from oslo_config import cfg
from taskflow import flow

from applier.engines import PlanRun
from applier.scheduling import order
from applier.scheduling.decisions import Halt
from applier.scheduling.verdict import ends
from planner import ranges

#: The number of seconds that an action may run after its stop signal; then it is given up.
GRACE_S = 30.0
#: Where actions run: the values of the option ``workers``.
THREADS, CELERY = "threads", "celery"


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
        """Raise TypeError: a flow is made with all tasks of its plan."""
        raise TypeError(f"{self} has all tasks of its plan, so that {len(items)} cannot be added")


def build(
    after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any], name: str = "plan"
) -> PlanFlow:
    """Make a flow of the graph ``after`` (name to successors); ``make_task`` makes each task."""
    return PlanFlow(name, after, make_task)


class TaskFlowEngine:
    """Runs the open actions of a plan, up to ``max_workers`` at once (default: number of CPUs).

    An action that still runs ``grace_s`` seconds after its stop signal is given up. ``workers`` is
    only stored: the caller reads it, and puts a matching ``make_executor`` into the run.
    """

    NAME: ClassVar[str] = "taskflow"
    #: Options of the section ``[watcher_workflow_engines.taskflow]``.
    OPTIONS: ClassVar[tuple[cfg.Opt, ...]] = (
        cfg.IntOpt(
            "max_workers",
            default=os.cpu_count() or 1,
            min=1,
            max=ranges.MOST,
            sample_default=4,
            help="Number of actions of a plan that may run at once. Default: the number of CPUs.",
        ),
        cfg.StrOpt(
            "workers",
            choices=[
                (THREADS, "in the applier itself"),
                (CELERY, "in actionplan-worker on other machines, see [workers]"),
            ],
            default=THREADS,
            help="Where the actions of a plan run.",
        ),
    )

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        workers: str = THREADS,
        grace_s: float = GRACE_S,
    ) -> None:
        self.max_workers, self.workers = max_workers or os.cpu_count() or 1, workers
        self.grace_s = grace_s

    def run(self, run: PlanRun) -> Halt | None:
        """See :meth:`applier.engines.Engine.run`."""
        # Imported here, because the import takes long, and the options are also read without a run.
        from taskflow import engines

        actions = run.plan.actions
        with _collection_deferred() as built:
            links = order.links(actions, order.completed(actions, ends(actions)))
            engine = engines.load(
                build(links, run.make_task, run.plan.name or run.plan.uuid),
                engine="actionplan",
                run=run,
                max_workers=self.max_workers,
                grace_s=self.grace_s,
            )
            engine.compile()
            built()
            engine.run()
        halt: Halt | None = engine.halt
        return halt


@contextmanager
def _collection_deferred() -> Iterator[Callable[[], None]]:
    """Turn garbage collection off; yield a function that turns it on for new objects only.

    The objects of a plan exist as long as its run. Scanning them again and again would take a third
    of the run time of a plan of no-op actions, and more for larger plans.
    """
    was_enabled = gc.isenabled()
    gc.disable()

    def built() -> None:
        gc.freeze()
        if was_enabled:
            gc.enable()

    try:
        yield built
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
