# SPDX-License-Identifier: Apache-2.0
"""Runs one plan: claims it, lets an engine run its open actions, and records its final state."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from applier.contracts import Claimant, HistoryEntry, Listener, Report, Request, RequestVerb
from applier.engines import Events, PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import only_waiting, task_maker, workerless
from applier.errors import DamagedRecord, GuardRefusal, RequestsUnread, StoreError, sound_part
from applier.recording.recorder import Recorder
from applier.run import outcome, plan_cloud
from applier.run.durations import NOTHING, PastDurations, estimates
from applier.run.interrupted_actions import (
    Findings,
    described,
    end_commands,
    is_found_there,
    left_in,
    verify_all,
)
from applier.run.periodic import Heartbeats, Periodic, RequestReader, can_follow
from applier.run.setup import Jobs, RunSetup
from applier.scheduling.course import Ranking
from applier.scheduling.decisions import FAILURE_BUDGET, Decisions
from applier.scheduling.holding import Breaker
from applier.scheduling.resumption import TO_VERIFY, going_on, was_cut_off
from applier.scheduling.submissions import Concurrency
from applier.scheduling.verdict import FailureRules
from applier.scheduling.waiting import resources_of
from applier.store.samples import Sample
from planner.plan.graph import validate
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import OPEN, ActionState, PlanState

#: The verbs of requests that still hold in a later run of their plan.
KEPT = (RequestVerb.SKIP, RequestVerb.LIMIT)


class Runner:
    """Runs one plan once; make an instance for each run.

    :meth:`pause`, :meth:`cancel` and :meth:`hand_back` return at once; they may be called before
    and while the plan runs, by any thread and by signal handlers.
    """

    def __init__(self, setup: RunSetup) -> None:
        self._setup, self._store = setup, setup.store
        self._events: Events = queue.SimpleQueue()
        self._order: Ranking | None = None

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
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            self._require_runnable(plan, environment)
            # Requests are made only while a plan runs, so these are from earlier runs. A skip that
            # has not taken effect is still wanted, and a limit holds until it is changed.
            earlier = self._store.requests(uuid)
            before = self._store.last_claimant(uuid)
            beats = Heartbeats(self._store, uuid, events=self._events, clock=self._setup.clock)
            reader = RequestReader(self._store, plan, after=_last(earlier), events=self._events)
            # Before the claim, so that nothing has changed if a thread cannot be started.
            with (
                Periodic("heartbeat", self._setup.heartbeat_interval_s, beats.beat),
                Periodic("request reader", self._setup.request_interval_s, reader.poll),
            ):
                beats.claim = claim = self._claimed(plan)
                # Somebody else may have run or changed it since, up to the claim.
                looked_at, plan = plan, self._store.refresh_plan(plan)
                jobs = self._jobs_of(plan)
                with (
                    self._listeners(plan) as listeners,
                    self._recorder(plan, claim, listeners) as r,
                ):
                    run = _ClaimedRun(plan, environment, r, reader, earlier, before, jobs)
                    refused = self._refusal(looked_at, plan)
                    if refused is None:
                        return self._carry_out(run)
                    self._end(run, PlanState.PENDING, f"it was changed: {refused}")
                raise refused

    def end_commands(self, uuid: str) -> list[Report]:
        """End the commands and jobs that interrupted actions of a plan have left.

        Return a report for each such action, which the caller writes to the store. Raises
        UnknownActionTypes, PlanConflict or StoreError.
        """
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            jobs = self._jobs_of(plan)
            runs_at = self._setup.runs_at
            plugins, with_jobs = environment.plugins, [a for a in plan.actions if a.uuid in jobs]
            there = {a.uuid for a in with_jobs if is_found_there(a, plugins[a.action_type])}
            ended = runs_at.end_jobs(uuid, jobs, there) if runs_at else []
            commands = end_commands(
                [a for a in plan.actions if a.uuid not in jobs],
                environment,
                before=self._store.last_claimant(uuid),
                host=self._setup.claimant.host,
                folder=self._setup.claimant.jobs,
            )
            return [*ended, *commands]

    def found_commands(self, uuid: str) -> Mapping[str, str]:
        """Return a description of the commands of each interrupted action that has some, by uuid.

        Raises UnknownActionTypes or StoreError.
        """
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            return described(plan.actions, environment)

    def planned_s(self) -> float | None:
        """Return how many seconds the run was expected to take when it began.

        None if it has not begun, or if an action had no estimate and no earlier runs.
        """
        return None if self._order is None else self._order.timeline.makespan_s

    # Before and after the claim

    def _require_runnable(self, plan: ActionPlan, environment: ActionEnvironment) -> None:
        """Raise an error for a plan that cannot or may not run here, or cannot be followed."""
        plan_cloud.require_own(plan, environment.plugins, environment.cloud)
        validate(plan.actions)
        if self._setup.require_allowed is not None:
            self._setup.require_allowed(plan)
        self._jobs_of(plan)
        self._cut_off(plan)

    def _claimed(self, plan: ActionPlan) -> str:
        interval_s = self._setup.heartbeat_interval_s
        claimant = self._setup.claimant._replace(heartbeat_interval_s=interval_s)
        if self._setup.options_of is not None:
            claimant = claimant._replace(options=self._setup.options_of(plan))
        return self._store.claim_plan(plan.uuid, claimant, now=self._setup.clock())

    def _jobs_of(self, plan: ActionPlan) -> Jobs:
        """Return the jobs of interrupted actions; raise PlanConflict if they cannot be followed."""
        doubtful = any(action.state in TO_VERIFY for action in plan.actions)
        return self._setup.jobs_of(plan) if doubtful else {}

    def _cut_off(self, plan: ActionPlan) -> set[str]:
        """Return the PENDING actions whose last attempt was interrupted; it must be readable."""
        again = [a.uuid for a in plan.actions if a.state is ActionState.PENDING and a.attempts]
        return {uuid for uuid in again if was_cut_off(self._store.attempts(plan.uuid, uuid))}

    @contextmanager
    def _listeners(self, plan: ActionPlan) -> Iterator[tuple[Listener, ...]]:
        """Yield the listeners of the run of a plan."""
        if self._setup.listener_of is None:
            yield self._setup.listeners
            return
        with self._setup.listener_of(plan) as listener:
            yield (*self._setup.listeners, listener)

    def _recorder(self, plan: ActionPlan, claim: str, listeners: Iterable[Listener]) -> Recorder:
        return Recorder(
            self._store,
            plan,
            claim,
            clock=self._setup.clock,
            listeners=listeners,
            patience_s=self._setup.store_patience_s,
        )

    def _refusal(self, looked_at: ActionPlan, plan: ActionPlan) -> GuardRefusal | None:
        """Return the refusal of a plan that changed before its claim; None if it may run."""
        if self._setup.require_allowed is None or _states(looked_at) == _states(plan):
            return None
        try:
            self._setup.require_allowed(plan)
        except GuardRefusal as refused:
            return refused
        return None

    # Under the claim

    def _carry_out(self, run: _ClaimedRun) -> PlanState:
        """Run a plan that is claimed; record its state and return it."""
        run, found = self._verified(run)
        plan, recorder = run.plan, run.recorder
        wanted = resources_of(
            a for a in plan.actions if a.state in OPEN or a.uuid in found.given_up
        )
        if wanted:
            recorder.reserve(wanted)
            run.reader.held_by_others = tuple(self._store.held_by_others(plan.uuid))
        halt = self._setup.engine.run(self._plan_run(run, found))
        joins = {a.uuid for a in plan.actions if a.action_type == JOIN}
        state, message = outcome.fold(
            [state for uuid, state in recorder.states.items() if uuid not in joins],
            halt,
            joins=[recorder.states[uuid] for uuid in joins],
        )
        entry = outcome.history_entry(state, halt, self._setup.clock())
        return self._end(run, state, message, entry)

    def _verified(self, run: _ClaimedRun) -> tuple[_ClaimedRun, Findings]:
        """Look for commands of interrupted actions, verify the others, and record their states.

        Actions with jobs at workers go on, even if the job has ended. Return the updated plan.
        """
        plan, jobs = run.plan, run.jobs
        if not any(action.state in TO_VERIFY for action in plan.actions):
            return run, Findings()
        found = verify_all(
            [a for a in plan.actions if a.uuid not in jobs],
            run.environment,
            self._setup.verify_patience_s,
            before=run.before,
            host=self._setup.claimant.host,
            folder=self._setup.claimant.jobs,
            left_in=left_in(self._store, plan),
        )
        for action in plan.actions:
            if action.uuid in jobs:
                found.continued[action.uuid] = max(0.0, jobs[action.uuid].age_s)
                found.reports += [report] if (report := going_on(action)) else []
        if found.reports:
            run.recorder.commit(Decisions(ended=found.reports))
            for machines in found.not_begun:
                machines.forget()
            run = replace(run, plan=self._store.refresh_plan(plan))
        return run, found

    def _plan_run(self, run: _ClaimedRun, found: Findings) -> PlanRun:
        setup, plan, plugins = self._setup, run.plan, run.environment.plugins
        concurrency = Concurrency(
            limits=plan.limits,
            places=plan.places,
            max_workers=setup.engine.max_workers,
            workerless=workerless(plan.actions, plugins),
        )
        continued, cut_off = found.continued, self._cut_off(plan)
        runs_at = setup.runs_at
        return PlanRun(
            plan=plan,
            recorder=run.recorder,
            events=self._events,
            make_task=task_maker(plan.actions, run.environment, cut_off, continued),
            concurrency=concurrency,
            failures=FailureRules(
                on_failure=setup.on_failure_of(plan),
                policies=run.environment.policies,
                tolerances=plan.tolerances,
                breaker=self._breaker(plan),
            ),
            ranks=self._ranks(run, concurrency),
            held_by_others=run.reader.held_by_others,
            given_up=found.given_up,
            requests=[r for r in run.earlier if r.verb in KEPT and can_follow(plan, r)],
            holding=setup.holding_of(plan, self.pause) if setup.holding_of else None,
            make_executor=runs_at.executor_of(plan, run.jobs, setup.tell) if runs_at else None,
        )

    def _breaker(self, plan: ActionPlan) -> Breaker | None:
        """Return the breaker that pauses a plan after failures; None without a failure budget.

        Pause the plan if failures of earlier runs exceed the budget.
        """
        breaker = self._setup.budget_of(plan) if self._setup.budget_of else None
        if breaker and (exceeded := breaker.exceeded()):
            self.pause(FAILURE_BUDGET, exceeded)
        return breaker

    def _ranks(self, run: _ClaimedRun, concurrency: Concurrency) -> Mapping[str, int]:
        """Return the ranks of a forecast, so that the run follows the prediction.

        Places of workers and durations of earlier runs are left out if they cannot be read.
        """
        plan, policies = run.plan, run.environment.policies
        past = PastDurations(self._recorded, estimates(policies))
        durations = past.of(plan)
        if self._setup.runs_at is not None:
            waiting = only_waiting(plan.actions, run.environment.plugins)
            with suppress(StoreError, DamagedRecord):
                here = {*concurrency.workerless, *waiting}
                queues = self._setup.runs_at.queue_limits(plan, here)
                limits = {**plan.limits, **queues.limits}
                concurrency = replace(concurrency, limits=limits, queue_tokens=queues.tokens)
        order = Ranking(plan.actions, durations.seconds, concurrency)
        self._order = None if NOTHING in durations.known_from else order
        return order.ranks

    def _recorded(self, action_types: Sequence[str]) -> Mapping[str, list[Sample]]:
        """Return the durations of earlier runs; none if they cannot be read."""
        try:
            return self._store.durations(action_types)
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
            asked, damaged = sound_part(lambda: self._store.requests(run.plan.uuid, before))
            cancels = [request for request in asked if request.cancels]
            if cancels:
                return self._cancel_rest(recorder, cancels[-1])
            if any(request.pauses for request in asked):
                state = PlanState.PAUSED
            if damaged:
                # It may be a cancel: an operator has to look.
                state, message = PlanState.PAUSED, f"{message}; {damaged[0]}"
                break
            read = max((request.number for request in asked), default=before)
            try:
                recorder.move(state, message, read=read, history=entry)
            except RequestsUnread:
                continue
            return state
        recorder.move(state, message, history=entry)
        return state

    def _cancel_rest(self, recorder: Recorder, request: Request) -> PlanState:
        """Cancel a plan of which no action runs any more."""
        message = f"cancelled {request.by}"
        ended = outcome.cancelled(recorder.states, message)
        recorder.commit(Decisions(cancelling=message, ended=ended))
        recorder.move(PlanState.CANCELLED, message)
        return PlanState.CANCELLED


@dataclass(frozen=True)
class _ClaimedRun:
    """A run that holds the claim of its plan.

    ``earlier`` are the requests until the claim, ``before`` is who ran the plan last, ``jobs`` are
    those of interrupted actions.
    """

    plan: ActionPlan
    environment: ActionEnvironment
    recorder: Recorder
    reader: RequestReader
    earlier: Sequence[Request]
    before: Claimant | None
    jobs: Jobs


def _last(requests: Iterable[Request]) -> int:
    return max((request.number for request in requests), default=0)


def _states(plan: ActionPlan) -> list[ActionState]:
    return [action.state for action in plan.actions]
