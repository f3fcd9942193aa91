# SPDX-License-Identifier: Apache-2.0
"""The store of one process: for tests and for runs that leave no record."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from types import EllipsisType
from uuid import uuid4

from applier.contracts import Claimant, Report, Request
from applier.errors import ActionNotFound, PlanNotFound
from applier.storage import rules
from applier.store import Attempt, PlanSummary, Reservation, Service
from planner.model import JOIN, Action, ActionPlan
from planner.states import ActionState, PlanState, StateReason, Who, check


@dataclass
class _Kept:
    """A plan: its head (without actions), its actions in order, and what is not part of it."""

    head: ActionPlan
    actions: dict[str, Action]
    claim: str | None = None
    claimant: Claimant | None = None
    claimed_at: datetime | None = None
    wishes: list[Request] = field(default_factory=list)
    #: By action, those that ended.
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    #: When it became PENDING, and when it reserved: numbers that grow.
    queued: int = 0
    reserved: int = 0
    resources: frozenset[str] = frozenset()


class MemoryStore:
    """Keeps plans as long as the process lives; may be used from several threads."""

    def __init__(self, *, new_id: Callable[[], str] = lambda: str(uuid4())) -> None:
        self._new_id = new_id
        self._lock = threading.Lock()
        #: In the order in which they were saved.
        self._plans: dict[str, _Kept] = {}
        self._services: dict[str, Service] = {}
        #: By action type, from when to when its attempts took, in the order in which they ended.
        self._took: dict[str, list[tuple[datetime, datetime]]] = {}
        self._turns = count(1)

    def save_plan(self, plan: ActionPlan) -> None:
        """See :meth:`applier.store.Store.save_plan`."""
        rules.require_distinct(plan)
        with self._lock:
            if plan.uuid in self._plans:
                raise rules.already_saved(plan.uuid, self._plans[plan.uuid].head.state)
            actions = {action.uuid: action for action in plan.actions}
            self._plans[plan.uuid] = _Kept(replace(plan, actions=()), actions)

    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.store.Store.load_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            return replace(kept.head, actions=tuple(kept.actions.values()))

    def find_plan(self, reference: str) -> str:
        """See :meth:`applier.store.Store.find_plan`."""
        with self._lock:
            heads = [kept.head for kept in self._plans.values()]
        there = [h for h in heads if h.state is not PlanState.DELETED or h.uuid == reference]
        if reference != rules.LAST:
            return rules.choose(reference, [(head.uuid, head.name) for head in there])
        if not there:
            raise PlanNotFound(reference)
        return there[-1].uuid

    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        """See :meth:`applier.store.RunStore.refresh_plan`."""
        return self.load_plan(plan.uuid)

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """See :meth:`applier.store.Store.list_plans`."""
        with self._lock:
            wanted = [
                kept
                for kept in reversed(self._plans.values())
                if (kept.head.state is state if state else kept.head.state != PlanState.DELETED)
            ]
            return [_summary(kept) for kept in wanted[:limit]]

    def count_plans(self, *, state: PlanState | None = None) -> int:
        """See :meth:`applier.store.Store.count_plans`."""
        return len(self.list_plans(state=state))

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.move_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            check("plan", uuid, kept.head.state, new, Who.OPERATOR)
            found = kept.claimant if kept.claim else None
            rules.require_free(uuid, kept.head.state, found, seen)
            self._move(kept, new, now, message)
            left = rules.LEFT_OPEN.get(new, {})
            kept.actions |= {
                a.uuid: replace(
                    a, state=left[a.state], status_message=rules.kept(message), ended_at=now
                )
                for a in kept.actions.values()
                if a.state in left
            }

    def resume_plan(
        self,
        uuid: str,
        actions: Sequence[str],
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | EllipsisType | None = ...,
    ) -> None:
        """See :meth:`applier.store.Store.resume_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            rules.require_resumable(uuid, kept.head.state, actions)
            rules.require_seen(uuid, kept.head.state, kept.claimant if kept.claim else None, seen)
            for action in actions:
                state = _action(kept, action).state
                check("action", action, state, ActionState.PENDING, Who.OPERATOR)
            waiting = Report(uuid="", old=ActionState.FAILED, state=ActionState.PENDING)
            kept.actions |= {a: _reported(kept.actions[a], waiting, now) for a in actions}
            self._move(kept, PlanState.PENDING, now, message)

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """See :meth:`applier.store.Store.skip_action`."""
        self._change(plan, action, ActionState.SKIPPED, rules.WAITING_PLAN, now, message)

    def settle_action(
        self, plan: str, action: str, new: ActionState, *, now: datetime, message: str
    ) -> None:
        """See :meth:`applier.store.Store.settle_action`."""
        rules.require_settling(action, new)
        self._change(plan, action, new, rules.UNCLAIMED_PLAN, now, message)

    def _change(
        self,
        plan: str,
        action: str,
        new: ActionState,
        states: Collection[PlanState],
        now: datetime,
        message: str,
    ) -> None:
        with self._lock:
            kept = self._kept(plan)
            if kept.head.state not in states:
                raise rules.not_waiting(plan, kept.head.state, states)
            found = _action(kept, action)
            check("action", action, found.state, new, Who.OPERATOR)
            report = Report(
                uuid=action,
                old=found.state,
                state=new,
                outcome=rules.SETTLED.get(new),
                state_reason=StateReason.OPERATOR,
                message=message,
            )
            kept.actions[action] = _reported(found, report, now)
            kept.head = replace(kept.head, updated_at=now)

    def pending_plans(self) -> list[str]:
        """See :meth:`applier.store.Store.pending_plans`."""
        with self._lock:
            kept = [k for k in self._plans.values() if k.head.state is PlanState.PENDING]
        return [k.head.uuid for k in sorted(kept, key=lambda k: k.queued)]

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """See :meth:`applier.store.Store.claim_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            if kept.head.state is not PlanState.PENDING:
                raise rules.cannot_claim(uuid, kept.head.state)
            kept.claim = self._new_id()
            kept.claimant, kept.claimed_at = replace(claimant, heartbeat_at=now), now
            kept.head = replace(kept.head, state=PlanState.ONGOING, updated_at=now)
            return kept.claim

    def claimant(self, uuid: str) -> Claimant | None:
        """See :meth:`applier.store.Store.claimant`."""
        with self._lock:
            kept = self._kept(uuid)
            return kept.claimant if kept.claim else None

    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        """See :meth:`applier.store.Store.beat`."""
        with self._lock:
            kept = self._claimed(uuid, claim)
            if kept.claimant is not None:
                kept.claimant = replace(kept.claimant, heartbeat_at=now)

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """See :meth:`applier.store.Store.commit`."""
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        with self._lock:
            kept = self._claimed(uuid, claim)
            new: dict[str, Action] = {}
            ended: list[tuple[Action, Attempt]] = []
            for report in reports:
                found = new.get(report.uuid) or _action(kept, report.uuid)
                if found.state is not report.old:
                    raise rules.row_changed(
                        uuid, kept.head.state, report.uuid, report.old, found.state
                    )
                new[report.uuid] = _reported(found, report, now)
                if report.old is ActionState.ONGOING:
                    ended.append((found, _attempt(found, report, now)))
            kept.actions |= new
            for action, attempt in ended:
                self._keep_attempt(kept, action, attempt)
            for report in reports:
                self._undo(uuid, report)
            kept.head = replace(kept.head, updated_at=now)

    def _undo(self, rollback: str, report: Report) -> None:
        undone = rules.undone(rollback, report)
        if undone is None or report.undoes is None:
            return
        kept = self._plans.get(report.undoes.plan)
        action = kept.actions.get(undone.uuid) if kept else None
        if kept and action and action.state in rules.UNDOABLE:
            message = rules.kept(undone.message)
            kept.actions[undone.uuid] = replace(action, state=undone.state, status_message=message)

    def _keep_attempt(self, kept: _Kept, action: Action, attempt: Attempt) -> None:
        kept.attempts.setdefault(action.uuid, []).append(attempt)
        in_one_run = kept.claimed_at is not None and attempt.started_at >= kept.claimed_at
        if in_one_run and rules.measures(attempt) and attempt.ended_at is not None:
            times = (attempt.started_at, attempt.ended_at)
            self._took.setdefault(action.action_type, []).append(times)

    def move_claimed(
        self, uuid: str, claim: str, new: PlanState, *, now: datetime, message: str | None = None
    ) -> None:
        """See :meth:`applier.store.Store.move_claimed`."""
        with self._lock:
            kept = self._claimed(uuid, claim)
            check("plan", uuid, kept.head.state, new, Who.ENGINE)
            self._move(kept, new, now, message)

    def _move(self, kept: _Kept, new: PlanState, now: datetime, message: str | None) -> None:
        message = rules.kept(message)
        kept.head = replace(kept.head, state=new, updated_at=now, status_message=message)
        if rules.gives_up(new):
            kept.claim, kept.resources = None, frozenset()
        if new is PlanState.PENDING:
            kept.queued = next(self._turns)

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        """See :meth:`applier.store.Store.reserve`."""
        with self._lock:
            kept = self._claimed(uuid, claim)
            kept.resources, kept.reserved = frozenset(resources), next(self._turns)
            kept.head = replace(kept.head, updated_at=now)

    def held_by_others(self, uuid: str) -> list[Reservation]:
        """See :meth:`applier.store.Store.held_by_others`."""
        with self._lock:
            mine = self._kept(uuid)
            earlier = [k for k in self._plans.values() if k.reserved < mine.reserved]
            return rules.firsts(
                Reservation(resource=resource, plan=k.head.uuid, name=k.head.name, user=user)
                for k in sorted(earlier, key=lambda k: k.reserved)
                for user in [k.claimant.user if k.claimant else ""]
                for resource in k.resources & mine.resources
            )

    def add_request(self, plan: str, wish: Request, *, now: datetime) -> None:
        """See :meth:`applier.store.Store.add_request`."""
        with self._lock:
            kept = self._kept(plan)
            if kept.claim is None:
                raise rules.not_claimed(plan, kept.head.state)
            kept.wishes.append(replace(wish, number=len(kept.wishes) + 1, created_at=now))

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """See :meth:`applier.store.Store.requests`."""
        with self._lock:
            kept = self._plans.get(plan)
            return kept.wishes[after:] if kept else []

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """See :meth:`applier.store.Store.attempts`."""
        with self._lock:
            kept = self._kept(plan)
            found = _action(kept, action)
            ended = list(kept.attempts.get(action, ()))
        if found.state is ActionState.ONGOING and found.started_at is not None:
            ended.append(Attempt(number=found.attempts, started_at=found.started_at))
        return ended

    def output(self, plan: str, action: str) -> str | None:
        """See :meth:`applier.store.Store.output`."""
        tried = self.attempts(plan, action)
        return tried[-1].output if tried else None

    def durations(self, action_types: Sequence[str], *, most: int = 200) -> dict[str, list[float]]:
        """See :meth:`applier.store.Store.durations`."""
        with self._lock:
            took = {name: self._took.get(name, [])[::-1][:most] for name in action_types}
        return {name: rules.seconds(times) for name, times in took.items()}

    def report_service(self, service: Service) -> None:
        """See :meth:`applier.store.Store.report_service`."""
        with self._lock:
            self._services[service.uuid] = service

    def remove_service(self, uuid: str) -> None:
        """See :meth:`applier.store.Store.remove_service`."""
        with self._lock:
            self._services.pop(uuid, None)

    def services(self) -> list[Service]:
        """See :meth:`applier.store.Store.services`."""
        with self._lock:
            by_uuid = sorted(self._services.values(), key=lambda service: service.uuid)
        return sorted(by_uuid, key=lambda service: service.heartbeat_at, reverse=True)

    def _kept(self, uuid: str) -> _Kept:
        kept = self._plans.get(uuid)
        if kept is None:
            raise PlanNotFound(uuid)
        return kept

    def _claimed(self, uuid: str, claim: str) -> _Kept:
        kept = self._kept(uuid)
        if kept.claim != claim:
            raise rules.lost_claim(uuid, kept.head.state)
        return kept


