# SPDX-License-Identifier: Apache-2.0
"""What actions wait for: predecessors, a delay, a window, another plan, or the gates. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

from applier.contracts import Report
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import CANARY, Halt, Holding, WaitKind, WaitReason
from applier.scheduling.gates import Gates
from applier.scheduling.places import Places
from applier.store import Reservation
from planner.plan.graph import grouped_links
from planner.plan.model import Action


def completed(actions: Sequence[Action], ended: Container[str]) -> frozenset[str]:
    """Return the ended actions all of whose predecessors are completed as well.

    An ended action with an open predecessor is not completed: an operator skipped it early, or a
    predecessor is to run again. It stays in the graph, because its successors must still wait for
    its predecessors. ``actions`` are in schedule order.

    >>> a, b, c = (Action(uuid=u, action_type="nop", parents=p) for u, p in (("a", ()),
    ...            ("b", ("a",)), ("c", ("b",))))
    >>> sorted(completed([a, b, c], {"a", "b"})), sorted(completed([a, b, c], {"b"}))
    (['a', 'b'], [])
    """
    found: set[str] = set()
    for action in actions:
        if action.uuid in ended and found.issuperset(action.before()):
            found.add(action.uuid)
    return frozenset(found)


def links(actions: Sequence[Action], gone: Collection[str] = frozenset()) -> dict[str, list[str]]:
    """Map each node of the order graph to its successors, which start only when it has ended.

    The nodes are the actions that are not in ``gone``, and the groups of links that several of them
    share, except groups of alternatives: those are open as soon as one of their members succeeds.

    >>> first = [Action(uuid=u, action_type="nop") for u in "abc"]
    >>> second = [Action(uuid=u, action_type="nop", parents=("a", "b", "c")) for u in "xyz"]
    >>> links(first + second, gone={"c"})["b"], links(first + second)["group 0"]
    (['group 0'], ['x', 'y', 'z'])
    """
    groups, edges = grouped_links(actions)
    nodes = [action.uuid for action in actions if action.uuid not in gone]
    nodes += [group for group, kind in groups.items() if kind != "any"]
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other, _ in edges:
        if one in after and other in after:
            after[one].append(other)
    return after


class _Group:
    """A group of alternatives. It is open until one member has succeeded or all have ended."""

    __slots__ = ("left", "open", "waiting")

    def __init__(self, size: int) -> None:
        self.left, self.open = size, True
        self.waiting: list[str] = []


class Countdown:
    """Tracks how many links and groups each name still waits for.

    Like ``graphlib.TopologicalSorter``, but with groups of which one member is enough.

    ``after`` maps each name to its successors. ``alternatives`` maps a name to its groups: it waits
    until one member of each group has succeeded, or all have ended. An empty group is ignored. A
    group that several names share is counted only once.

    >>> countdown = Countdown({"a": ["c"], "b": ["c"], "c": [], "d": []}, {"d": [("a", "b")]})
    >>> countdown.ready(), countdown.done("a"), countdown.done("b")
    (['a', 'b'], ['d'], ['c'])
    """

    def __init__(
        self,
        after: Mapping[str, Sequence[str]],
        alternatives: Mapping[str, Iterable[tuple[str, ...]]],
    ) -> None:
        self._after = after
        self._left = dict.fromkeys(after, 0)
        for names in after.values():
            for name in names:
                self._left[name] += 1
        self._groups: defaultdict[str, list[_Group]] = defaultdict(list)
        known: dict[tuple[str, ...], _Group] = {}
        for name, sets in alternatives.items():
            for members in filter(None, sets):
                if members not in known:
                    known[members] = _Group(len(set(members)))
                    for member in set(members):
                        self._groups[member].append(known[members])
                known[members].waiting.append(name)
                self._left[name] += 1

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the graph."""
        return name in self._left

    def ready(self) -> list[str]:
        """Return the names that wait for nothing from the beginning."""
        return [name for name, left in self._left.items() if not left]

    def done(self, name: str, well: bool = True) -> list[str]:
        """Record that a name has ended; return the names that became ready by that.

        A name that is not in the graph still counts in the groups that contain it.
        """
        due = self._less(self._after.get(name, ()))
        for group in self._groups.get(name, ()):
            group.left -= 1
            if group.open and (well or not group.left):
                group.open = False
                due += self._less(group.waiting)
        return due

    def _less(self, names: Iterable[str]) -> list[str]:
        left, due = self._left, []
        for name in names:
            left[name] -= 1
            if not left[name]:
                due.append(name)
        return due


