# SPDX-License-Identifier: Apache-2.0
"""Decides whether an action runs, by what is known of the actions before it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from applier.contracts import Report
from applier.scheduling.decisions import Halt, HaltReason, WaitKind, WaitReason
from applier.scheduling.failures import OnFailure
from planner.plan.model import ANCHOR, JOIN, Action
from planner.plan.states import OPEN, WELL, ActionState, Outcome, StateReason

#: A halt replaces an earlier one of less strength.
_STRENGTH = {
    None: -1,
    HaltReason.HANDED_BACK: 0,
    HaltReason.PAUSED: 1,
    HaltReason.EXCEEDED: 1,
    HaltReason.CANCELLED: 2,
}
#: The message of an action that is SKIPPED because none of its triggers fired.
NOT_TRIGGERED = "not triggered"


class Halting:
    """The halt of a run, and the open actions that start in spite of it: nodes then finish."""

    def __init__(self) -> None:
        self.halt: Halt | None = None
        self.to_finish: set[str] = set()

    @property
    def stopped(self) -> HaltReason | None:
        """The kind of the halt, or None."""
        return self.halt.stopped if self.halt else None

    def may_start(self, uuid: str) -> bool:
        """Return whether an action may start."""
        return self.halt is None or uuid in self.to_finish

    def set(self, halt: Halt, *, at_once: bool) -> bool:
        """Set a halt, which replaces an earlier one of less strength; return whether it is new.

        With ``at_once``, nothing starts in spite of it, nor of an earlier one as strong; an applier
        that ends lets nothing finish, whatever halted it before.
        """
        strength, before = _STRENGTH[halt.stopped], _STRENGTH[self.stopped]
        if strength > before:
            self.halt = halt
        if at_once and (strength >= before or halt.stopped is HaltReason.HANDED_BACK):
            self.to_finish.clear()
        return strength > before


class ActionEnd(NamedTuple):
    """How an action ended."""

    state: ActionState
    outcome: Outcome | None = None


def ends(actions: Iterable[Action]) -> dict[str, ActionEnd]:
    """Return the end of each action that has ended, by uuid."""
    return {a.uuid: ActionEnd(a.state, a.outcome) for a in actions if a.state not in OPEN}


class Verdicts:
    """Decides whether actions run, from the ends of others.

    ``actions`` are those of the plan, by uuid. ``ended`` are those that ended in an earlier run,
    and ``given_up`` those of them that may still run.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        ended: Mapping[str, ActionEnd],
        on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS,
        given_up: Collection[str] = (),
    ) -> None:
        self._actions, self._ends, self._on_failure = actions, dict(ended), on_failure
        self._bad = {u for u, end in ended.items() if end.state not in WELL}
        #: Maps each action that did not run because of a failure to the action that failed first.
        self._causes: dict[str, str] = {}
        #: Maps each action that may still run, and each that ended after it in the order of the
        #: plan, to the former.
        self._keepers: dict[str, str] = {}
        if given_up:
            import networkx as nx

            from planner.plan.graph import order_graph

            for node in nx.topological_sort(order_graph([*actions.values()])):
                if node in self._ends:
                    self._note_keeper(node, given_up=node in given_up)

    def __contains__(self, uuid: object) -> bool:
        """Return whether this action has ended."""
        return uuid in self._ends

    def well(self, uuid: str) -> bool:
        """Return whether an action that has ended did so without a failure."""
        return uuid not in self._bad

    @property
    def all_well(self) -> bool:
        """Whether all actions that have ended did so without a failure."""
        return not self._bad

    def note(self, report: Report) -> None:
        """Record the end of an action."""
        self._ends[report.uuid] = ActionEnd(report.state, report.outcome)
        if report.state not in WELL:
            self._bad.add(report.uuid)
        if report.given_up or self._keepers:
            self._note_keeper(report.uuid, given_up=report.given_up)

    def _note_keeper(self, uuid: str, *, given_up: bool) -> None:
        keeper = uuid if given_up else self._keeper(self._actions[uuid])
        if keeper is not None:
            self._keepers[uuid] = keeper

    def _keeper(self, action: Action) -> str | None:
        """Return an action that may still run, after which an action comes; None without one.

        An anchor comes after many nodes, of which one may be lost: it holds up none of the others.
        """
        if action.action_type == ANCHOR:
            return None
        return next((self._keepers[u] for u in action.before() if u in self._keepers), None)

    def without_running(self, action: Action) -> Report | None:
        """Return the report of an action that ends without running; None if it may run.

        The action must be ready: all in ``before()`` have ended, and of each group in ``needs_any``
        one has succeeded or all have ended. With CONTINUE, failures are ignored. An action that
        comes after one that may still run is CANCELLED.
        """
        if self._on_failure is OnFailure.ONLY_AFTER_FAILURE and action.action_type != JOIN:
            first = self._first_before(action)
            if first is not None and first.uuid not in self._bad:
                message = f"{first.label}, which comes before it, did not fail"
                return ending(
                    action, ActionState.SKIPPED, message, reason=StateReason.NOT_TRIGGERED
                )
        if self._bad and not self._on_failure.ignores_failures:
            for uuid in action.needs:
                if uuid in self._bad:
                    return self._blocked(action, uuid, "needs")
            for group in action.needs_any:
                if group and not any(u in self._ends and u not in self._bad for u in group):
                    return self._blocked(action, group[0], f"needs one of {len(group)}, first")
            for uuid, outcomes in action.blocked_by:
                if self._ends[uuid].outcome in outcomes:
                    return self._blocked(action, uuid, "is blocked by")
        if action.triggers and not self._fired(action):
            sources = (t.action for t in action.triggers)
            bad = next((u for u in sources if u in self._bad), None)
            if bad is not None and not self._on_failure.ignores_failures:
                return self._blocked(action, bad, "is triggered by")
            return ending(
                action, ActionState.SKIPPED, NOT_TRIGGERED, reason=StateReason.NOT_TRIGGERED
            )
        keeper = self._keeper(action) if self._keepers else None
        if keeper is not None and action.action_type != JOIN:
            message = f"its turn {held_by(self._actions[keeper])}"
            return ending(action, ActionState.CANCELLED, message)
        return None

    def awaited(self, action: Action) -> WaitReason | None:
        """Return the actions that must end, or succeed, before an action; None if it is ready."""
        left = tuple(u for u in action.before() if u not in self._ends)
        if left:
            return WaitReason(WaitKind.ALL, left)
        for group in action.needs_any:
            if not any(u in self._ends and self.well(u) for u in group):
                return WaitReason(WaitKind.ANY, tuple(u for u in group if u not in self._ends))
        return None

    def _first_before(self, action: Action) -> Action | None:
        """Return the first action before this one that is no join; None without one."""
        while before := action.before():
            action = self._actions[before[0]]
            if action.action_type != JOIN:
                return action
        return None

    def _fired(self, action: Action) -> bool:
        return any(self._ends[t.action].outcome in t.outcomes for t in action.triggers)

    def _blocked(self, action: Action, bad: str, why: str) -> Report:
        cause = self._causes[action.uuid] = self._causes.get(bad, bad)
        message = f"{why} {self._actions[bad].label}"
        if cause != bad:
            message += f", which did not run because of {self._actions[cause].label}"
        message += f", which ended {self._ends[cause].state}"
        return ending(action, ActionState.FAILED_DEPENDENCIES, message)


def held_by(keeper: Action) -> str:
    """Return a clause about what an action holds that was given up."""
    return f"is held by {keeper.label}, which hangs or may still run"


def ending(
    action: Action,
    state: ActionState,
    message: str | None = None,
    *,
    reason: StateReason | None = None,
) -> Report:
    """Return the report of an action that ends without having started."""
    return Report(
        uuid=action.uuid,
        old=ActionState.PENDING,
        state=state,
        state_reason=reason,
        message=message,
    )
