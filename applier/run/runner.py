# SPDX-License-Identifier: Apache-2.0
"""Runs one plan: claims it, lets an engine run its open actions, and records its final state."""

from __future__ import annotations

import queue
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from applier.contracts import Claimant, HistoryEntry, Listener, Report, Request, RequestVerb
from applier.engines import Events, PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.executor import MakeExecutor
from applier.engines.tasks import task_maker, workerless
from applier.errors import DamagedRecord, GuardRefusal, RequestsUnread, StoreError, sound_part
from applier.recording.recorder import Recorder
from applier.run import left_commands, outcome, plan_cloud
from applier.run.durations import NOTHING, PastDurations, estimates
from applier.run.periodic import Periodic, RequestReader, can_follow, heartbeat
from applier.run.setup import Jobs, RunSetup
from applier.run.verify import Findings, left_in, verify_all
from applier.scheduling.decisions import FAILURE_BUDGET, Decisions, Halt
from applier.scheduling.forecast import Ranking
from applier.scheduling.holding import Breaker
from applier.scheduling.queue_limits import QueueLimits
from applier.scheduling.resumption import TO_VERIFY, going_on, was_cut_off
from applier.scheduling.submissions import Concurrency
from applier.scheduling.verdict import OnFailure
from applier.scheduling.waiting import resources_of
from applier.store import Reservation
from applier.store.samples import Sample
from planner.graph import validate
from planner.model import JOIN, ActionPlan
from planner.states import OPEN, ActionState, PlanState


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
        before any action starts. Raises UnknownActionTypes, OtherCloud, InvalidPlan or GuardRefusal
        before anything is changed. Raises PlanConflict if the plan is not PENDING, or if its claim
        is lost during the run. Raises StoreError if the store fails; the plan then stays ONGOING.
        Any other exception is a bug, and is raised after the plan was made FAILED.
        """
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            return self._run(plan, environment)

    def end_commands(self, uuid: str) -> list[Report]:
        """End the commands and jobs that interrupted actions of a plan have left.

        Return a report for each such action, which the caller writes to the store. Raises
        UnknownActionTypes, PlanConflict or StoreError.
        """
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            jobs = self._jobs_of(plan)
            runs_at = self._setup.runs_at
            there = left_commands.found_there(plan, jobs, environment)
            ended = runs_at.end_jobs(uuid, jobs, there) if runs_at else []
            commands = left_commands.end_commands(
                [a for a in plan.actions if a.uuid not in jobs],
                environment,
                before=self._store.last_claimant(uuid),
                host=self._setup.claimant.host,
                folder=self._setup.claimant.jobs,
            )
            return [*ended, *commands]

    def _jobs_of(self, plan: ActionPlan) -> Jobs:
        return self._setup.runs_at.jobs_of(plan) if self._setup.runs_at else {}

    def found_commands(self, uuid: str) -> Mapping[str, str]:
        """Return a description of the commands of each interrupted action that has some, by uuid.

        Raises UnknownActionTypes or StoreError.
        """
        plan = self._store.load_plan(uuid)
        with closing(self._setup.environment.of_plan(plan)) as environment:
            return left_commands.described(plan.actions, environment)

    def _run(self, plan: ActionPlan, environment: ActionEnvironment) -> PlanState:
        uuid = plan.uuid
        plan_cloud.require_own(plan, environment.plugins, environment.cloud)
        validate(plan.actions)
        if self._setup.require_allowed is not None:
            self._setup.require_allowed(plan)
        # Requests are made only while a plan runs, so these are from earlier runs. A skip that has
        # not taken effect is still wanted, and a limit holds until it is changed.
        earlier = self._store.requests(uuid)
        doubtful = any(action.state in TO_VERIFY for action in plan.actions)
        before = self._store.last_claimant(uuid)
        if doubtful:
            self._jobs_of(plan)  # refuses jobs that cannot be followed here
        self._cut_off(plan)  # refuses attempts that cannot be read
        interval_s = self._setup.heartbeat_interval_s
        claimant = self._setup.claimant._replace(heartbeat_interval_s=interval_s)
        claim = self._store.claim_plan(uuid, claimant, now=self._setup.clock())
        # Somebody else may have run or changed it since, up to the claim.
        looked_at, plan = plan, self._store.refresh_plan(plan)
        doubtful = any(action.state in TO_VERIFY for action in plan.actions)
        jobs = self._jobs_of(plan) if doubtful else {}
        with (
            self._listeners(plan) as listeners,
            Recorder(
                self._store,
                plan,
                claim,
                clock=self._setup.clock,
                listeners=listeners,
                patience_s=self._setup.store_patience_s,
            ) as recorder,
            self._heartbeat(uuid, claim),
        ):
            refused = self._refusal(looked_at, plan)
            if refused is None:
                return self._carry_out(plan, environment, recorder, earlier, before, jobs)
            message = f"it was changed: {refused}"
            self._end(plan, recorder, earlier, PlanState.PENDING, message)
        raise refused

    def _refusal(self, looked_at: ActionPlan, plan: ActionPlan) -> GuardRefusal | None:
        """Return the refusal of a plan that changed before its claim; None if it may run."""
        if self._setup.require_allowed is None or _states(looked_at) == _states(plan):
            return None
        try:
            self._setup.require_allowed(plan)
        except GuardRefusal as refused:
            return refused
        return None

    def _carry_out(
        self,
        plan: ActionPlan,
        environment: ActionEnvironment,
        recorder: Recorder,
        earlier: Sequence[Request],
        before: Claimant | None,
        jobs: Jobs,
    ) -> PlanState:
        """Run a plan that is claimed; record its state and return it."""
        plan, found = self._verified(plan, environment, recorder, before, jobs)
        held_by_others = self._reserved(plan, found.given_up, recorder)
        with self._request_reader(plan, earlier, held_by_others):
            runs_at = self._setup.runs_at
            make_executor = runs_at.executor_of(plan, jobs, self._setup.tell) if runs_at else None
            halt = self._run_engine(
                plan, environment, recorder, earlier, held_by_others, found, make_executor
            )
        joins = {a.uuid for a in plan.actions if a.action_type == JOIN}
        state, message = outcome.fold(
            [state for uuid, state in recorder.states.items() if uuid not in joins],
            halt,
            joins=[recorder.states[uuid] for uuid in joins],
        )
        entry = outcome.history_entry(state, halt, self._setup.clock())
        return self._end(plan, recorder, earlier, state, message, entry)

    @contextmanager
    def _listeners(self, plan: ActionPlan) -> Iterator[tuple[Listener, ...]]:
        """Yield the listeners of the run of a plan."""
        if self._setup.listener_of is None:
            yield self._setup.listeners
            return
        with self._setup.listener_of(plan) as listener:
            yield (*self._setup.listeners, listener)

    def _end(
        self,
        plan: ActionPlan,
        recorder: Recorder,
        earlier: Sequence[Request],
        state: PlanState,
        message: str,
        entry: HistoryEntry | None = None,
    ) -> PlanState:
        """Record the state of a plan whose engine has ended, and return it.

        A pause or cancel that came too late for the engine is carried out: while the plan has
        actions left, its claim ends only once all requests have been read. With a damaged request,
        it becomes PAUSED.
        """
        before = max((request.number for request in earlier), default=0)
        while state in (PlanState.PENDING, PlanState.PAUSED):
            asked, damaged = sound_part(lambda: self._store.requests(plan.uuid, before))
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

    def _run_engine(
        self,
        plan: ActionPlan,
        environment: ActionEnvironment,
        recorder: Recorder,
        earlier: Iterable[Request],
        held_by_others: Sequence[Reservation],
        found: Findings,
        make_executor: MakeExecutor | None,
    ) -> Halt | None:
        without = workerless(plan.actions, environment.plugins)
        run = PlanRun(
            plan=plan,
            recorder=recorder,
            events=self._events,
            make_task=task_maker(plan.actions, environment, self._cut_off(plan), found.continued),
            on_failure=OnFailure(plan.on_failure or self._setup.on_failure),
            ranks=self._ranks(plan, without),
            policies=environment.policies,
            workerless=without,
            held_by_others=held_by_others,
            given_up=found.given_up,
            requests=[r for r in earlier if r.verb in ("skip", "limit") and can_follow(plan, r)],
            holding=self._setup.holding_of(plan, self.pause) if self._setup.holding_of else None,
            breaker=self._breaker(plan),
            make_executor=make_executor,
        )
        return self._setup.engine.run(run)

    def _breaker(self, plan: ActionPlan) -> Breaker | None:
        """Return the breaker that pauses a plan after failures; None without a failure budget.

        Pause the plan if failures of earlier runs exceed the budget.
        """
        breaker = self._setup.budget_of(plan) if self._setup.budget_of else None
        if breaker and (exceeded := breaker.exceeded()):
            self.pause(FAILURE_BUDGET, exceeded)
        return breaker

    def planned_s(self) -> float | None:
        """Return how many seconds the run was expected to take when it began.

        None if it has not begun, or if an action had no estimate and no earlier runs.
        """
        return None if self._order is None else self._order.makespan_s

    def _ranks(self, plan: ActionPlan, without: Collection[str]) -> Mapping[str, int]:
        """Return the ranks of a forecast, so that the run follows the prediction."""
        past = PastDurations(self._recorded, estimates(self._setup.environment.policies))
        durations = past.of(plan)
        queues = self._queue_limits(plan, without)
        concurrency = Concurrency(
            limits={**plan.limits, **queues.limits},
            places=plan.places,
            max_workers=self._setup.engine.max_workers,
            workerless=without,
            queue_tokens=queues.tokens,
        )
        order = Ranking(plan.actions, durations.seconds, concurrency)
        self._order = None if NOTHING in durations.known_from else order
        return order.ranks

    def _queue_limits(self, plan: ActionPlan, without: Collection[str]) -> QueueLimits:
        """Return the limits that workers impose; none if they cannot be read."""
        try:
            runs_at = self._setup.runs_at
            return runs_at.queue_limits(plan, without) if runs_at else QueueLimits()
        except (StoreError, DamagedRecord):
            return QueueLimits()

    def _recorded(self, action_types: Sequence[str]) -> Mapping[str, list[Sample]]:
        """Return the durations of earlier runs; none if they cannot be read."""
        try:
            return self._store.durations(action_types)
        except (StoreError, DamagedRecord):
            return {}

    def _verified(
        self,
        plan: ActionPlan,
        environment: ActionEnvironment,
        recorder: Recorder,
        before: Claimant | None,
        jobs: Jobs,
    ) -> tuple[ActionPlan, Findings]:
        """Look for commands of interrupted actions, verify the others, and record their states.

        Actions with ``jobs`` at workers go on, even if the job has ended. Return the updated plan.
        """
        if not any(action.state in TO_VERIFY for action in plan.actions):
            return plan, Findings()
        found = verify_all(
            [a for a in plan.actions if a.uuid not in jobs],
            environment,
            self._setup.verify_patience_s,
            before=before,
            host=self._setup.claimant.host,
            folder=self._setup.claimant.jobs,
            left_in=left_in(self._store, plan),
        )
        for action in plan.actions:
            if action.uuid in jobs:
                found.continued[action.uuid] = max(0.0, jobs[action.uuid].age_s)
                found.reports += [report] if (report := going_on(action)) else []
        if found.reports:
            recorder.commit(Decisions(ended=found.reports))
            for machines in found.not_begun:
                machines.forget()
            plan = self._store.refresh_plan(plan)
        return plan, found

    def _cut_off(self, plan: ActionPlan) -> set[str]:
        """Return the PENDING actions whose last attempt was interrupted."""
        again = [a.uuid for a in plan.actions if a.state is ActionState.PENDING and a.attempts]
        return {uuid for uuid in again if was_cut_off(self._store.attempts(plan.uuid, uuid))}

    def _reserved(
        self, plan: ActionPlan, given_up: Collection[str], recorder: Recorder
    ) -> tuple[Reservation, ...]:
        """Reserve the resources of actions that are open or may still run.

        Return the earlier reservations of other plans.
        """
        wanted = resources_of(a for a in plan.actions if a.state in OPEN or a.uuid in given_up)
        if not wanted:
            return ()
        recorder.reserve(wanted)
        return tuple(self._store.held_by_others(plan.uuid))

    def _heartbeat(self, plan: str, claim: str) -> Periodic:
        return heartbeat(
            self._store,
            plan,
            claim,
            events=self._events,
            clock=self._setup.clock,
            interval_s=self._setup.heartbeat_interval_s,
        )

    def _request_reader(
        self,
        plan: ActionPlan,
        earlier: Sequence[Request],
        held_by_others: tuple[Reservation, ...],
    ) -> Periodic:
        reader = RequestReader(
            self._store,
            plan,
            after=max((request.number for request in earlier), default=0),
            events=self._events,
            held_by_others=held_by_others,
        )
        return reader.every(self._setup.request_interval_s)


def _states(plan: ActionPlan) -> list[ActionState]:
    return [action.state for action in plan.actions]
