# SPDX-License-Identifier: Apache-2.0
"""Decides whether an action runs, and how often, by what came before it and policies. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from applier.contracts import Report
from applier.scheduling.decisions import (
    FAILURE_BUDGET,
    ON_FAILURE,
    Breaker,
    Halt,
    HaltReason,
    WaitKind,
    WaitReason,
)
from planner.plan.model import ANCHOR, JOIN, Action
from planner.plan.states import OPEN, WELL, ActionState, Outcome, StateReason

#: An action that ends in one of these states makes its node a failed one.
COUNTED = frozenset({ActionState.FAILED, ActionState.UNKNOWN})
_NODE = "node:"
#: The maximum number of failed nodes that a message names.
_SHOWN = 10


class Tolerances:
    """Counts the failed nodes of each group of a plan.

    ``groups`` are the plan's ``tolerances``: of the ``nodes`` of the group ``name``, up to
    ``failed_nodes`` may fail. A node has failed when an action that holds its token (``node:NAME``)
    is FAILED or UNKNOWN. It is counted once, however many actions fail on it.

    >>> two = Tolerances([{"name": "compute", "nodes": ["1", "2", "3"], "failed_nodes": 1}])
    >>> one, other = (Action(uuid=n, action_type="nop", tokens=(f"node:{n}",)) for n in "12")
    >>> two.note(one, ActionState.FAILED) is two.note(one, ActionState.UNKNOWN) is None
    True
    >>> two.note(other, ActionState.FAILED)
    '2 nodes of compute failed, 1 may: 1, 2'
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        self._groups = tuple(groups)
        self._of_node: defaultdict[str, list[int]] = defaultdict(list)
        for i, group in enumerate(self._groups):
            for node in group["nodes"]:
                self._of_node[node].append(i)
        self._failed: list[dict[str, None]] = [{} for _ in self._groups]

    def note(self, action: Action, state: ActionState) -> str | None:
        """Count the end of an action; return a message if too many nodes of a group have failed."""
        if state not in COUNTED:
            return None
        told = None
        for token in action.tokens:
            node = token.removeprefix(_NODE)
            for i in self._of_node.get(node, ()) if node != token else ():
                self._failed[i][node] = None
                if told is None and len(self._failed[i]) > self._groups[i]["failed_nodes"]:
                    told = _sentence(self._groups[i], list(self._failed[i]))
        return told


def _sentence(group: Mapping[str, Any], failed: Sequence[str]) -> str:
    nodes = "node" if len(failed) == 1 else "nodes"
    may = group["failed_nodes"] or "none"
    shown = ", ".join(failed[:_SHOWN])
    if len(failed) > _SHOWN:
        shown += f" and {len(failed) - _SHOWN} more"
    return f"{len(failed)} {nodes} of {group['name']} failed, {may} may: {shown}"


#: The message of an action that is SKIPPED because none of its triggers fired.
NOT_TRIGGERED = "not triggered"


@dataclass(frozen=True, kw_only=True, slots=True)
class TypePolicy:
    """The options of ``[watcher_actions.TYPE]`` that every type has.

    Values of an action in the plan (``retries`` above 0, ``timeout_s``, ``estimate_s``) take
    precedence over these.
    """

    retries: int = 0
    retry_delay_s: float = 0.0
    timeout_s: float | None = None
    estimate_s: float | None = None


#: The policy of a type without a section.
NO_POLICY = TypePolicy()


def timeout_s(action: Action, policies: Mapping[str, TypePolicy]) -> float | None:
    """Return the time-out of an action in seconds; None if it has none."""
    if action.timeout_s is not None:
        return action.timeout_s
    return policies.get(action.action_type, NO_POLICY).timeout_s


class Retries:
    """Counts the retries of each action in one run.

    >>> retries = Retries({"nop": TypePolicy(retries=1, retry_delay_s=5)})
    >>> action = Action(uuid="a", action_type="nop")
    >>> retries.next_delay_s(action), retries.next_delay_s(action)
    (5, None)
    """

    def __init__(self, policies: Mapping[str, TypePolicy]) -> None:
        self._policies = policies
        self._used: Counter[str] = Counter()

    def next_delay_s(self, action: Action) -> float | None:
        """Count a retry; return the seconds until it starts, or None if no retry is left."""
        policy = self._policies.get(action.action_type, NO_POLICY)
        if self._used[action.uuid] >= (action.retries or policy.retries):
            return None
        self._used[action.uuid] += 1
        return policy.retry_delay_s


class OnFailure(StrEnum):
    """The effect of a failed action on the rest of its plan."""

    #: Actions that need it do not run; all others do.
    SKIP_DESCENDANTS = "skip_descendants"
    #: No more actions start; the plan is PAUSED when the running ones have ended.
    PAUSE = "pause"
    #: All actions run: needs, triggers of failed actions and blockers are ignored.
    CONTINUE = "continue"
    #: An action runs only if the first of those before it failed; else it is SKIPPED. This is the
    #: rule ANY of Watcher's ``action_execution_rule``.
    ONLY_AFTER_FAILURE = "only_after_failure"

    @classmethod
    def by_rule(cls, rule: str) -> OnFailure:
        """Return what a rule of Watcher means, which takes all but ANY for ALWAYS."""
        return cls.ONLY_AFTER_FAILURE if rule == "ANY" else cls.CONTINUE

    @property
    def ignores_failures(self) -> bool:
        """Whether actions run although what they need failed."""
        return self in (OnFailure.CONTINUE, OnFailure.ONLY_AFTER_FAILURE)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRules:
    """The effects of a failed action: on itself, on its descendants, and on its plan.

    ``policies``, by action type, contain the number of retries. Once a group of ``tolerances`` has
    more failed nodes than it allows, no action starts, and all that have not started are cancelled.
    ``breaker`` may pause the plan after a failure.
    """

    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS
    policies: Mapping[str, TypePolicy] = field(default_factory=dict)
    tolerances: Sequence[Mapping[str, Any]] = ()
    breaker: Breaker | None = None


#: Actions that need a failed action do not run, and nothing is retried.
NO_FAILURE_RULES = FailureRules()


class FailureHalts:
    """Returns the halts that the failures of a run cause, by its rules."""

    def __init__(self, rules: FailureRules) -> None:
        self._tolerances = Tolerances(rules.tolerances) if rules.tolerances else None
        self._pauses, self._breaker = rules.on_failure is OnFailure.PAUSE, rules.breaker

    def earlier(self, action: Action, state: ActionState) -> Halt | None:
        """Count the end of an action in an earlier run; return a halt if too many nodes failed."""
        told = self._tolerances and self._tolerances.note(action, state)
        return Halt(HaltReason.EXCEEDED, f"no more actions start: {told}") if told else None

    def note(self, action: Action, state: ActionState) -> Iterator[Halt]:
        """Count the end of an action in this run; yield a halt for each rule that demands one."""
        if self._pauses and state in COUNTED:
            yield Halt.pause(ON_FAILURE, f"{action.label} ended {state}")
        exceeded = self.earlier(action, state)
        if exceeded:
            yield exceeded
        broken = self._breaker and self._breaker.note(action, state)
        if broken:
            yield Halt.pause(FAILURE_BUDGET, broken)


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
        strength = halt.stopped.strength
        before = -1 if self.halt is None else self.halt.stopped.strength
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