def _action(kept: _Kept, uuid: str) -> Action:
    action = kept.actions.get(uuid)
    if action is None:
        raise ActionNotFound(kept.head.uuid, uuid)
    return action


def _reported(action: Action, report: Report, now: datetime) -> Action:
    starts, waits = report.state is ActionState.ONGOING, report.state is ActionState.PENDING
    return replace(
        action,
        state=report.state,
        outcome=None if waits else report.outcome,
        state_reason=None if waits else report.state_reason,
        status_message=rules.kept(report.message),
        started_at=now if starts else None if waits else action.started_at,
        ended_at=None if starts or waits else now,
        attempts=action.attempts + starts,
    )


def _attempt(action: Action, report: Report, now: datetime) -> Attempt:
    state, outcome = rules.attempt_end(report)
    return Attempt(
        number=action.attempts,
        started_at=action.started_at or now,
        ended_at=now,
        state=state,
        outcome=outcome,
        message=rules.kept(report.message),
        output=rules.kept(report.output),
    )


def _summary(kept: _Kept) -> PlanSummary:
    head = kept.head
    return PlanSummary(
        uuid=head.uuid,
        name=head.name,
        planner=head.planner,
        state=head.state,
        created_at=head.created_at,
        updated_at=head.updated_at,
        actions=Counter(a.state for a in kept.actions.values() if a.action_type != JOIN),
    )
