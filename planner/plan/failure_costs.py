# SPDX-License-Identifier: Apache-2.0
"""The cost of a failure: the actions of a plan that do not run if one of its actions fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from planner.plan.graph_algorithms import CycleError, once, topological_order
from planner.plan.model import ANCHOR, JOIN, Action, Blocker, Trigger
from planner.plan.states import OPEN, WELL, Outcome

#: For plans with more open actions, no costs are computed: the memory grows with their square.
MOST = 10_000
#: Action types that only keep an order or a place: they do nothing that could fail.
_DO_NOTHING = frozenset({JOIN, ANCHOR, "skipped"})


class FailureCost(NamedTuple):
    """An action, and the number of actions that do not run if it fails."""

    action: Action
    not_run: int


class FailureCosts:
    """The cost of a failure of each open action, if no other action fails by itself.

    The rule is that of ``on_failure = skip_descendants``: an action does not run if an action that
    it needs, or each action of one of its groups ``needs_any``, failed or did not run, if none of
    its triggers fires, or if a blocker failed. Joins are not counted, nor actions that do not run
    even if none fails. An action that only a failure triggers is assumed to fire no trigger itself.

    The set of failures that keep an action from running is an integer with a bit for each open
    action. Time and memory grow with the number of links times the number of actions / 64.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        self._left = [a for a in actions if a.state in OPEN]
        self._place = {a.uuid: i for i, a in enumerate(self._left)}
        self._ended = {a.uuid: a for a in actions if a.state not in OPEN}
        #: All bits are set: the action does not end well, whichever action fails, or none.
        self._any = (1 << len(self._left)) - 1
        #: The failures after which each action does not end well, without its own.
        self._bad_after: list[int] = [0] * len(self._left)
        #: Whether each action runs if none fails: a trigger may never fire.
        self._runs = [False] * len(self._left)
        if len(self._left) <= MOST:
            self._compute()

    def not_run(self, uuid: str) -> list[Action]:
        """Return the actions that do not run if this one fails, in plan order.

        The list is empty for an action that has ended, and for a plan with more than MOST actions.
        """
        place = self._place.get(uuid)
        if place is None:
            return []
        return [a for a, rows in self._kept_from_running() if rows >> place & 1]

    def highest(self, number: int) -> list[FailureCost]:
        """Return up to ``number`` actions whose failure costs most, the highest cost first.

        Actions without a cost, and those that do nothing that could fail, are left out. Actions of
        equal cost are in plan order.
        """
        rows = (row for _, row in self._kept_from_running())
        counts = _column_counts(rows, len(self._left))
        found = [
            FailureCost(action, cost)
            for action, cost in zip(self._left, counts, strict=True)
            if cost and action.action_type not in _DO_NOTHING
        ]
        return sorted(found, key=lambda cost: -cost.not_run)[:number]

    def _kept_from_running(self) -> Iterator[tuple[Action, int]]:
        """Yield each action that runs if none fails, and the failures after which it does not."""
        rows = zip(self._left, self._bad_after, self._runs, strict=True)
        return ((a, bad) for a, bad, runs in rows if runs and a.action_type != JOIN)

    def _compute(self) -> None:
        place = self._place
        links = [
            [
                [place[u] for u in group if u in place]
                for group in (a.before(), *a.needs_any, [b.action for b in a.blocked_by])
                if group
            ]
            for a in self._left
        ]
        try:
            order = topological_order(links)
        except CycleError:
            return  # planner.plan.graph.validate reports it
        one_of = once(self._one_of)
        for i in order:
            self._find(i, self._left[i], one_of(self._left[i].needs))

    def _find(self, place: int, action: Action, bad: int) -> None:
        """Compute the failures after which an action does not end well, from its predecessors.

        ``bad`` are those after which one of its needs does not.
        """
        for group in action.needs_any:
            if group:
                bad |= self._all_of(map(self._missing, group))
        for blocker in action.blocked_by:
            bad |= self._blocking(blocker)
        fires = not action.triggers or any(map(self._fires, action.triggers))
        if action.triggers:
            silent = self._all_of(map(self._not_fired, action.triggers))
            if not fires:  # it is skipped, unless one that triggers it is bad
                silent &= self._one_of(t.action for t in action.triggers)
            bad |= silent
        self._bad_after[place] = bad
        self._runs[place] = fires and bad != self._any

    def _one_of(self, uuids: Iterable[str]) -> int:
        found = 0
        for uuid in uuids:
            found |= self._missing(uuid)
        return found

    def _all_of(self, sets: Iterable[int]) -> int:
        every = self._any
        for found in sets:
            every &= found
        return every

    def _missing(self, uuid: str) -> int:
        """Return the failures after which an action has not ended well, including its own."""
        if uuid in self._ended:
            return 0 if self._ended[uuid].state in WELL else self._any
        place = self._place[uuid]
        return self._bad_after[place] | 1 << place

    def _blocking(self, blocker: Blocker) -> int:
        """Return the failures after which a blocker blocks: for an open action, only its own."""
        ended = self._ended.get(blocker.action)
        if ended is not None:
            return self._any if ended.outcome in blocker.outcomes else 0
        return 1 << self._place[blocker.action] if Outcome.FAILED in blocker.outcomes else 0

    def _fires(self, trigger: Trigger) -> bool:
        """Return whether a trigger fires if each action that runs ends with ``changed``."""
        ended = self._ended.get(trigger.action)
        if ended is not None:
            return ended.outcome in trigger.outcomes
        place = self._place[trigger.action]
        works = self._runs[place] and self._left[place].action_type != JOIN
        return works and Outcome.CHANGED in trigger.outcomes

    def _not_fired(self, trigger: Trigger) -> int:
        """Return the failures after which a trigger does not fire."""
        if trigger.action in self._ended:
            return 0 if self._fires(trigger) else self._any
        own = 1 << self._place[trigger.action]
        found = self._missing(trigger.action) if self._fires(trigger) else self._any
        return found & ~own if Outcome.FAILED in trigger.outcomes else found


def _column_counts(rows: Iterable[int], number: int) -> list[int]:
    """Return, for each of the lowest ``number`` bits, how many integers have it set.

    All counts are incremented at once: ``planes[k]`` has bit k of each count.
    """
    planes: list[int] = []
    for row in rows:
        carry = row
        for k, plane in enumerate(planes):
            if not carry:
                break
            planes[k], carry = plane ^ carry, plane & carry
        if carry:
            planes.append(carry)
    if not planes:
        return [0] * number
    digits = [f"{plane:0{number}b}" for plane in reversed(planes)]
    return [int("".join(column), 2) for column in zip(*digits, strict=True)][::-1]


def sentence(costs: Sequence[FailureCost]) -> str:
    """Return a sentence about the costs, or an empty text if there are none.

    >>> sentence([FailureCost(Action(uuid="u", action_type="nop", name="close"), 4)])
    'Most dangerous: close (4 do not run if it fails).'
    """
    if not costs:
        return ""
    first, *others = costs
    do = "does" if first.not_run == 1 else "do"
    told = [f"{first.action.label} ({first.not_run} {do} not run if it fails)"]
    told += [f"{cost.action.label} ({cost.not_run})" for cost in others]
    return f"Most dangerous: {', '.join(told)}."
