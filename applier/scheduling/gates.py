# SPDX-License-Identifier: Apache-2.0
"""Gates: which actions hold their tokens and a worker. Pure, no clock, no threads, one owner.

Each action that waits stands in exactly one heap: ``ready`` (nothing is known to block it) or the
one of the first token that it was found to lack. Each unit of a token that comes free moves one
action, the best that waits for it, into ``ready``; whoever is examined and does not use the unit
passes it on to the next. So an event costs O(tokens log n), plus the same for each action that it
wakes in vain; what needs no token that has a limit is examined once. An action that was examined
``PATIENCE`` times in vain becomes the collector: it keeps its tokens as they come free, so that
actions of a worse rank which need only one of them cannot starve it. There is one collector at a
time, hence no two that wait for each other.

Limits may change while actions wait and run: what holds more than it may now keeps it until it is
released. What is lost (:meth:`Gates.lose`) gives back its worker and keeps its tokens for ever.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

#: How often an action is examined in vain before it collects its tokens.
PATIENCE = 16


class _Waiting:
    """One action, from its submission until its release."""

    __slots__ = (
        "all_tokens",
        "blocked_by",
        "examined",
        "key",
        "number",
        "rank",
        "tokens",
        "worker",
    )

    def __init__(self, key: str, all_tokens: Iterable[str], worker: bool) -> None:
        self.key, self.all_tokens, self.worker = key, all_tokens, worker
        #: Those that have a limit, each once.
        self.tokens: tuple[str, ...] = ()
        self.rank: float = 0
        self.number = 0
        self.examined = 0
        #: The token that it was found to lack when it was examined last.
        self.blocked_by: str | None = None


#: Rank, a number that decides between equal ranks, the action.
_Place = tuple[float, int, _Waiting]


class Gates:
    """Hands out tokens (all or nothing) and workers, lowest rank first.

    ``limits`` maps a token, or ``KIND:*`` for each token of a kind by itself, to how many may hold
    it at once; an exact limit wins over the pattern, a token without a limit is free. Raises
    ValueError when a limit or ``max_workers`` is below 1.
    """

    def __init__(
        self, limits: Mapping[str, int], max_workers: int, *, patience: int = PATIENCE
    ) -> None:
        for name, number in {**limits, "max_workers": max_workers}.items():
            _check_limit(name, number)
        self._limits, self._patience = dict(limits), patience
        self._max_workers = max_workers
        #: Workers that have nothing to do; below 0 when there are more than there may be now.
        self.idle = max_workers
        #: How many actions were looked at so far: what the work of the gates is measured by.
        self.examined = 0
        self._free: dict[str, int] = {}
        self._known: dict[str, _Waiting] = {}
        self._holders: dict[str, _Waiting] = {}
        self._lost: dict[str, _Waiting] = {}
        self._ready: list[_Place] = []
        #: Ready as well, but in need of no worker.
        self._ready_without: list[_Place] = []
        self._blocked: defaultdict[str, list[_Place]] = defaultdict(list)
        self._collector: _Place | None = None
        self._missing: set[str] = set()
        self._count = 0

    def limit(self, token: str) -> int | None:
        """How many may hold a token at once; None: any number.

        >>> gates = Gates({"node:*": 1, "node:big": 4}, max_workers=2)
        >>> gates.limit("node:a"), gates.limit("node:big"), gates.limit("type:migrate")
        (1, 4, None)
        """
        exact = self._limits.get(token)
        return exact if exact is not None else self._limits.get(f"{token.partition(':')[0]}:*")

    def submit(
        self, key: str, tokens: Iterable[str] = (), rank: float = 0, *, worker: bool = True
    ) -> None:
        """Queue an action for its tokens and, unless it needs none, for a worker.

        Equal ranks start in the order in which they were submitted. O(tokens + log n).
        """
        waiting = self._known[key] = _Waiting(key, tokens, worker)
        waiting.tokens = self._limited(tokens)
        self._count += 1
        waiting.rank, waiting.number = rank, self._count
        self._make_ready((rank, self._count, waiting))

    def take(self) -> str | None:
        """Return the next action that may start now, which then holds its tokens; or None."""
        without = self._ready_without
        while True:
            heap = self._ready if self.idle > 0 else without
            if without and (not heap or without[0] < heap[0]):
                heap = without
            if not heap:
                return None
            place = heapq.heappop(heap)
            waiting = place[2]
            if self._known.get(waiting.key) is not waiting:
                continue  # withdrawn
            if self._collector is not None and self._collector[2] is waiting:
                self._collector = None  # it is in ready because it has collected all
            elif not self._admit(place):
                continue
            self._holders[waiting.key] = self._known.pop(waiting.key)
            self.idle -= waiting.worker
            return waiting.key

    def release(self, key: str) -> None:
        """Release tokens and worker of an action that :meth:`take` returned. O(tokens log n)."""
        waiting = self._holders.pop(key)
        self.idle += waiting.worker
        self._give_back(waiting.tokens)

    def lose(self, key: str) -> None:
        """Release the worker of an action that :meth:`take` returned, but not its tokens."""
        waiting = self._lost[key] = self._holders.pop(key)
        self.idle += waiting.worker

    def lost_to(self, key: str) -> tuple[str, str] | None:
        """Return a token that an action will never get, and the lost action that holds it."""
        for token in self._known[key].tokens if self._lost else ():
            keepers = [other.key for other in self._lost.values() if token in other.tokens]
            if len(keepers) >= (self.limit(token) or math.inf):
                return token, keepers[0]
        return None

    def set_workers(self, number: int) -> None:
        """Change how many workers there are; none is taken away from what runs."""
        _check_limit("max_workers", number)
        self.idle += number - self._max_workers
        self._max_workers = number

    def set_limit(self, name: str, number: int) -> None:
        """Change the limit of a token or of ``KIND:*``, or give it one; nothing is taken away.

        Everything that waits is looked at anew: O(n log n).
        """
        _check_limit(name, number)
        self._limits[name] = number
        self._free.clear()
        self._collector, self._missing = None, set()
        for heap in (self._ready, self._ready_without, self._blocked):
            heap.clear()
        for holder in (*self._holders.values(), *self._lost.values()):
            holder.tokens = self._limited(holder.all_tokens)
            for token in holder.tokens:
                self._free[token] -= 1
        for waiting in self._known.values():
            waiting.tokens, waiting.blocked_by = self._limited(waiting.all_tokens), None
            self._make_ready((waiting.rank, waiting.number, waiting))

    def withdraw(self, key: str) -> None:
        """Remove an action that waits; its heap entry is dropped when it is popped."""
        waiting = self._known.pop(key)
        if self._collector is not None and self._collector[2] is waiting:
            held = [t for t in waiting.tokens if t not in self._missing]
            self._collector, self._missing = None, set()
            self._give_back(held)
        elif waiting.blocked_by is not None:
            # It may have been woken by a unit of this token, which now goes to the next.
            self._wake((waiting.blocked_by,))

    def why(self, key: str) -> str | None:
        """Return the first token that an action lacks; None if it lacks only a worker."""
        waiting = self._known[key]
        if self._collector is not None and self._collector[2] is waiting:
            return next((t for t in waiting.tokens if t in self._missing), None)
        return self._lacks(waiting)

    def _limited(self, tokens: Iterable[str]) -> tuple[str, ...]:
        return tuple(t for t in dict.fromkeys(tokens) if self._has_limit(t))

    def _make_ready(self, place: _Place) -> None:
        heapq.heappush(self._ready if place[2].worker else self._ready_without, place)

    def _has_limit(self, token: str) -> bool:
        if token in self._free:
            return True
        limit = self.limit(token)
        if limit is not None:
            self._free[token] = limit
        return limit is not None

    def _lacks(self, waiting: _Waiting) -> str | None:
        for token in waiting.tokens:
            if self._free[token] <= 0:
                return token
        return None

    def _admit(self, place: _Place) -> bool:
        """Take all its tokens, or queue it for the first that it lacks."""
        self.examined += 1
        waiting = place[2]
        lacking = self._lacks(waiting)
        if lacking is None:
            for token in waiting.tokens:
                self._free[token] -= 1
            return True
        waiting.blocked_by = lacking
        waiting.examined += 1
        if waiting.examined >= self._patience and self._collector is None:
            self._collector, self._missing = place, set(waiting.tokens)
        else:
            heapq.heappush(self._blocked[lacking], place)
        self._wake(waiting.tokens)  # the unit that woke it goes to the next
        return False

    def _give_back(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self._free[token] += 1
        self._wake(tokens)

    def _wake(self, tokens: Iterable[str]) -> None:
        """Pass on a unit of each of these tokens, if one is free: the collector is first."""
        for token in tokens:
            if token in self._missing and self._free[token] > 0:
                self._collect(token)
            blocked = self._blocked.get(token)
            while blocked and self._known.get(blocked[0][2].key) is not blocked[0][2]:
                heapq.heappop(blocked)  # withdrawn
            if blocked and self._free[token] > 0:
                self._make_ready(heapq.heappop(blocked))

    def _collect(self, token: str) -> None:
        self._free[token] -= 1
        self._missing.remove(token)
        if not self._missing and self._collector is not None:
            # It waited longest and holds what others wait for: it gets the next worker.
            _, number, waiting = self._collector
            self._collector = (-math.inf, number, waiting)
            self._make_ready(self._collector)


def _check_limit(name: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"limit {name} is {number}: a limit is at least 1")
