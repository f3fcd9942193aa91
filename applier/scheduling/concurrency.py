# SPDX-License-Identifier: Apache-2.0
"""How many actions run at once: limits, queues, and units that actions hold together. Pure.

The queues of workers are limits of a forecast only: a run does not wait for places, it hands an
action to its queue, where the job waits for a worker. A place is one job that a worker carries out
at once. A worker that serves several queues counts for each of them. A queue that no worker serves
has no limit, because its workers are yet to come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from applier.store.worker_jobs import Served
from planner.plan.model import JOIN, Action
from planner.plan.place_rules import PlaceRule


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """How many actions of a plan may run at once.

    ``limits`` maps a token to the number of actions that may hold it at once, as in :class:`Gates`.
    ``workerless`` are the uuids of the actions that do not count against ``max_workers``.
    ``queue_tokens`` maps the uuids of actions to one more token each, see
    :class:`applier.scheduling.concurrency.QueueLimits`. ``places`` are the rules of blocks, by
    token; their limits are in ``limits``.
    """

    limits: Mapping[str, int]
    max_workers: int
    workerless: Collection[str] = ()
    queue_tokens: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, PlaceRule] = field(default_factory=dict)

    def tokens_of(self, action: Action) -> tuple[str, ...]:
        """Return the tokens that an action holds while it runs."""
        own = self.queue_tokens.get(action.uuid)
        return action.tokens if own is None else (*action.tokens, own)


class SharedUnit:
    """A unit of a token that the actions of one member hold together. Compared by identity.

    The first of them that is taken takes the unit, the others need none, and
    :meth:`applier.scheduling.gates.Gates.leave` releases it. An action has at most one of a token:
    with two it would be woken for one unit, and block again, for ever. An action that lacks a unit
    never collects tokens, so that it keeps none from the actions of those who have one.
    """

    __slots__ = ("cause", "earlier", "given_up", "member", "taken", "token", "users", "waiting")

    def __init__(self, token: str, member: str) -> None:
        self.token, self.member = token, member
        self.taken = self.given_up = False
        #: Whether it began in an earlier run and has open actions.
        self.earlier = False
        #: The number of its actions that were taken. A collector takes the unit before that.
        self.users = 0
        #: The first action of the member that did not end well.
        self.cause: str | None = None
        #: Its submissions that wait for the unit.
        self.waiting: list[Submission] = []


class Submission:
    """A submitted action, until it is released."""

    __slots__ = (
        "all_holds",
        "all_tokens",
        "blocked_by",
        "examined",
        "holds",
        "key",
        "number",
        "rank",
        "tokens",
        "worker",
    )
    #: Set by :meth:`Gates.submit` only, not by :meth:`Gates.hold`.
    rank: float
    number: int

    def __init__(
        self,
        key: str,
        all_tokens: Iterable[str],
        worker: bool,
        all_holds: tuple[SharedUnit, ...] = (),
    ) -> None:
        self.key, self.all_tokens, self.worker = key, all_tokens, worker
        #: Its holds, and those of them whose token has a limit.
        self.all_holds, self.holds = all_holds, all_holds
        #: Its tokens that have a limit, each once.
        self.tokens: tuple[str, ...] = ()
        self.examined = 0
        #: The first token that it lacked at its last examination.
        self.blocked_by: str | None = None


class Units:
    """The units of tokens that holds have taken, keep or reserve; by token.

    ``kept`` are holds that never give their unit back. ``shut`` are tokens of which no member that
    did not begin takes a unit, and the action that is the cause.
    """

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.kept: defaultdict[str, list[SharedUnit]] = defaultdict(list)
        self.shut: dict[str, str] = {}
        self._reserved: defaultdict[str, set[SharedUnit]] = defaultdict(set)

    def take(self, hold: SharedUnit) -> None:
        """Note that a member has a unit."""
        hold.taken = True
        self._reserved[hold.token].discard(hold)
        self.taken[hold.token] += 1

    def give_back(self, hold: SharedUnit) -> bool:
        """Note that a member has no unit any more; return whether it had one.

        If it began in an earlier run, a unit is reserved for it.
        """
        was_taken, hold.taken = hold.taken, False
        self.taken[hold.token] -= was_taken
        if hold.earlier:
            self.reserve(hold)
        else:
            self._reserved[hold.token].discard(hold)
        return was_taken

    def reserve(self, hold: SharedUnit) -> None:
        """Reserve a unit for a member that began in an earlier run.

        It takes it with its next action, as all do, so that units are never taken in another order.
        """
        hold.earlier = True
        self._reserved[hold.token].add(hold)

    def lend(self) -> list[str]:
        """Drop all that is reserved; return the tokens of which something was."""
        tokens = [token for token, holds in self._reserved.items() if holds]
        for token in tokens:
            for hold in self._reserved.pop(token):
                hold.earlier = False
        return tokens

    def free(self, hold: SharedUnit, number: int) -> int:
        """Return how many of ``number`` free units a member may take."""
        reserved = self._reserved.get(hold.token, ())
        if hold in reserved:
            return number
        return 0 if hold.token in self.shut else number - len(reserved)

    def keeper(self, hold: SharedUnit, limit: float) -> str | None:
        """Return the action because of which a member never gets a unit; None if it may."""
        if hold.taken:
            return None
        if hold.token in self.shut:
            return self.shut[hold.token]
        kept = self.kept.get(hold.token, [])
        return (kept[0].cause or "") if len(kept) >= limit else None


#: The queue of actions without a token that names one.
DEFAULT_QUEUE = "default"


class QueueLimits(NamedTuple):
    """A token for each action that runs at a worker, and the limits of these tokens.

    ``unserved`` are those queues of the actions that no worker serves.
    """

    tokens: Mapping[str, str] = {}
    limits: Mapping[str, int] = {}
    unserved: Collection[str] = ()


def queue_of(action: Action, route: Sequence[str]) -> str:
    """Return the queue of an action: the first of its tokens of a kind in ``route`` names it.

    >>> a = Action(uuid="a", action_type="nop", tokens=("type:nop", "region:b", "node:n1"))
    >>> queue_of(a, ("node", "region")), queue_of(a, ("region",)), queue_of(a, ())
    ('n1', 'b', 'default')
    """
    for kind in route:
        for token in action.tokens:
            of_kind, _, name = token.partition(":")
            if of_kind == kind and name:
                return name
    return DEFAULT_QUEUE


def queue_limits(
    actions: Sequence[Action],
    route: Sequence[str],
    workerless: Collection[str],
    served: Mapping[str, Served],
) -> QueueLimits:
    """Return a token for the queue of each action, limited to the number of places of its workers.

    >>> a, b = (Action(uuid=u, action_type="nop", tokens=(f"region:{u}",)) for u in "ab")
    >>> queue_limits([a, b], ["region"], (), {"a": Served(workers=2, places=8)})
    ... # doctest: +NORMALIZE_WHITESPACE
    QueueLimits(tokens={'a': 'places of queue a', 'b': 'places of queue b'},
                limits={'places of queue a': 8}, unserved={'b'})
    """
    queues = {
        a.uuid: queue_of(a, route)
        for a in actions
        if a.uuid not in workerless and a.action_type != JOIN
    }
    asked = set(queues.values())
    return QueueLimits(
        {uuid: _token(queue) for uuid, queue in queues.items()},
        {_token(queue): max(1, served[queue].places) for queue in asked & served.keys()},
        asked - served.keys(),
    )


def _token(queue: str) -> str:
    return f"places of queue {queue}"
