"""The store of one process: for tests and for runs that leave no record."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import uuid4

from applier.contracts import Claimant, PlanSummary, Report, Wish
from applier.errors import ActionNotFound, PlanNotFound
from applier.storage import rules
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState, Who, check


@dataclass
class _Kept:
    """A plan: its head (without actions), its actions in order, and what is not part of it."""

    head: ActionPlan
    actions: dict[str, Action]
    claim: str | None = None
    claimant: Claimant | None = None
    wishes: list[Wish] = field(default_factory=list)
    output: dict[str, str | None] = field(default_factory=dict)


class MemoryStore:
    """Keeps plans as long as the process lives; may be used from several threads."""

    def __init__(self, *, new_id: Callable[[], str] = lambda: str(uuid4())) -> None:
        self._new_id = new_id
        self._lock = threading.Lock()
        #: In the order in which they were saved.
        self._plans: dict[str, _Kept] = {}

    def save_plan(self, plan: ActionPlan) -> None:
        """See :meth:`applier.contracts.Store.save_plan`."""
        rules.require_distinct(plan)
        with self._lock:
            if plan.uuid in self._plans:
                raise rules.already_saved(plan.uuid, self._plans[plan.uuid].head.state)
            actions = {action.uuid: action for action in plan.actions}
            self._plans[plan.uuid] = _Kept(replace(plan, actions=()), actions)

    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.contracts.Store.load_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            return replace(kept.head, actions=tuple(kept.actions.values()))

    def find_plan(self, reference: str) -> str:
        """See :meth:`applier.contracts.Store.find_plan`."""
        with self._lock:
            heads = [kept.head for kept in self._plans.values()]
        there = [h for h in heads if h.state is not PlanState.DELETED or h.uuid == reference]
        if reference != rules.LAST:
            return rules.choose(reference, [(head.uuid, head.name) for head in there])
        if not there:
            raise PlanNotFound(reference)
        return there[-1].uuid

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """See :meth:`applier.contracts.Store.list_plans`."""
        with self._lock:
            wanted = [
                kept
                for kept in reversed(self._plans.values())
                if (kept.head.state is state if state else kept.head.state != PlanState.DELETED)
            ]
            return [_summary(kept) for kept in wanted[:limit]]

    def move_plan(
        self, uuid: str, new: PlanState, *, now: datetime, message: str | None = None
    ) -> None:
        """See :meth:`applier.contracts.Store.move_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            check("plan", uuid, kept.head.state, new, Who.OPERATOR)
            _move(kept, new, now, message)
            if new is PlanState.CANCELLED:
                cancelled = {
                    a.uuid: replace(
                        a,
                        state=ActionState.CANCELLED,
                        status_message=rules.kept(message),
                        ended_at=now,
                    )
                    for a in kept.actions.values()
                    if a.state is ActionState.PENDING
                }
                kept.actions |= cancelled

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """See :meth:`applier.contracts.Store.skip_action`."""
        with self._lock:
            kept = self._kept(plan)
            if kept.head.state not in rules.WAITING_PLAN:
                raise rules.not_waiting(plan, kept.head.state)
            found = _action(kept, action)
            check("action", action, found.state, ActionState.SKIPPED, Who.OPERATOR)
            report = Report(
                uuid=action, old=found.state, state=ActionState.SKIPPED, message=message
            )
            kept.actions[action] = _reported(found, report, now)
            kept.head = replace(kept.head, updated_at=now)

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """See :meth:`applier.contracts.Store.claim_plan`."""
        with self._lock:
            kept = self._kept(uuid)
            if kept.head.state is not PlanState.PENDING:
                raise rules.cannot_claim(uuid, kept.head.state)
            kept.claim, kept.claimant = self._new_id(), claimant
            kept.head = replace(kept.head, state=PlanState.ONGOING, updated_at=now)
            return kept.claim

    def claimant(self, uuid: str) -> Claimant | None:
        """See :meth:`applier.contracts.Store.claimant`."""
        with self._lock:
            kept = self._kept(uuid)
            return kept.claimant if kept.claim else None

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """See :meth:`applier.contracts.Store.commit`."""
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        with self._lock:
            kept = self._claimed(uuid, claim)
            new: dict[str, Action] = {}
            for report in reports:
                found = new.get(report.uuid) or _action(kept, report.uuid)
                if found.state is not report.old:
                    raise rules.row_changed(
                        uuid, kept.head.state, report.uuid, report.old, found.state
                    )
                new[report.uuid] = _reported(found, report, now)
            kept.actions |= new
            kept.output |= {report.uuid: rules.kept(report.output) for report in reports}
            kept.head = replace(kept.head, updated_at=now)

    def move_claimed(
        self, uuid: str, claim: str, new: PlanState, *, now: datetime, message: str | None = None
    ) -> None:
        """See :meth:`applier.contracts.Store.move_claimed`."""
        with self._lock:
            kept = self._claimed(uuid, claim)
            check("plan", uuid, kept.head.state, new, Who.ENGINE)
            _move(kept, new, now, message)

    def add_wish(self, plan: str, wish: Wish, *, now: datetime) -> None:
        """See :meth:`applier.contracts.Store.add_wish`."""
        with self._lock:
            kept = self._kept(plan)
            if kept.claim is None:
                raise rules.not_claimed(plan, kept.head.state)
            kept.wishes.append(replace(wish, number=len(kept.wishes) + 1, created_at=now))

    def wishes(self, plan: str, after: int = 0) -> list[Wish]:
        """See :meth:`applier.contracts.Store.wishes`."""
        with self._lock:
            kept = self._plans.get(plan)
            return kept.wishes[after:] if kept else []

    def output(self, plan: str, action: str) -> str | None:
        """See :meth:`applier.contracts.Store.output`."""
        with self._lock:
            kept = self._kept(plan)
            return kept.output.get(_action(kept, action).uuid)

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


def _move(kept: _Kept, new: PlanState, now: datetime, message: str | None) -> None:
    kept.head = replace(kept.head, state=new, updated_at=now, status_message=rules.kept(message))
    if rules.gives_up(new):
        kept.claim = None


def _reported(action: Action, report: Report, now: datetime) -> Action:
    starts = report.state is ActionState.ONGOING
    return replace(
        action,
        state=report.state,
        outcome=report.outcome,
        status_message=rules.kept(report.message),
        started_at=now if starts else action.started_at,
        ended_at=None if starts else now,
        attempts=action.attempts + starts,
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
        actions=Counter(action.state for action in kept.actions.values()),
    )
