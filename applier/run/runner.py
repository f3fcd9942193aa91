# SPDX-License-Identifier: Apache-2.0
"""Runs one plan: claims it, lets an engine run its open actions, and records its final state."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from applier.contracts import (
    Claimant,
    HistoryEntry,
    Listener,
    Report,
    Request,
    RequestVerb,
    RunOptions,
)
from applier.engines.engine import Engine, Events, PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.recorder import Recorder
from applier.engines.tasks import only_waiting, task_maker, workerless
from applier.errors import DamagedRecord, GuardRefusal, RequestsUnread, StoreError, sound_part
from applier.run import plan_cloud
from applier.run.expected_durations import NOTHING, PastDurations, estimates
from applier.run.heartbeats_and_requests import Heartbeats, Periodic, RequestReader, can_follow
from applier.run.interrupted_actions import (
    Finding,
    InterruptedActions,
    Jobs,
    is_found_there,
    left_in,
)
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Ranking
from applier.scheduling.decisions import FAILURE_BUDGET, Breaker, Decisions, Holding
from applier.scheduling.failures import FailureRules, OnFailure
from applier.scheduling.final_state import cancelled, fold, history_entry
from applier.scheduling.interrupted import TO_VERIFY, going_on, was_cut_off
from applier.scheduling.waiting import resources_of
from applier.store import RunStore
from applier.store.runs import Sample
from applier.wording import wait_for_others
from planner.plan.graph import validate
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import OPEN, ActionState, PlanState

if TYPE_CHECKING:
    from applier.workers.remote_workers import RemoteRuns

#: The verbs of requests that still hold in a later run of their plan.
KEPT = (RequestVerb.SKIP, RequestVerb.LIMIT)
#: Pauses a plan; the arguments are who pauses it, and why.
Pause = Callable[[str, str | None], None]


@dataclass(kw_only=True, eq=False)
class Runner:
    """Runs one plan once, with these parts and settings; make an instance for each run.

    ``claimant`` is who runs it. ``options_of`` returns the options of a run of a plan, which are
    recorded; without them, a failed action has the effect that the plan says. While the store
    cannot be reached, no action starts, and writes are retried for up to ``store_patience_s``
    seconds. Plugins may take up to ``verify_patience_s`` seconds to verify an interrupted action.
    ``listener_of`` returns a context manager around the run of a claimed plan, which yields one
    more listener. ``require_allowed`` raises GuardRefusal for a plan that may not run.
    ``holding_of`` returns the holding that keeps actions of a plan waiting, or None; the holding
    may call its second argument to pause the plan. ``budget_of`` returns the breaker that pauses a
    plan after failures, or None. ``runs_at`` executes the actions at workers; without it, threads
    of this process do. ``jobs_of`` returns the jobs at workers of interrupted actions of a plan; it
    raises PlanConflict if they cannot be followed. ``tell`` gets sentences about what actions wait
    for: workers, other plans.

    :meth:`pause`, :meth:`cancel` and :meth:`hand_back` return at once; they may be called before
    and while the plan runs, by any thread and by signal handlers.
    """

    store: RunStore
    engine: Engine
    environment: ActionEnvironment
    claimant: Claimant
    options_of: Callable[[ActionPlan], RunOptions | None] = lambda _: None
    listeners: tuple[Listener, ...] = ()
    listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None
    require_allowed: Callable[[ActionPlan], None] = lambda _: None
    holding_of: Callable[[ActionPlan, Pause], Holding | None] | None = None
    budget_of: Callable[[ActionPlan], Breaker | None] | None = None
    runs_at: RemoteRuns | None = None
    jobs_of: Callable[[ActionPlan], Jobs] = lambda _: {}
    tell: Callable[[str], None] = lambda _: None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    request_interval_s: float = 1.0
    heartbeat_interval_s: float = 5.0
    store_patience_s: float = 120.0
    verify_patience_s: float = 30.0
    _events: Events = field(init=False, default_factory=queue.SimpleQueue)
    _order: Ranking | None = field(init=False, default=None)

    def pause(self, who: str = "the applier", why: str | None = None) -> None:
        """Start no more actions but those that nodes need to finish; leave the plan PAUSED."""
        self._events.put(Request(verb=RequestVerb.PAUSE, who=who, why=why))

    def cancel(self, who: str = "the applier", why: str | None = None) -> None:
        """Start no more actions, signal running actions to stop, and leave the plan CANCELLED."""
        self._events.put(Request(verb=RequestVerb.CANCEL_NOW, who=who, why=why))

    def hand_back(self, who: str = "the applier", why: str | None = None) -> None:
        """Start no more actions, let running actions end, and leave the plan PENDING.

        Another applier can then continue it. A pause or cancel of an operator takes precedence.
        """
        self._events.put(Request(verb=RequestVerb.HAND_BACK, who=who, why=why))

    def run(self, uuid: str) -> PlanState:
        """Run a PENDING plan; return its final state, PAUSED, or PENDING if it was handed back.

        Actions that ended in an earlier run stay as they are. Interrupted actions are verified
        before any action starts. Raises UnknownActionTypes, OtherCloud, InvalidPlan, GuardRefusal
        or NoThread before anything is changed. Raises PlanConflict if the plan is not PENDING, or
        if its claim is lost during the run. Raises StoreError if the store fails; the plan then
        stays ONGOING. Any other exception is a bug, and is raised after the plan was made FAILED.
        """
        plan, store = self.store.load_plan(uuid), self.store
        with ExitStack() as stack:
            environment = stack.enter_context(closing(self.environment.of_plan(plan)))
            plan_cloud.require_own(plan, environment.plugins, environment.cloud)
            validate(plan.actions)
            self.require_allowed(plan)
            left, options = self._left(plan), self.options_of(plan)
            # Requests are made only while a plan runs, so these are from earlier runs. A skip that
            # has not taken effect is still wanted, and a limit holds until it is changed.
            earlier, before = store.requests(uuid), store.last_claimant(uuid)
            beats = Heartbeats(store, uuid, events=self._events, clock=self.clock)
            reader = RequestReader(store, plan, after=_last(earlier), events=self._events)
            # Before the claim, so that nothing has changed if a thread cannot be started.
            stack.enter_context(Periodic("heartbeat", self.heartbeat_interval_s, beats.beat))
            stack.enter_context(Periodic("request reader", self.request_interval_s, reader.poll))
            interval_s = self.heartbeat_interval_s
            claimant = self.claimant._replace(heartbeat_interval_s=interval_s, options=options)
            beats.claim = claim = store.claim_plan(uuid, claimant, now=self.clock())
            # Somebody else may have run or changed it since, up to the claim.
            looked_at, plan = plan, store.refresh_plan(plan)
            is_same = plan.actions == looked_at.actions
            left = left if is_same else self._left(plan)
            listeners = self.listeners
            if self.listener_of is not None:
                listeners = (*listeners, stack.enter_context(self.listener_of(plan)))
            with Recorder(
                store,
                plan,
                claim,
                clock=self.clock,
                listeners=listeners,
                patience_s=self.store_patience_s,
            ) as recorder:
                run = _ClaimedRun(
                    plan, environment, recorder, reader, options, earlier, before, *left
                )
                try:
                    if not is_same:
                        self.require_allowed(plan)
                except GuardRefusal as reason:
                    refused = reason
                    self._end(run, PlanState.PENDING, f"it was changed: {refused}")
                else:
                    return self._carry_out(run)
            raise refused

    def end_commands(self, uuid: str) -> list[Report]:
        """End the commands and jobs that interrupted actions of a plan have left.

        Return a report for each such action, which the caller writes to the store. Raises
        UnknownActionTypes, PlanConflict or StoreError.
        """
        plan = self.store.load_plan(uuid)
        with closing(self.environment.of_plan(plan)) as environment:
            (jobs, _), of_type = self._left(plan), environment.plugins
            with_jobs = [a for a in plan.actions if a.uuid in jobs]
            there = {a.uuid for a in with_jobs if is_found_there(a, of_type[a.action_type])}
            ended = self.runs_at.end_jobs(uuid, jobs, there) if self.runs_at else []
            left = self._interrupted(environment, self.store.last_claimant(uuid))
            commands = left.end_commands([a for a in plan.actions if a.uuid not in jobs])
            return [*ended, *commands]

    def found_commands(self, uuid: str) -> Mapping[str, str]:
        """Return a description of the commands of each interrupted action that has some, by uuid.

        Raises UnknownActionTypes or StoreError.
        """
        plan = self.store.load_plan(uuid)
        with closing(self.environment.of_plan(plan)) as environment:
            return InterruptedActions(environment=environment).described(plan.actions)

    def planned_s(self) -> float | None:
        """Return how many seconds the run was expected to take when it began.

        None if it has not begun, or if an action had no estimate and no earlier runs.
        """
        return None if self._order is None else self._order.timeline.makespan_s

    def _left(self, plan: ActionPlan) -> tuple[Jobs, Set[str]]:
        """Read what earlier runs have left; raise PlanConflict for jobs that nobody here follows.

        Also raises StoreError, DamagedRecord.
        """
        doubtful = any(action.state in TO_VERIFY for action in plan.actions)
        again = [a.uuid for a in plan.actions if a.state is ActionState.PENDING and a.attempts]
        cut_off = {uuid for uuid in again if was_cut_off(self.store.attempts(plan.uuid, uuid))}
        return self.jobs_of(plan) if doubtful else {}, cut_off

    def _interrupted(
        self, environment: ActionEnvironment, before: Claimant | None
    ) -> InterruptedActions:
        return InterruptedActions(
            environment=environment,
            before=before,
            host=self.claimant.host,
            folder=self.claimant.jobs,
        )

    # Under the claim

    def _carry_out(self, run: _ClaimedRun) -> PlanState:
        """Run a plan that is claimed; record its state and return it."""
        self._verify(run)
        plan, recorder = run.plan, run.recorder
        wanted = resources_of(a for a in plan.actions if a.state in OPEN or a.uuid in run.given_up)
        if wanted:
            recorder.reserve(wanted)
            run.reader.held_by_others = tuple(self.store.held_by_others(plan.uuid))
            for line in wait_for_others(run.reader.held_by_others):
                self.tell(line)
        halt = self.engine.run(self._plan_run(run))
        joins = {a.uuid for a in plan.actions if a.action_type == JOIN}
        state, message = fold(
            [state for uuid, state in recorder.states.items() if uuid not in joins],
            halt,
            joins=[recorder.states[uuid] for uuid in joins],
        )
        return self._end(run, state, message, history_entry(state, halt, self.clock()))

    def _verify(self, run: _ClaimedRun) -> None:
        """Look for commands of interrupted actions, verify the others, and record their states.

        Actions with jobs at workers go on, even if the job has ended.
        """
        plan, jobs = run.plan, run.jobs
        if not any(action.state in TO_VERIFY for action in plan.actions):
            return
        left = self._interrupted(run.environment, run.before)
        left = replace(left, left_in=left_in(self.store, plan))
        others = [a for a in plan.actions if a.uuid not in jobs]
        found = left.verify(others, self.verify_patience_s)
        followed = [a for a in plan.actions if a.uuid in jobs]
        found += [Finding(a.uuid, going_on(a), max(0.0, jobs[a.uuid].age_s)) for a in followed]
        run.continued = {f.uuid: f.age_s for f in found if f.age_s is not None}
        run.given_up = {f.uuid for f in found if f.given_up}
        if reports := [f.report for f in found if f.report]:
            run.recorder.commit(Decisions(ended=reports))
            for machines in filter(None, (f.not_begun for f in found)):
                machines.forget()
            run.plan = self.store.refresh_plan(plan)
            run.cut_off |= {r.uuid for r in reports if r.state is ActionState.PENDING}

    def _plan_run(self, run: _ClaimedRun) -> PlanRun:
        plan, environment = run.plan, run.environment
        concurrency = Concurrency(
            limits=plan.limits,
            places=plan.places,
            max_workers=self.engine.max_workers,
            workerless=workerless(plan.actions, environment.plugins),
        )
        # Failures of earlier runs may exceed the budget already.
        breaker = self.budget_of(plan) if self.budget_of else None
        if breaker and (exceeded := breaker.exceeded()):
            self.pause(FAILURE_BUDGET, exceeded)
        runs_at = self.runs_at
        on_failure = run.options.on_failure if run.options else plan.on_failure
        return PlanRun(
            plan=plan,
            recorder=run.recorder,
            events=self._events,
            make_task=task_maker(plan.actions, environment, run.cut_off, run.continued),
            concurrency=concurrency,
            failures=FailureRules(
                on_failure=OnFailure(on_failure or OnFailure.SKIP_DESCENDANTS),
                policies=environment.policies,
                tolerances=plan.tolerances,
                breaker=breaker,
            ),
            ranks=self._ranks(run, concurrency),
            held_by_others=run.reader.held_by_others,
            given_up=run.given_up,
            requests=[r for r in run.earlier if r.verb in KEPT and can_follow(plan, r)],
            holding=self.holding_of(plan, self.pause) if self.holding_of else None,
            make_executor=runs_at.executor_of(plan, run.jobs, self.tell) if runs_at else None,
        )

    def _ranks(self, run: _ClaimedRun, concurrency: Concurrency) -> Mapping[str, int]:
        """Return the ranks of a forecast, so that the run follows the prediction.

        Places of workers and durations of earlier runs are left out if they cannot be read.
        """
        plan, environment = run.plan, run.environment
        durations = PastDurations(self._recorded, estimates(environment.policies)).of(plan)
        if self.runs_at is not None:
            waiting = only_waiting(plan.actions, environment.plugins)
            with suppress(StoreError, DamagedRecord):
                queues = self.runs_at.queue_limits(plan, {*concurrency.workerless, *waiting})
                limits = {**plan.limits, **queues.limits}
                concurrency = replace(concurrency, limits=limits, queue_tokens=queues.tokens)
        order = Ranking(plan.actions, durations.seconds, concurrency)
        self._order = None if NOTHING in durations.known_from else order
        return order.ranks

    def _recorded(self, action_types: Sequence[str]) -> Mapping[str, list[Sample]]:
        """Return the durations of earlier runs; none if they cannot be read."""
        try:
            return self.store.durations(action_types)
        except (StoreError, DamagedRecord):
            return {}

    def _end(
        self,
        run: _ClaimedRun,
        state: PlanState,
        message: str,
        entry: HistoryEntry | None = None,
    ) -> PlanState:
        """Record the state of a plan whose engine has ended, and return it.

        A pause or cancel that came too late for the engine is carried out: while the plan has
        actions left, its claim ends only once all requests have been read. With a damaged request,
        it becomes PAUSED.
        """
        recorder, before = run.recorder, _last(run.earlier)
        while state in (PlanState.PENDING, PlanState.PAUSED):
            asked, damaged = sound_part(lambda: self.store.requests(run.plan.uuid, before))
            cancels = [request for request in asked if request.cancels]
            if cancels:
                message = f"cancelled {cancels[-1].by}"
                ended = cancelled(recorder.states, message)
                recorder.commit(Decisions(cancelling=message, ended=ended))
                state, entry = PlanState.CANCELLED, None
                break
            if any(request.pauses for request in asked):
                state = PlanState.PAUSED
            if damaged:
                # It may be a cancel: an operator has to look.
                state, message = PlanState.PAUSED, f"{message}; {damaged[0]}"
                break
            read = max((request.number for request in asked), default=before)
            with suppress(RequestsUnread):
                recorder.move(state, message, read=read, history=entry)
                return state
        recorder.move(state, message, history=entry)
        return state


@dataclass
class _ClaimedRun:
    """A run that holds the claim of its plan.

    ``earlier`` are the requests until the claim, ``before`` is who ran the plan last. ``jobs`` are
    those of interrupted actions at workers, by action. ``cut_off`` are the PENDING actions whose
    last attempt was interrupted. ``continued`` are the attempts that go on: how many seconds ago
    each was started, by uuid. ``given_up`` are the UNKNOWN actions that may still run.
    """

    plan: ActionPlan
    environment: ActionEnvironment
    recorder: Recorder
    reader: RequestReader
    options: RunOptions | None
    earlier: Sequence[Request]
    before: Claimant | None
    jobs: Jobs
    cut_off: Set[str]
    continued: Mapping[str, float] = field(default_factory=dict)
    given_up: Set[str] = frozenset()


def _last(requests: Iterable[Request]) -> int:
    return max((request.number for request in requests), default=0)
