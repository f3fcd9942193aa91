"""THE writer of states: one commit for each turn, every change checked, listeners told after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType

from applier.contracts import Listener, Report, Store
from applier.errors import PlanConflict, StoreError
from applier.scheduling.scheduler import Turn
from planner.model import ActionPlan
from planner.states import ActionState, PlanState, Who, check


class Recorder:
    """Writes the states of a plan that was claimed, and those of its actions.

    ``plan`` is as the store gave it after the claim. As a context manager it does not let a plan
    stay ONGOING behind an exception, except when the store failed or gave the plan to another: then
    there is nothing more that could be written.
    """

    def __init__(
        self,
        store: Store,
        plan: ActionPlan,
        claim: str,
        *,
        clock: Callable[[], datetime],
        listeners: Iterable[Listener] = (),
    ) -> None:
        self._store, self._plan, self._claim = store, plan.uuid, claim
        self._clock, self._listeners = clock, tuple(listeners)
        self._plan_state = plan.state
        #: The state of each action, as it was committed.
        self.states = {a.uuid: a.state for a in plan.actions}
        #: Ends that came in and are not on record yet.
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

    def commit(self, turn: Turn) -> None:
        """Write what came in and what a turn ends and starts; a crash leaves all of it or none.

        Returns when it is durable. Raises PlanConflict when the claim is lost, StoreError when the
        store fails, InvalidTransition when a change is not allowed; nothing is written then.
        """
        if turn.cancelling is not None:
            self.move(PlanState.CANCELLING, turn.cancelling)
        reports = [*self.incoming, *turn.ended, *map(_start, turn.starts)]
        self._write(reports)
        self._tell(reports)

    def move(self, new: PlanState, message: str | None) -> None:
        """Change the state of the plan."""
        self._move(new, message)
        self._tell_plan(message)

    def _write(self, reports: Sequence[Report]) -> None:
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        if reports:
            self._store.commit(self._plan, self._claim, reports, now=self._clock())
        for report in reports:
            self.states[report.uuid] = report.state
        self.incoming.clear()

    def _move(self, new: PlanState, message: str | None) -> None:
        check("plan", self._plan, self._plan_state, new, Who.ENGINE)
        now = self._clock()
        self._store.move_claimed(self._plan, self._claim, new, now=now, message=message)
        self._plan_state = new

    def _tell(self, reports: Sequence[Report]) -> None:
        for listener in self._listeners if reports else ():
            listener.on_reports(reports)

    def _tell_plan(self, message: str | None) -> None:
        for listener in self._listeners:
            listener.on_plan(self._plan_state, message)

    def _break_off(self, reason: str) -> None:
        """Give every action and the plan a final state, as far as it is known."""
        known = {report.uuid for report in self.incoming}
        rest = [
            Report(uuid=uuid, old=state, state=_LEFT_BEHIND[state], message=reason)
            for uuid, state in self.states.items()
            if state in _LEFT_BEHIND and uuid not in known
        ]
        reports = [*self.incoming, *rest]
        cancelling = self._plan_state is PlanState.CANCELLING
        # All is written before anybody hears of it: a listener may be what broke.
        self._write(reports)
        self._move(PlanState.CANCELLED if cancelling else PlanState.FAILED, reason)
        self._tell(reports)
        self._tell_plan(reason)


_LEFT_BEHIND = {
    ActionState.ONGOING: ActionState.UNKNOWN,
    ActionState.PENDING: ActionState.CANCELLED,
}


def _start(uuid: str) -> Report:
    return Report(uuid=uuid, old=ActionState.PENDING, state=ActionState.ONGOING)
