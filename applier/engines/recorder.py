# SPDX-License-Identifier: Apache-2.0
"""The only writer of states: checks each transition, commits, then notifies listeners."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from applier.backoff import delays_s
from applier.contracts import HistoryEntry, JobOffer, Listener, Report, undone_by
from applier.errors import DamagedRecord, PlanConflict, StoreError
from applier.scheduling.decisions import Decisions
from applier.store import RunStore
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState, Who, check

LOG = logging.getLogger(__name__)

_NO_JOBS: Mapping[str, JobOffer] = {}


class Recorder:
    """Writes the states of a claimed plan and of its actions.

    ``plan`` is the plan as loaded after it was claimed. If the store cannot be reached, writes are
    retried for ``patience_s`` seconds. As a context manager, the recorder moves the plan to a final
    state if the block raises an error, unless the store failed or the claim was lost, because then
    nothing can be written.
    """

    def __init__(
        self,
        store: RunStore,
        plan: ActionPlan,
        claim: str,
        *,
        clock: Callable[[], datetime],
        listeners: Iterable[Listener] = (),
        patience_s: float = 0.0,
    ) -> None:
        self._store, self._loaded, self._plan, self._claim = store, plan, plan.uuid, claim
        self._patience_s = patience_s
        self._clock, self._listeners = clock, tuple(listeners)
        self._plan_state = plan.state
        #: The committed state of each action by uuid.
        self.states = {a.uuid: a.state for a in plan.actions}
        self._undoes = {a.uuid: found for a in plan.actions if (found := undone_by(a))}
        #: Reports of ended actions that are not committed yet.
        self.incoming: list[Report] = []

    def __enter__(self) -> Recorder:
        self._tell_plan(None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, StoreError | PlanConflict):
            self._break_off(f"the applier broke: {type(error).__name__}: {error}")

    def commit(
        self,
        decisions: Decisions,
        wait: Callable[[float], None] = time.sleep,
        jobs: Mapping[str, JobOffer] = _NO_JOBS,
    ) -> None:
        """Commit the incoming reports together with decisions, all or nothing.

        If the decisions cancel the plan, its state CANCELLING is committed before. ``jobs``, by
        uuid of action, are offered to workers with the starts of their actions.

        Returns when the changes are durable; then the listeners are notified. Raises PlanConflict
        if the claim is lost, StoreError if the store fails, InvalidTransition if a transition is
        not allowed. The reports then stay incoming. While the store cannot be reached, ``wait`` is
        called with the seconds until the next try; reports that come in meanwhile are left for the
        next commit.
        """
        ends, self.incoming = self.incoming, []
        try:
            if decisions.cancelling is not None:
                self.move(PlanState.CANCELLING, decisions.cancelling, wait)
            delays = dict(decisions.delays)
            again = (_again(r, delays[r.uuid]) if r.uuid in delays else r for r in ends)
            ended = [self._with_undone(report) for report in (*again, *decisions.ended)]
            reports = [*ended, *(_start(uuid, jobs.get(uuid)) for uuid in decisions.starts)]
            self._write(reports, wait)
        except BaseException:  # whatever ended it, what was not recorded is still to be
            self.incoming[:0] = ends
            raise
        self._tell(reports)

    def move(
        self,
        new: PlanState,
        message: str | None,
        wait: Callable[[float], None] = time.sleep,
        *,
        read: int | None = None,
        history: HistoryEntry | None = None,
    ) -> None:
        """Change the state of the plan, and notify the listeners.

        ``read`` is the number of the last request that the caller has read: a later one makes this
        raise RequestsUnread. ``history`` is an entry that is written with the change. Raises the
        same errors as :meth:`commit`.
        """
        self._move(new, message, wait, read=read, history=history)
        self._tell_plan(message)

    def reserve(self, resources: Sequence[str]) -> None:
        """Reserve resources for the plan; earlier reservations of other plans take precedence."""

        def reserve() -> None:
            self._store.reserve(self._plan, self._claim, resources, now=self._clock())

        write_patiently(reserve, lambda: False, self._patience_s)

    def _with_undone(self, report: Report) -> Report:
        undoes = self._undoes.get(report.uuid)
        return report._replace(undoes=undoes) if undoes else report

    def _write(self, reports: Sequence[Report], wait: Callable[[float], None] = time.sleep) -> None:
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        now = self._clock()

        def commit() -> None:
            self._store.commit(self._plan, self._claim, reports, now=now)

        def is_written() -> bool:
            self._store.beat(self._plan, self._claim, now=now)  # raises if the claim is lost
            found = {a.uuid: a.state for a in self._store.refresh_plan(self._loaded).actions}
            return all(found[report.uuid] is report.state for report in reports)

        if reports:
            write_patiently(commit, is_written, self._patience_s, wait)
        for report in reports:
            self.states[report.uuid] = report.state

    def _move(
        self,
        new: PlanState,
        message: str | None,
        wait: Callable[[float], None] = time.sleep,
        **given: Any,
    ) -> None:
        check("plan", self._plan, self._plan_state, new, Who.ENGINE)
        given |= {"message": message, "now": self._clock()}

        def move() -> None:
            self._store.move_claimed(self._plan, self._claim, new, **given)

        def is_written() -> bool:
            return self._store.refresh_plan(self._loaded).state is new

        write_patiently(move, is_written, self._patience_s, wait)
        self._plan_state = new

    def _tell(self, reports: Sequence[Report]) -> None:
        for listener in self._listeners if reports else ():
            listener.on_reports(reports)

    def _tell_plan(self, message: str | None) -> None:
        for listener in self._listeners:
            listener.on_plan(self._plan_state, message)

    def _break_off(self, reason: str) -> None:
        """Record final states of the plan and of all actions that have not ended; notify listeners.

        Running actions become UNKNOWN, pending ones CANCELLED.
        """
        known = {report.uuid for report in self.incoming}
        rest = [
            Report(
                uuid=uuid,
                old=state,
                state=_LEFT_BEHIND[state],
                message=reason,
                given_up=state is ActionState.ONGOING,
            )
            for uuid, state in self.states.items()
            if state in _LEFT_BEHIND and uuid not in known
        ]
        reports = [self._with_undone(report) for report in (*self.incoming, *rest)]
        cancelling = self._plan_state is PlanState.CANCELLING
        # Written before listeners are notified, because a listener may have raised the error.
        self._write(reports)
        self.incoming.clear()
        self._move(PlanState.CANCELLED if cancelling else PlanState.FAILED, reason)
        self._tell(reports)
        self._tell_plan(reason)


_LEFT_BEHIND = {
    ActionState.ONGOING: ActionState.UNKNOWN,
    ActionState.PENDING: ActionState.CANCELLED,
}


def _again(report: Report, delay_s: float) -> Report:
    """Turn the report of a failed attempt into one that moves the action back to PENDING."""
    message = f"{report.message or 'it failed'}; retry in {delay_s:g} s"
    return report._replace(state=ActionState.PENDING, message=message)


def _start(uuid: str, job: JobOffer | None) -> Report:
    return Report(uuid=uuid, old=ActionState.PENDING, state=ActionState.ONGOING, job=job)


#: The seconds before the first retry, and the longest pause between two retries.
FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 5.0


def write_patiently(
    write: Callable[[], None],
    is_written: Callable[[], bool],
    patience_s: float,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Call ``write`` until it returns; raise StoreError with its last error when time is up.

    It is retried while the store cannot be reached. DamagedRecord is treated like StoreError,
    because a server may lack a table for a moment. ``wait`` is called between two tries with the
    seconds to wait. If only the answer of the database was lost, a try that failed was written even
    so. So if a later one raises PlanConflict or InvalidTransition, ``is_written`` is called: if it
    returns True, the write has succeeded. It may raise the errors of the store.
    """
    began = clock()
    delays: Iterator[float] | None = None
    while True:
        try:
            try:
                write()
            except (PlanConflict, InvalidTransition):
                if delays is None or not is_written():
                    raise
        except (StoreError, DamagedRecord) as error:
            left = patience_s - (clock() - began)
            if left <= 0:
                if isinstance(error, StoreError):
                    raise
                raise StoreError(str(error)) from error
            # Warn only once: a full disk stays full for many tries.
            level = logging.WARNING if delays is None else logging.INFO
            LOG.log(level, "The record cannot be reached; retrying for %.0f s: %s", left, error)
            delays = delays or delays_s(FIRST_DELAY_S, LONGEST_DELAY_S)
            wait(min(next(delays), left))
        else:
            if delays is not None:
                LOG.warning("The record can be reached again")
            return
