"""Runs one plan: claims it, lets an engine run what is left of it, gives it its final state."""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from applier.contracts import ActionPlugin, Claimant, Cloud, Listener, Machines, Request
from applier.engines import Engine, Events
from applier.engines.tasks import task_maker, workerless
from applier.errors import StoreError, UnknownActionTypes
from applier.recording.recorder import Recorder
from applier.run import outcome
from applier.run.durations import PastDurations, estimates
from applier.run.heartbeat import Heartbeat
from applier.run.requests import RequestReader, can_follow
from applier.run.verify import verify_all
from applier.scheduling.forecast import best_ranks
from applier.scheduling.resumption import was_cut_off
from applier.scheduling.turn import Halt, Turn
from applier.scheduling.type_policy import TypePolicy
from applier.scheduling.verdict import OnFailure
from applier.store import Reservation, RunStore
from planner.graph import validate
from planner.model import JOIN, ActionPlan
from planner.states import OPEN, ActionState, PlanState

#: Kinds of tokens that name what two plans must not work on at once.
RESOURCES = ("instance", "node", "volume")
_HANDED_BACK = "which hands it back"


class Runner:
    """Runs one plan once; an instance for each run.

    ``plugins``, ``options`` and ``policies`` go by action type; ``machines`` are closed at the end.
    ``on_failure`` holds for plans that say nothing themselves. While the store is away nothing
    starts, and for up to ``store_patience_s`` seconds it is asked again. ``verify_patience_s`` is
    how long plugins may take to say whether what was cut off is done. ``pace`` is how many seconds
    of a pause or a sleep pass in a second, as in a simulated cloud. :meth:`pause` and
    :meth:`cancel` may be called before and while it runs, by any thread and by signal handlers.
    """

    def __init__(
        self,
        store: RunStore,
        engine: Engine,
        plugins: Mapping[str, type[ActionPlugin]],
        *,
        cloud: Callable[[], Cloud],
        claimant: Claimant,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        machines: Machines | None = None,
        policies: Mapping[str, TypePolicy] | None = None,
        on_failure: str = OnFailure.SKIP_DESCENDANTS,
        listeners: Iterable[Listener] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        request_interval_s: float = 1.0,
        heartbeat_interval_s: float = 5.0,
        store_patience_s: float = 120.0,
        verify_patience_s: float = 30.0,
        pace: float = 1.0,
    ) -> None:
        self._store, self._engine, self._plugins = store, engine, plugins
        self._cloud, self._options, self._claimant = cloud, options, claimant
        self._policies, self._machines = policies or {}, machines
        self._on_failure = OnFailure(on_failure)
        self._listeners, self._clock = tuple(listeners), clock
        self._request_interval_s, self._heartbeat_interval_s = (
            request_interval_s,
            heartbeat_interval_s,
        )
        self._store_patience_s, self._verify_patience_s = store_patience_s, verify_patience_s
        self._pace = pace
        self._events: Events = queue.SimpleQueue()
        self._handed_back = False

    def pause(self, who: str = "the applier", why: str | None = None) -> None:
        """Start nothing new; what runs ends, and the plan is PAUSED."""
        self._events.put(Request(verb="pause", who=who, why=why))

    def cancel(self, who: str = "the applier", why: str | None = None) -> None:
        """Start nothing new and tell what runs to stop; the plan is CANCELLED when it has."""
        self._events.put(Request(verb="cancel", who=who, why=why))

    def hand_back(self, who: str = "the applier", why: str | None = None) -> None:
        """Start nothing new; what runs ends, and the plan is PENDING again, for another applier.

        Unless something else pauses or cancels it.
        """
        self._handed_back = True
        self.pause(f"{who}, {_HANDED_BACK}", why)

    def run(self, uuid: str) -> PlanState:
        """Run a PENDING plan; gives the state that it ended in, PAUSED, or PENDING (handed back).

        Actions that ended in an earlier run are left as they are; those that were cut off are
        verified before anything starts. Raises UnknownActionTypes or InvalidPlan before anything is
        changed, PlanConflict when the plan is not PENDING or is taken away while it runs,
        StoreError when the record fails: the plan stays ONGOING then. Any other exception is a bug,
        and is raised after the plan was made FAILED.
        """
        try:
            return self._run(uuid)
        finally:
            if self._machines is not None:
                self._machines.close()

    def _run(self, uuid: str) -> PlanState:
        plan = self._store.load_plan(uuid)
        plugins = self._resolve(plan)
        validate(plan.actions)
        # Requests are made only of a plan that runs: these are of earlier runs. A skip that
        # did not come to pass then is still wanted, and a limit holds until there is another.
        earlier = self._store.requests(uuid)
        claim = self._store.claim_plan(uuid, self._claimant, now=self._clock())
        plan = self._store.load_plan(uuid)
        recorder = Recorder(
            self._store,
            plan,
            claim,
            clock=self._clock,
            listeners=self._listeners,
            patience_s=self._store_patience_s,
        )
        with recorder, self._heartbeat(uuid, claim):
            plan = self._verified(plan, plugins, recorder)
            held_by_others = self._reserved(plan, recorder)
            with self._request_reader(plan, earlier, held_by_others):
                halt = self._run_engine(plan, plugins, recorder, earlier, held_by_others)
            joins = {a.uuid for a in plan.actions if a.action_type == JOIN}
            state, message = outcome.fold(
                [state for uuid, state in recorder.states.items() if uuid not in joins],
                halt,
                joins=[recorder.states[uuid] for uuid in joins],
            )
            if state is PlanState.PAUSED and self._is_handed_back(uuid, earlier, halt):
                state = PlanState.PENDING
            recorder.move(state, message)
        return state

    def _run_engine(
        self,
        plan: ActionPlan,
        plugins: Mapping[str, type[ActionPlugin]],
        recorder: Recorder,
        earlier: Iterable[Request],
        held_by_others: Iterable[Reservation],
    ) -> Halt | None:
        without = workerless(plan.actions, plugins)
        return self._engine.run(
            plan,
            recorder,
            self._events,
            make_task=task_maker(
                plan.actions,
                plugins,
                cloud=self._cloud,
                options=self._options,
                policies=self._policies,
                machines=self._machines,
                cut_off=self._cut_off(plan),
                pace=self._pace,
            ),
            on_failure=OnFailure(plan.on_failure or self._on_failure),
            ranks=self._ranks(plan, without),
            policies=self._policies,
            workerless=without,
            held_by_others=held_by_others,
            requests=[
                w for w in earlier if w.verb in ("skip", "limit") and can_follow(plan.uuid, w)
            ],
        )

    def _is_handed_back(self, uuid: str, earlier: Sequence[Request], halt: Halt | None) -> bool:
        """Say whether a pause is only this applier's own: an operator's pause stays one."""
        if not self._handed_back or halt is None or _HANDED_BACK not in halt.why:
            return False
        after = max((request.number for request in earlier), default=0)
        return all(request.verb != "pause" for request in self._store.requests(uuid, after))

    def _ranks(self, plan: ActionPlan, without: Collection[str]) -> Mapping[str, int]:
        """Give the ranks of the forecast, so that what was predicted is what runs."""
        durations = PastDurations(self._recorded, estimates(self._policies)).of(plan)
        return best_ranks(
            plan.actions,
            durations.seconds,
            limits=plan.limits,
            max_workers=self._engine.max_workers,
            workerless=without,
        )

    def _recorded(self, action_types: Sequence[str]) -> Mapping[str, list[float]]:
        """Give what earlier runs took; nothing if the record is away: it is no reason to wait."""
        try:
            return self._store.durations(action_types)
        except StoreError:
            return {}

    def _verified(
        self, plan: ActionPlan, plugins: Mapping[str, type[ActionPlugin]], recorder: Recorder
    ) -> ActionPlan:
        """Settle what was cut off, on record; gives the plan as it is then."""
        reports = verify_all(
            plan.actions,
            plugins,
            cloud=self._cloud,
            options=self._options,
            machines=self._machines,
            patience_s=self._verify_patience_s,
        )
        if not reports:
            return plan
        recorder.commit(Turn(ended=reports))
        return self._store.load_plan(plan.uuid)

    def _cut_off(self, plan: ActionPlan) -> set[str]:
        """Give those that are to run again, and of whose last attempt nobody knows what it did."""
        again = [a.uuid for a in plan.actions if a.state is ActionState.PENDING and a.attempts]
        return {uuid for uuid in again if was_cut_off(self._store.attempts(plan.uuid, uuid))}

    def _reserved(self, plan: ActionPlan, recorder: Recorder) -> tuple[Reservation, ...]:
        """Reserve what is left to work on; gives what other plans reserved before."""
        wanted = {
            token: None
            for action in plan.actions
            if action.state in OPEN
            for token in action.tokens
            if token.partition(":")[0] in RESOURCES
        }
        if not wanted:
            return ()
        recorder.reserve(list(wanted))
        return tuple(self._store.held_by_others(plan.uuid))

    def _resolve(self, plan: ActionPlan) -> dict[str, type[ActionPlugin]]:
        """Give the plugin of each action type of the plan; raises UnknownActionTypes."""
        needed = {a.action_type for a in plan.actions} - {JOIN}
        known = set(self._plugins)
        if not needed <= known:
            raise UnknownActionTypes(plan.uuid, needed - known, known)
        return {name: self._plugins[name] for name in needed}

    def _heartbeat(self, plan: str, claim: str) -> Heartbeat:
        return Heartbeat(
            self._store,
            plan,
            claim,
            events=self._events,
            clock=self._clock,
            interval_s=self._heartbeat_interval_s,
        )

    def _request_reader(
        self, plan: ActionPlan, earlier: Sequence[Request], held_by_others: tuple[Reservation, ...]
    ) -> RequestReader:
        return RequestReader(
            self._store,
            plan.uuid,
            after=max((request.number for request in earlier), default=0),
            events=self._events,
            interval_s=self._request_interval_s,
            held_by_others=held_by_others,
        )
