"""The workflow engine ``taskflow``: a plan becomes a graph flow, which taskflow's loader runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from oslo_config import cfg
from taskflow import engines

from applier import flow
from applier.contracts import Wish
from applier.engines import Events
from applier.recorder import Recorder
from applier.scheduling import order
from applier.scheduling.scheduler import Scheduler, Stopped
from applier.scheduling.verdict import OnFailure, ends
from planner.model import ActionPlan


class TaskFlowEngine:
    """Runs what is left of a plan, up to ``max_workers`` actions at once (default: the CPUs)."""

    NAME: ClassVar[str] = "taskflow"
    #: Options of the section ``[watcher_workflow_engines.taskflow]``.
    OPTIONS: ClassVar[tuple[cfg.Opt, ...]] = (
        cfg.IntOpt(
            "max_workers",
            default=os.cpu_count() or 1,
            min=1,
            sample_default=4,
            help="How many actions of one plan may run at once; as many as there are CPUs where "
            "left out.",
        ),
    )

    def __init__(self, *, max_workers: int | None = None) -> None:
        self.max_workers = max_workers or os.cpu_count() or 1

    def run(
        self,
        plan: ActionPlan,
        recorder: Recorder,
        events: Events,
        *,
        make_task: Callable[[str], Any],
        on_failure: OnFailure,
        ranks: Mapping[str, int] | None = None,
        wishes: Iterable[Wish] = (),
    ) -> Stopped | None:
        """See :meth:`applier.engines.Engine.run`; ``ranks`` is who starts first, lowest first."""
        ended = ends(plan.actions)
        schedule = partial(
            Scheduler,
            plan.actions,
            limits=plan.limits,
            max_workers=self.max_workers,
            on_failure=on_failure,
            ranks=ranks,
            ended=ended,
        )
        links = order.links(plan.actions, order.passed(plan.actions, ended))
        engine = engines.load(
            flow.build(links, make_task, plan.name or plan.uuid),
            engine="actionplan",
            schedule=schedule,
            recorder=recorder,
            events=events,
            max_workers=self.max_workers,
            wishes=tuple(wishes),
        )
        engine.run()
        stopped: Stopped | None = engine.stopped
        return stopped
