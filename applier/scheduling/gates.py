# SPDX-License-Identifier: Apache-2.0
"""Gates: assigns tokens and workers to actions. No clock, no threads; used by one thread only.

Each waiting action is in exactly one heap: in a ready heap, if nothing is known to block it, or in
a heap of the first token that it lacked when it was examined. When a unit of a token is released,
two actions that wait for this token move to the ready heaps: the one with the lowest rank of those
that need a worker, and of those that need none. If one of them cannot use the unit when it is
examined, because it lacks another token, the next action in the heap of the token becomes ready. So
an event costs O(tokens log n), and as much again for each action that is examined without success.
An action without limited tokens is examined only once.

An action that was examined ``PATIENCE`` times without success becomes the collector: it keeps each
of its tokens as soon as a unit is released. Otherwise actions with larger ranks that need only one
of these tokens could starve it. There is only one collector at a time, so two collectors cannot
deadlock.

Limits may change while actions wait and run. Running actions keep their tokens, even if more are
held than the new limit allows. An action that is given up (:meth:`Gates.give_up`) frees its worker
and holds its tokens for ever.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from planner.model import Action

#: After this many examinations without success, an action becomes the collector.
PATIENCE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """How many actions of a plan may run at once.

    ``limits`` maps a token to the number of actions that may hold it at once, as in :class:`Gates`.
    ``workerless`` are the uuids of the actions that do not count against ``max_workers``.
    ``queue_tokens`` maps the uuids of actions to one more token each, see
    :class:`applier.scheduling.queue_limits.QueueLimits`.
    """

    limits: Mapping[str, int]
    max_workers: int
    workerless: Collection[str] = ()
    queue_tokens: Mapping[str, str] = field(default_factory=dict)

    def tokens_of(self, action: Action) -> tuple[str, ...]:
        """Return the tokens that an action holds while it runs."""
        own = self.queue_tokens.get(action.uuid)
        return action.tokens if own is None else (*action.tokens, own)


class _Submission:
    """A submitted action, until it is released."""

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
    #: Set by :meth:`Gates.submit` only, not by :meth:`Gates.hold`.
    rank: float
    number: int

    def __init__(self, key: str, all_tokens: Iterable[str], worker: bool) -> None:
        self.key, self.all_tokens, self.worker = key, all_tokens, worker
        #: Its tokens that have a limit, each once.
        self.tokens: tuple[str, ...] = ()
        self.examined = 0
        #: The first token that it lacked at its last examination.
        self.blocked_by: str | None = None


#: An entry of a heap: rank, submission number (it decides between equal ranks), action.
_Place = tuple[float, int, _Submission]


class Gates:
    """Assigns tokens and workers to actions, lowest rank first; each gets all its tokens at once.

    ``limits`` maps a token to the number of actions that may hold it at once. ``KIND:*`` is the
    limit of each token of that kind that has no limit of its own. Any number of actions may hold a
    token without a limit. Raises ValueError if a limit or ``max_workers`` is below 1.
    """

    def __init__(
        self, limits: Mapping[str, int], max_workers: int, *, patience: int = PATIENCE
    ) -> None:
        for name, number in {**limits, "max_workers": max_workers}.items():
            _check_limit(name, number)
        self._limits, self._patience = dict(limits), patience
        self._max_workers = max_workers
        #: The number of idle workers; negative if more are busy than a lowered maximum allows.
        self.idle = max_workers
        #: The number of examinations so far, by which tests measure the work of the gates.
        self.examined = 0
        self._free: dict[str, int] = {}
        self._known: dict[str, _Submission] = {}
        self._holders: dict[str, _Submission] = {}
        self._given_up: dict[str, _Submission] = {}
        self._ready: list[_Place] = []
        #: The ready heap of the actions that need no worker.
        self._ready_without: list[_Place] = []
        #: By token, and whether they need a worker.
        self._blocked: defaultdict[tuple[str, bool], list[_Place]] = defaultdict(list)
        self._collector: _Place | None = None
        self._missing: set[str] = set()
        self._count = 0

    def limit(self, token: str) -> int | None:
        """Return how many actions may hold a token at once; None for any number.

        >>> gates = Gates({"node:*": 1, "node:big": 4}, max_workers=2)
        >>> gates.limit("node:a"), gates.limit("node:big"), gates.limit("type:migrate")
        (1, 4, None)
        """
        exact = self._limits.get(token)
        return exact if exact is not None else self._limits.get(f"{token.partition(':')[0]}:*")

    def submit(
        self, key: str, tokens: Iterable[str] = (), rank: float = 0, *, worker: bool = True
    ) -> None:
        """Submit an action, which waits for its tokens and, with ``worker``, for a worker.

        Equal ranks start in the order in which they were submitted. O(tokens + log n).
        """
        waiting = self._known[key] = _Submission(key, tokens, worker)
        waiting.tokens = self._limited(tokens)
        self._count += 1
        waiting.rank, waiting.number = rank, self._count
        self._make_ready((rank, self._count, waiting))

    def hold(self, key: str, tokens: Iterable[str] = (), *, worker: bool = True) -> None:
        """Assign tokens and a worker to an action that runs already, beyond the limits if needed.

        They are released as after :meth:`take`.
        """
        holder = self._holders[key] = _Submission(key, tokens, worker)
        holder.tokens = self._limited(tokens)
        for token in holder.tokens:
            self._free[token] -= 1
        self.idle -= worker

    def take(self) -> str | None:
        """Assign tokens and a worker to the next action that may start; return its key or None."""
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
                self._collector = None  # it is ready because it has collected all its tokens
            elif not self._admit(place):
                continue
            self._holders[waiting.key] = self._known.pop(waiting.key)
            self.idle -= waiting.worker
            return waiting.key

    def release(self, key: str) -> None:
        """Release tokens and worker of an action that was taken. O(tokens log n)."""
        waiting = self._holders.pop(key)
        self.idle += waiting.worker
        self._give_back(waiting.tokens)

    def give_up(self, key: str) -> None:
        """Release the worker of an action that was taken, but not its tokens."""
        waiting = self._given_up[key] = self._holders.pop(key)
        self.idle += waiting.worker

    def unobtainable(self, key: str) -> tuple[str, str] | None:
        """Return a token that an action can never get, and a given-up action that holds it.

        Return None if the action needs no such token.
        """
        for token in self._known[key].tokens if self._given_up else ():
            keepers = [other.key for other in self._given_up.values() if token in other.tokens]
            if len(keepers) >= (self.limit(token) or math.inf):
                return token, keepers[0]
        return None

    def set_workers(self, number: int) -> None:
        """Change the maximum number of workers; running actions keep theirs."""
        _check_limit("max_workers", number)
        self.idle += number - self._max_workers
        self._max_workers = number

    def set_limit(self, name: str, number: int) -> None:
        """Set the limit of a token or of ``KIND:*``; running actions keep their tokens.

        All waiting actions are examined again: O(n log n).
        """
        _check_limit(name, number)
        self._limits[name] = number
        self._free.clear()
        self._collector, self._missing = None, set()
        for heap in (self._ready, self._ready_without, self._blocked):
            heap.clear()
        for holder in (*self._holders.values(), *self._given_up.values()):
            holder.tokens = self._limited(holder.all_tokens)
            for token in holder.tokens:
                self._free[token] -= 1
        for waiting in self._known.values():
            waiting.tokens, waiting.blocked_by = self._limited(waiting.all_tokens), None
            self._make_ready((waiting.rank, waiting.number, waiting))

    def withdraw(self, key: str) -> None:
        """Remove a waiting action; its entry in the heap stays there until it is popped."""
        waiting = self._known.pop(key)
        if self._collector is not None and self._collector[2] is waiting:
            held = [t for t in waiting.tokens if t not in self._missing]
            self._collector, self._missing = None, set()
            self._give_back(held)
        elif waiting.blocked_by is not None:
            # A released unit of this token may have made it ready: that unit goes to the next
            # action.
            self._wake((waiting.blocked_by,))

    def why(self, key: str) -> str | None:
        """Return the first token that a waiting action lacks; None if it lacks only a worker."""
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

    def _lacks(self, waiting: _Submission) -> str | None:
        for token in waiting.tokens:
            if self._free[token] <= 0:
                return token
        return None

    def _admit(self, place: _Place) -> bool:
        """Assign all its tokens to an action, or move it to the heap of the first missing one."""
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
            heapq.heappush(self._blocked[lacking, waiting.worker], place)
        self._wake(waiting.tokens)  # the released unit goes to the next action
        return False

    def _give_back(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self._free[token] += 1
        self._wake(tokens)

    def _wake(self, tokens: Iterable[str]) -> None:
        """Offer a free unit of each token to the collector, else to actions that wait for it."""
        for token in tokens:
            if token in self._missing and self._free[token] > 0:
                self._collect(token)
            for worker in (True, False):
                blocked = self._blocked.get((token, worker))
                while blocked and self._known.get(blocked[0][2].key) is not blocked[0][2]:
                    heapq.heappop(blocked)  # withdrawn
                if blocked and self._free[token] > 0:
                    self._make_ready(heapq.heappop(blocked))

    def _collect(self, token: str) -> None:
        self._free[token] -= 1
        self._missing.remove(token)
        if not self._missing and self._collector is not None:
            # It has waited long, and holds tokens that others wait for: it gets the next worker.
            _, number, waiting = self._collector
            self._collector = (-math.inf, number, waiting)
            self._make_ready(self._collector)


def _check_limit(name: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"limit {name} is {number}: a limit is at least 1")
