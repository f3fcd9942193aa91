# SPDX-License-Identifier: Apache-2.0
"""What a failed action means for its plan: retries, what goes on, and what halts the run. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from applier.scheduling.decisions import FAILURE_BUDGET, ON_FAILURE, Breaker, Halt, HaltReason
from planner.plan.model import Action
from planner.plan.states import ActionState

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
