"""Runs one plan: claims it, lets an engine run what is left of it, gives it its final state."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from applier import outcome
from applier.contracts import Action as ActionPlugin
from applier.contracts import Claimant, Cloud, Listener, Store, Wish
from applier.engines import Engine, Events
from applier.errors import UnknownActionTypes
from applier.recorder import Recorder
from applier.scheduling.verdict import OnFailure
from applier.tasks import task_maker
from applier.wishes import WishReader
from planner.graph import validate
from planner.model import JOIN, ActionPlan
from planner.states import PlanState


class Runner:
    """Runs one plan once; an instance for each run.

    ``plugins`` and ``options`` go by action type. ``on_failure`` holds for plans that say nothing
    themselves. :meth:`pause` and :meth:`cancel` may be called before and while it runs, by any
    thread and by signal handlers.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        plugins: Mapping[str, type[ActionPlugin]],
        *,
        cloud: Callable[[], Cloud],
        claimant: Claimant,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        on_failure: str = OnFailure.SKIP_DESCENDANTS,
        listeners: Iterable[Listener] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        wish_interval_s: float = 1.0,
    ) -> None:
        self._store, self._engine, self._plugins = store, engine, plugins
        self._cloud, self._options, self._claimant = cloud, options, claimant
        self._on_failure = OnFailure(on_failure)
        self._listeners, self._clock = tuple(listeners), clock
        self._wish_interval_s = wish_interval_s
        self._events: Events = queue.SimpleQueue()

    def pause(self, who: str = "the applier", why: str | None = None) -> None:
        """Start nothing new; what runs ends, and the plan is PAUSED."""
        self._events.put(Wish(verb="pause", who=who, why=why))

    def cancel(self, who: str = "the applier", why: str | None = None) -> None:
        """Start nothing new and tell what runs to stop; the plan is CANCELLED when it has."""
        self._events.put(Wish(verb="cancel", who=who, why=why))

    def run(self, uuid: str) -> PlanState:
        """Run a PENDING plan; gives the state that it ended in, or PAUSED.

        Actions that ended in an earlier run are left as they are. Raises UnknownActionTypes or
        InvalidPlan before anything is changed, PlanConflict when the plan is not PENDING or is
        taken away while it runs, StoreError when the record fails. Any other exception is a bug,
        and is raised after the plan was made FAILED.
        """
        plan = self._store.load_plan(uuid)
        plugins = self._resolve(plan)
        validate(plan.actions)
        on_failure = OnFailure(plan.on_failure or self._on_failure)
        # Nobody wishes anything of a plan that nobody runs: these are of earlier runs. A skip that
        # did not come to pass then is still wanted.
        earlier = self._store.wishes(uuid)
        claim = self._store.claim_plan(uuid, self._claimant, now=self._clock())
        plan = self._store.load_plan(uuid)
        recorder = Recorder(self._store, plan, claim, clock=self._clock, listeners=self._listeners)
        with recorder, self._wish_reader(plan, earlier):
            stopped = self._engine.run(
                plan,
                recorder,
                self._events,
                make_task=task_maker(
                    plan.actions, plugins, cloud=self._cloud, options=self._options
                ),
                on_failure=on_failure,
                wishes=[wish for wish in earlier if wish.verb == "skip"],
            )
            state, message = outcome.fold(recorder.states.values(), stopped)
            recorder.move(state, message)
        return state

    def _resolve(self, plan: ActionPlan) -> dict[str, type[ActionPlugin]]:
        """Give the plugin of each action type of the plan; raises UnknownActionTypes."""
        needed = {a.action_type for a in plan.actions} - {JOIN}
        known = set(self._plugins)
        if not needed <= known:
            raise UnknownActionTypes(plan.uuid, needed - known, known)
        return {name: self._plugins[name] for name in needed}

    def _wish_reader(self, plan: ActionPlan, earlier: Sequence[Wish]) -> WishReader:
        return WishReader(
            self._store,
            plan.uuid,
            after=max((wish.number for wish in earlier), default=0),
            events=self._events,
            interval_s=self._wish_interval_s,
        )