#: The kinds of tokens that name resources. Two plans must not work on one resource at once.
RESOURCES = ("instance", "node", "volume")


def resources_of(actions: Iterable[Action]) -> list[str]:
    """Return the resources on which these actions work, each once."""
    tokens = dict.fromkeys(token for action in actions for token in action.tokens)
    return [token for token in tokens if token.partition(":")[0] in RESOURCES]


class WaitingActions:
    """The actions that only wait for a token, a worker, another plan, a delay or a window.

    Their predecessors have ended. ``concurrency`` determines their tokens and who needs a worker.
    Those that wait for another plan are not at the gates, so that none of them collects tokens.
    ``holding`` may delay an action that has its tokens and a worker. With ``keeps``, nodes that
    failed keep their places where the plan says so; ``given_up`` are actions that hang.
    """

    def __init__(
        self,
        gates: Gates,
        actions: Mapping[str, Action],
        ranks: Mapping[str, int],
        concurrency: Concurrency,
        holding: Holding | None = None,
        keeps: bool = True,
        given_up: Collection[str] = (),
    ) -> None:
        rules = concurrency.places
        self._places = Places(actions, rules, gates, keeps, given_up) if rules else None
        self._holds = self._places.of if self._places else {}
        self._gates, self._actions, self._ranks = gates, actions, ranks
        self._concurrency, self._holding = concurrency, holding
        #: Actions that the holding delays; they have released their tokens and workers again.
        self.held: dict[str, None] = {}
        self._at_gates: set[str] = set()
        #: Actions whose attempt failed, and which are retried after a delay.
        self.delayed: set[str] = set()
        #: The reservations of other plans by resource, and the actions that wait for one of them.
        self._reserved: dict[str, Reservation] = {}
        self._parked: dict[str, None] = {}

    @property
    def may_start_later(self) -> bool:
        """Whether an action waits for a delay, another plan or a window: it may start by itself."""
        return bool(self.delayed or self._parked or self.held)

    def ended(self, report: Report) -> Iterator[Halt]:
        """Note the end of any action: the last of a node gives its place back.

        Yield a halt if the plan is to pause because of that.
        """
        if self._places is not None:
            why = self._places.ended(report.uuid, report.state, given_up=report.given_up)
            if why:
                yield Halt.pause(CANARY, why)

    def set_limit(self, name: str, number: int) -> None:
        """Set a limit, which does not widen from now on."""
        if self._places is not None:
            self._places.limit_was_set(name)
        self._gates.set_limit(name, number)

    def closed(self, token: str, keeper: str) -> str | None:
        """Return why no place of a token is free any more; None if it is no token of places."""
        return self._places.closed(token, keeper) if self._places else None

    def submit(self, uuid: str) -> None:
        """Submit an action to the gates, or park it if another plan holds one of its resources."""
        if self._blocking(uuid):
            self._parked[uuid] = None
            return
        self._at_gates.add(uuid)
        worker = uuid not in self._concurrency.workerless
        tokens = self._concurrency.tokens_of(self._actions[uuid])
        holds = self._holds.get(uuid, ())
        self._gates.submit(uuid, tokens, self._ranks[uuid], worker=worker, holds=holds)

    def elapsed(self, uuids: Iterable[str]) -> None:
        """Add the actions whose delay is over, unless they ended meanwhile."""
        for uuid in uuids:
            if uuid in self.delayed:
                self.delayed.remove(uuid)
                self.submit(uuid)

    def replace_reservations(self, reservations: Iterable[Reservation]) -> None:
        """Replace the reservations of other plans."""
        self._reserved = {r.resource: r for r in reservations}
        # Those that are free now come before those that have to leave the gates.
        free = [u for u in self._parked if not self._blocking(u)]
        for uuid in free:
            del self._parked[uuid]
            self.submit(uuid)
        for uuid in [u for u in self._at_gates if self._blocking(u)]:
            self.withdraw(uuid)
            self._parked[uuid] = None

    def _blocking(self, uuid: str) -> Reservation | None:
        """Return the first reservation of another plan that blocks an action, or None."""
        if not self._reserved:
            return None
        tokens = self._actions[uuid].tokens
        return next((self._reserved[t] for t in tokens if t in self._reserved), None)

    def reopen(self) -> None:
        """Submit the actions again that were held back."""
        again, self.held = self.held, {}
        for uuid in again:
            self.submit(uuid)

    def take(self) -> str | None:
        """Return the next action that may start now, or None."""
        while (uuid := self._gates.take()) is not None:
            self._at_gates.remove(uuid)
            begins = self._places is None or self._places.begins(uuid)
            if self._holding is None or not self._holding.holds(self._actions[uuid], begins=begins):
                return uuid
            self._gates.put_back(uuid)
            self.held[uuid] = None
        return None

    def withdraw(self, uuid: str) -> bool:
        """Remove an action, whatever it waits for; return whether it was waiting."""
        if uuid in self._at_gates:
            self._at_gates.remove(uuid)
            self._gates.withdraw(uuid)
            return True
        if uuid in self.delayed:
            self.delayed.remove(uuid)
            return True
        for waiting in (self.held, self._parked):
            if uuid in waiting:
                del waiting[uuid]
                return True
        return False

    def keep_to_finish(self, ended: Container[str]) -> set[str]:
        """Return what nodes that have begun need to finish, and withdraw everything else.

        ``ended`` are the actions that have ended. Empty for a plan without places.
        """
        found = self._places.to_finish(ended) if self._places else set()
        waiting = (*self._at_gates, *self.delayed, *self.held, *self._parked)
        for uuid in [u for u in waiting if u not in found] if found else ():
            self.withdraw(uuid)
        return found

    def blocked_forever(self) -> list[tuple[str, str, str]]:
        """List the actions that wait for a token that is never released: action, token, holder."""
        by_rank = sorted(self._at_gates, key=self._ranks.__getitem__)
        return [(uuid, *never) for uuid in by_rank if (never := self._gates.unobtainable(uuid))]

    def why(self, uuid: str, running: Collection[str]) -> WaitReason | None:
        """Return why an action waits; None if it is not among the waiting actions."""
        if uuid in self.delayed:
            return WaitReason(WaitKind.DELAY, ())
        if uuid in self.held:
            return WaitReason(WaitKind.WINDOW, ())
        if uuid in self._parked:
            held = self._blocking(uuid)
            return WaitReason(WaitKind.PLAN, (), held.resource if held else None, held)
        if uuid not in self._at_gates:
            return None
        token = self._gates.why(uuid)
        if token is None:
            return WaitReason(WaitKind.WORKER, tuple(running))
        found = [
            next((u for u in uuids if u in running), cause or uuids[0])
            for _, cause, uuids in (self._places.holders(token) if self._places else ())
        ]
        if found:
            return WaitReason(WaitKind.TOKEN, tuple(found), token)
        never = self._gates.unobtainable(uuid)
        tokens_of = self._concurrency.tokens_of
        holders = (u for u in running if token in tokens_of(self._actions[u]))
        return WaitReason(
            WaitKind.TOKEN, (*holders, *([never[1]] if never and never[0] == token else [])), token
        )
