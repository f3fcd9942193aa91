"""The workflow engine ``taskflow``: a plan becomes a graph flow, which taskflow's loader runs."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from oslo_config import cfg
from taskflow import engines

from applier.contracts import Request
from applier.engines import Events, flow
from applier.engines.linear import GRACE_S
from applier.recording.recorder import Recorder
from applier.scheduling import order
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.turn import Halt
from applier.scheduling.type_policy import TypePolicy
from applier.scheduling.verdict import OnFailure, ends
from applier.store import Reservation
from planner.model import ActionPlan


class TaskFlowEngine:
    """Runs what is left of a plan, up to ``max_workers`` actions at once (default: the CPUs).

    An action that goes on for ``grace_s`` seconds after it was told to stop is given up.
    """

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

    def __init__(self, *, max_workers: int | None = None, grace_s: float = GRACE_S) -> None:
        self.max_workers = max_workers or os.cpu_count() or 1
        self.grace_s = grace_s

    def run(
        self,
        plan: ActionPlan,
        recorder: Recorder,
        events: Events,
        *,
        make_task: Callable[[str], Any],
        on_failure: OnFailure,
        ranks: Mapping[str, int] | None = None,
        policies: Mapping[str, TypePolicy] | None = None,
        workerless: Collection[str] = (),
        held_by_others: Iterable[Reservation] = (),
        requests: Iterable[Request] = (),
    ) -> Halt | None:
        """See :meth:`applier.engines.Engine.run`."""
        ended = ends(plan.actions)
        schedule = partial(
            Scheduler,
            plan.actions,
            limits=plan.limits,
            max_workers=self.max_workers,
            on_failure=on_failure,
            ranks=ranks,
            ended=ended,
            policies=policies,
            workerless=workerless,
            tolerances=plan.tolerances,
        )
        with _built_to_last() as built:
            links = order.links(plan.actions, order.passed(plan.actions, ended))
            engine = engines.load(
                flow.build(links, make_task, plan.name or plan.uuid),
                engine="actionplan",
                schedule=schedule,
                recorder=recorder,
                events=events,
                max_workers=self.max_workers,
                grace_s=self.grace_s,
                held_by_others=tuple(held_by_others),
                requests=tuple(requests),
            )
            engine.compile()
            built()
            engine.run()
        halt: Halt | None = engine.halt
        return halt


@contextmanager
def _built_to_last() -> Iterator[Callable[[], None]]:
    """Let no garbage be looked for until ``built`` is called, and never in what is there by then.

    It lives as long as the run. Looking through a large plan again and again takes a third of the
    time that actions which do nothing take as a whole, more for each action the larger the plan is.
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
