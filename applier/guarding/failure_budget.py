# SPDX-License-Identifier: Apache-2.0
"""Counts the failures of a run, and says when a budget is exceeded. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from applier.wording import count, one_line
from planner.failure_budget import Budget, budget
from planner.model import JOIN, Action
from planner.states import ActionState

#: The states of actions that count.
_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})


class FailureBudget:
    """The failures of one run, against budgets; ``clock`` returns seconds."""

    def __init__(
        self, texts: Iterable[str], actions: Iterable[Action], clock: Callable[[], float]
    ) -> None:
        types = Counter(a.action_type for a in actions if a.action_type != JOIN)
        self._budgets = [
            (one, one.allowed(types[one.action_type] if one.action_type else types.total()))
            for one in map(budget, texts)
        ]
        self._clock = clock
        #: Of each budget the times of the failures that count, oldest first.
        self._failed: list[deque[float]] = [deque() for _ in self._budgets]

    def note(self, action: Action, state: ActionState) -> str | None:
        """Note the end of an action; return which budget is exceeded by it, in a sentence."""
        if state not in _FAILURES:
            return None
        now, exceeded = self._clock(), None
        for (one, allowed), failed in zip(self._budgets, self._failed, strict=True):
            if one.action_type not in (None, action.action_type):
                continue
            failed.append(now)
            while one.within_s is not None and failed[0] < now - one.within_s:
                failed.popleft()
            if len(failed) > allowed:
                exceeded = exceeded or _sentence(one, len(failed), action)
        return exceeded


def _sentence(exceeded: Budget, failed: int, action: Action) -> str:
    what = f"{exceeded.action_type} " if exceeded.action_type else ""
    return (
        f"{count(failed, f'{what}action')} failed, the last one {one_line(action.label)}, and the "
        f"failure budget is {exceeded.text}"
    )
