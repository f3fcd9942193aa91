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
from collections.abc import Iterable, Mapping

from applier.scheduling.concurrency import SharedUnit, Submission, Units

#: After this many examinations without success, an action becomes the collector.
PATIENCE = 16
#: Subtracted from the ranks of actions of members that have begun: what is out of service is
#: finished before anything else begins.
_HOLDERS_FIRST = 1e12


#: An entry of a heap: rank, submission number (it decides between equal ranks), action.
_Entry = tuple[float, int, Submission]


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
        self._known: dict[str, Submission] = {}
        self._holders: dict[str, Submission] = {}
        self._given_up: dict[str, Submission] = {}
        self._ready: list[_Entry] = []
        #: The ready heap of the actions that need no worker.
        self._ready_without: list[_Entry] = []
        #: By token, and whether they need a worker.
        self._blocked: defaultdict[tuple[str, bool], list[_Entry]] = defaultdict(list)
        self._collector: _Entry | None = None
        self._missing: set[str] = set()
        self._count = 0
        #: Units that several actions hold together.
        self.units = Units()

    def limit(self, token: str) -> int | None:
        """Return how many actions may hold a token at once; None for any number.

        >>> gates = Gates({"node:*": 1, "node:big": 4}, max_workers=2)
        >>> gates.limit("node:a"), gates.limit("node:big"), gates.limit("type:migrate")
        (1, 4, None)
        """
        exact = self._limits.get(token)
        return exact if exact is not None else self._limits.get(f"{token.partition(':')[0]}:*")

    def submit(
        self,
        key: str,
        tokens: Iterable[str] = (),
        rank: float = 0,
        *,
        worker: bool = True,
        holds: tuple[SharedUnit, ...] = (),
    ) -> None:
        """Submit an action, which waits for its tokens and, with ``worker``, for a worker.

        Equal ranks start in the order in which they were submitted. O(tokens + log n).
        """
        waiting = self._known[key] = Submission(key, tokens, worker, holds)
        waiting.tokens = self._limited(tokens)
        if holds:
            waiting.holds = tuple(h for h in holds if self._has_limit(h.token))
            if any(h.taken or h.earlier for h in holds):
                rank -= _HOLDERS_FIRST
        self._count += 1
        waiting.rank, waiting.number = rank, self._count
        self._make_ready((rank, self._count, waiting))

    def enter(self, hold: SharedUnit) -> None:
        """Take the unit of a member that runs already, beyond the limit if needed."""
        hold.users = 1
        self._take_unit(hold)

    def leave(self, hold: SharedUnit) -> None:
        """Release the unit of a member all of whose actions have ended, or what it reserved."""
        hold.earlier = False
        self._untake(hold)

    def _untake(self, hold: SharedUnit) -> None:
        """Release the unit of a member, which it may take again; for one that began, reserve it."""
        if self.units.give_back(hold) and hold.token in self._free:
            self._free[hold.token] += 1
        if self._has_limit(hold.token):
            self._wake((hold.token,))

    def lend(self) -> bool:
        """Let others have the units that are reserved; return whether there are any.

        For a run in which nothing else can start: a member that began earlier waits for one that
        did not begin.
        """
        tokens = self.units.lend()
        self._wake([token for token in tokens if self._has_limit(token)])
        return bool(tokens)

    def shut(self, token: str, cause: str) -> None:
        """Let no other member take a unit of a token."""
        self.units.shut.setdefault(token, cause)
        place = self._collector
        if place and any(h.token == token and h.taken and not h.users for h in place[2].all_holds):
            self._stop_collecting(place[2])
            self._make_ready((place[2].rank, place[2].number, place[2]))

    def put_back(self, key: str) -> None:
        """Undo :meth:`take`: release tokens, worker and the units that were taken with them."""
        holds = self._holders[key].all_holds
        self.release(key)
        for hold in holds:
            hold.users -= 1
            if not hold.users:
                self._untake(hold)

    def hold(self, key: str, tokens: Iterable[str] = (), *, worker: bool = True) -> None:
        """Assign tokens and a worker to an action that runs already, beyond the limits if needed.

        Shared units are taken by :meth:`enter`.
        """
        holder = self._holders[key] = Submission(key, tokens, worker)
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
            for hold in waiting.all_holds:
                hold.users += 1
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
        for hold in self._known[key].holds:
            keeper = self.units.keeper(hold, self.limit(hold.token) or math.inf)
            if keeper is not None:
                return hold.token, keeper
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
        if self._collector is not None:
            self._close(self._collector[2])
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
            waiting.holds = tuple(h for h in waiting.all_holds if self._has_limit(h.token))
            self._make_ready((waiting.rank, waiting.number, waiting))

    def withdraw(self, key: str) -> None:
        """Remove a waiting action; its entry in the heap stays there until it is popped."""
        waiting = self._known.pop(key)
        if self._collector is not None and self._collector[2] is waiting:
            self._stop_collecting(waiting)
        elif waiting.blocked_by is not None:
            # A released unit of this token may have made it ready: that unit goes to the next
            # action.
            self._wake((waiting.blocked_by,))
        if waiting.holds:
            self._wake([h.token for h in waiting.holds])

    def why(self, key: str) -> str | None:
        """Return the first token that a waiting action lacks; None if it lacks only a worker."""
        waiting = self._known[key]
        if self._collector is not None and self._collector[2] is waiting:
            return next((t for t in waiting.tokens if t in self._missing), None)
        return self._lacks(waiting)

    def _limited(self, tokens: Iterable[str]) -> tuple[str, ...]:
        return tuple(t for t in dict.fromkeys(tokens) if self._has_limit(t))

    def _make_ready(self, place: _Entry) -> None:
        heapq.heappush(self._ready if place[2].worker else self._ready_without, place)

    def _has_limit(self, token: str) -> bool:
        if token in self._free:
            return True
        limit = self.limit(token)
        if limit is not None:
            self._free[token] = limit - self.units.taken[token]
        return limit is not None

    def _take_unit(self, hold: SharedUnit) -> None:
        """Take the unit of a hold; those of its actions that waited for it are ready."""
        self.units.take(hold)
        if hold.token in self._free:
            self._free[hold.token] -= 1
        waiting, hold.waiting = hold.waiting, []
        for other in waiting:
            if self._known.get(other.key) is other and other.blocked_by == hold.token:
                other.blocked_by = None
                other.rank -= _HOLDERS_FIRST
                self._make_ready((other.rank, other.number, other))

    def _close(self, waiting: Submission) -> None:
        """Take back the units that only a collector has taken, without an offer to others."""
        for hold in waiting.all_holds:
            if hold.taken and not hold.users:
                self.units.give_back(hold)

    def _stop_collecting(self, waiting: Submission) -> None:
        """Release what the collector has collected."""
        held = [t for t in waiting.tokens if t not in self._missing]
        self._collector, self._missing = None, set()
        self._give_back(held)
        for hold in waiting.all_holds:
            if not hold.users:
                self._untake(hold)

    def _is_without(self, hold: SharedUnit) -> bool:
        """Return whether a member has no unit, and may not take one now."""
        return not hold.taken and self.units.free(hold, self._free[hold.token]) < 1

    def _lacks_unit(self, waiting: Submission) -> SharedUnit | None:
        return next(filter(self._is_without, waiting.holds), None)

    def _open(self, waiting: Submission) -> None:
        for hold in waiting.all_holds:
            if not hold.taken:
                self._take_unit(hold)

    def _lacks(self, waiting: Submission) -> str | None:
        if waiting.holds and (hold := self._lacks_unit(waiting)) is not None:
            return hold.token
        for token in waiting.tokens:
            if self._free[token] <= 0:
                return token
        return None

    def _admit(self, place: _Entry) -> bool:
        """Assign all its tokens to an action, or move it to the heap of the first missing one."""
        self.examined += 1
        waiting = place[2]
        hold = self._lacks_unit(waiting) if waiting.holds else None
        lacking = hold.token if hold else self._lacks(waiting)
        if lacking is None:
            for token in waiting.tokens:
                self._free[token] -= 1
            if waiting.all_holds:
                self._open(waiting)
                # It may have been offered a unit that its member has already.
                self._wake([h.token for h in waiting.holds])
            return True
        waiting.blocked_by = lacking
        if hold is not None:
            # It collects no tokens, and passes on what it was offered.
            if waiting not in hold.waiting:
                hold.waiting.append(waiting)
            heapq.heappush(self._blocked[lacking, waiting.worker], place)
            self._wake((*waiting.tokens, *(h.token for h in waiting.holds)))
            return False
        waiting.examined += 1
        if waiting.examined >= self._patience and self._collector is None:
            self._open(waiting)
            self._collector, self._missing = place, set(waiting.tokens)
        else:
            heapq.heappush(self._blocked[lacking, waiting.worker], place)
        self._wake(waiting.tokens)  # the released unit goes to the next action
        if waiting.holds:
            self._wake([h.token for h in waiting.holds])
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
                while blocked and (
                    self._known.get(blocked[0][2].key) is not blocked[0][2]
                    or blocked[0][2].blocked_by != token
                ):
                    heapq.heappop(blocked)  # withdrawn, or its member has taken a unit meanwhile
                if blocked and self._free[token] > 0:
                    head = blocked[0][2]
                    for hold in head.holds:
                        if (
                            hold.token == token
                            and not hold.taken
                            and self.units.free(hold, self._free[hold.token]) < 1
                        ):
                            break  # it is reserved, or nobody gets it
                    else:
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
