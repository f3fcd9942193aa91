# SPDX-License-Identifier: Apache-2.0
"""The workflow engine ``taskflow``: a plan becomes a graph flow, which taskflow's loader runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import ClassVar

from oslo_config import cfg, types

from applier.engines.engine import PlanRun
from applier.scheduling import waiting
from applier.scheduling.decisions import Halt
from applier.scheduling.verdict import ends
from planner.schemas import ranges

#: The number of seconds that an action may run after its stop signal; then it is given up.
GRACE_S = 30.0
#: Where actions run: the values of the option ``workers``.
THREADS, CELERY = "threads", "celery"
#: The rules of ``action_execution_rule``.
RULES = ["ALWAYS", "ANY"]


class TaskFlowEngine:
    """Runs the open actions of a plan, up to ``max_workers`` at once (default: 10).

    The plan becomes a ``taskflow.patterns.graph_flow.Flow`` (:mod:`applier.engines.linear`), which
    ``taskflow.engines`` loads together with the engine ``actionplan``
    (:class:`applier.engines.linear.LinearEngine`): taskflow's own takes hours for large plans.
    An action that still runs ``grace_s`` seconds after its stop signal is given up. ``workers`` and
    ``action_execution_rule`` are only stored: the caller reads them, and puts a matching
    ``make_executor`` and matching ``failures`` into the run.
    """

    NAME: ClassVar[str] = "taskflow"
    #: Options of the section ``[watcher_workflow_engines.taskflow]``.
    OPTIONS: ClassVar[tuple[cfg.Opt, ...]] = (
        cfg.IntOpt(
            "max_workers",
            default=ranges.WORKERS,
            min=1,
            max=ranges.MOST,
            help="Number of actions of a plan that may run at once.",
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
        cfg.Opt(
            "action_execution_rule",
            type=types.Dict(value_type=types.String(choices=RULES)),
            default={},
            sample_default="host_maintenance:ALWAYS, my_strategy:ANY",
            help="What a failed action means in plans of a strategy, by its name, as Watcher reads "
            "it. ALWAYS: all actions run. ANY: an action runs only if the first of those before it "
            "failed. Strategies without a rule have [watcher_applier] on_failure.",
        ),
    )

    def __init__(
        self,
        *,
        max_workers: int = ranges.WORKERS,
        workers: str = THREADS,
        action_execution_rule: Mapping[str, str] = MappingProxyType({}),
        grace_s: float = GRACE_S,
    ) -> None:
        self.max_workers, self.workers = max_workers, workers
        self.action_execution_rule = action_execution_rule
        self.grace_s = grace_s

    def run(self, run: PlanRun) -> Halt | None:
        """See :meth:`applier.engines.engine.Engine.run`."""
        # Imported here, because the import takes long, and the options are also read without a run.
        from taskflow import engines

        from applier.engines.attempts_in_progress import within_room
        from applier.engines.linear import PlanFlow

        runs_here = run.make_executor is None
        actions = run.plan.actions
        with _collection_deferred() as built:
            after = waiting.links(actions, waiting.completed(actions, ends(actions)))
            flow = PlanFlow(run.plan.name or run.plan.uuid, after, run.make_task)
            engine = engines.load(
                flow,
                engine="actionplan",
                run=run,
                max_workers=within_room(self.max_workers) if runs_here else self.max_workers,
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
