# SPDX-License-Identifier: Apache-2.0
"""Counts the failures of a plan, and finds the budget that they exceed. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from applier.contracts import HistoryEntry
from applier.wording import count, one_line
from planner.guards.failure_budget import Budget, budget
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState

#: The states of actions that count.
_FAILURES = frozenset({ActionState.FAILED, ActionState.UNKNOWN})


class Failure(NamedTuple):
    """A failed action, and how many seconds ago it failed."""

    action: Action
    age_s: float


def earlier(
    actions: Iterable[Action], history: Iterable[HistoryEntry], now: datetime
) -> Iterator[Failure]:
    """Yield the actions that failed since the plan was last started, oldest first.

    An operator who starts a plan has seen its earlier failures, so they do not count. A resume in
    the history is ignored: that of an operator has made failed actions PENDING, and that of a
    service that takes the plan over looks the same.
    """
    since = max((entry.at for entry in history if entry.verb == "start"), default=None)
    failed = [(a.ended_at, a) for a in actions if a.state in _FAILURES and a.ended_at is not None]
    for at, action in sorted(failed, key=lambda pair: pair[0]):
        if since is None or at > since:
            yield Failure(action, max(0.0, (now - at).total_seconds()))


class _Count:
    """A budget, how many failures it allows, and the failures that count, with their times."""

    def __init__(self, budget: Budget, allowed: int) -> None:
        self.budget, self.allowed = budget, allowed
        #: Oldest first.
        self.failed: deque[tuple[float, Action]] = deque()

    def exceeded(self, now: float) -> str | None:
        """Drop failures older than the budget counts; if too many are left, return a sentence."""
        failed, within_s = self.failed, self.budget.within_s
        while failed and within_s is not None and failed[0][0] < now - within_s:
            failed.popleft()
        if len(failed) <= self.allowed:
            return None
        return _sentence(self.budget, len(failed), failed[-1][1])


class FailureBudget:
    """Compares the failures of one run with its budgets; ``clock`` returns seconds.

    ``texts`` are the budgets. ``before`` are failures of earlier runs that count, oldest first.
    """

    def __init__(
        self,
        texts: Iterable[str],
        actions: Iterable[Action],
        clock: Callable[[], float],
        before: Iterable[Failure] = (),
    ) -> None:
        types = Counter(a.action_type for a in actions if a.action_type != JOIN)
        self._counts = [
            _Count(one, one.allowed(types[one.action_type] if one.action_type else types.total()))
            for one in map(budget, texts)
        ]
        self._clock = clock
        now = clock()
        for action, age_s in before:
            self._add(action, now - age_s)

    def exceeded(self) -> str | None:
        """Return which budget is exceeded now, in a sentence; None if none."""
        return self._first_exceeded(self._counts)

    def _first_exceeded(self, counts: Iterable[_Count]) -> str | None:
        now = self._clock()
        return next((why for one in counts if (why := one.exceeded(now))), None)

    def note(self, action: Action, state: ActionState) -> str | None:
        """Note the end of an action; return a sentence if a budget is exceeded by it, else None."""
        if state not in _FAILURES:
            return None
        return self._first_exceeded(self._add(action, self._clock()))

    def _add(self, action: Action, at: float) -> Sequence[_Count]:
        """Count a failure for each budget that it concerns; return the counts of these."""
        found = [c for c in self._counts if c.budget.action_type in (None, action.action_type)]
        for one in found:
            one.failed.append((at, action))
        return found


def _sentence(exceeded: Budget, failed: int, action: Action) -> str:
    what = f"{exceeded.action_type} " if exceeded.action_type else ""
    return (
        f"{count(failed, f'{what}action')} failed, the last one {one_line(action.label)}, and the "
        f"failure budget is {exceeded.text}"
    )
