# SPDX-License-Identifier: Apache-2.0
"""Tries every interleaving of a few actors on the real store, and checks what must always hold.

An actor is a function that calls a store. It is run anew for each of its steps: the calls that it
made before return what they returned then, the next one is made on the store, and the one after
that suspends it. So an actor is a process that may be frozen before any of its calls, for as long
as others have something to do. The store is a database in memory, which is copied before each step.
Two ways that lead to the same database and the same answers are one, and are followed once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, NamedTuple

from temporary_store import TemporaryStore, empty_record

from applier.errors import PlanConflict
from applier.storage.schema import TABLES
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan

START = datetime(2026, 11, 22, tzinfo=UTC)
TIMES = {"created_at", "updated_at", "claimed_at", "started_at", "ended_at"}
#: What of the database tells two states apart: all but times by which nobody decides anything.
SELECTS = [
    "SELECT {} FROM {}".format(
        ", ".join(f't."{c}"' for c in columns if c not in TIMES), f"{name} AS t"
    )
    for name, columns in TABLES.items()
]
#: Calls that are part of the step of the next call, because nothing is decided by them alone.
TOGETHER = frozenset({"list_plans"})
#: How an actor may end besides normally: it is told that another was faster.
NORMAL = (PlanConflict, InvalidTransition)


class Suspended(BaseException):
    """An actor wants to make a call, and it is not its turn."""


class Violation(AssertionError):
    """Something does not hold; the message has the calls that led there."""


class Answer(NamedTuple):
    """What a call returned or raised, and the time at which it was made."""

    value: Any
    error: Exception | None
    time: float


class Scene:
    """What an actor is given: the store, the time, and its own clock, which may be wrong."""

    current: Scene

    def __init__(self, actor: Actor, store: SqlStore | None, time: float) -> None:
        self.actor, self._store, self._at = actor, store, time
        self._before, self.time = list(actor.answers), 0.0
        self.made: tuple[str, Any, Answer] | None = None
        self.answers: list[Answer] = []
        self.wanted: str | None = None
        Scene.current = self

    def now(self) -> datetime:
        """Return the time by the clock of this actor, which is never the same between two calls."""
        calls = len(self.actor.answers) - len(self._before) + len(self.answers)
        since = timedelta(seconds=self.time + self.actor.clock_is_ahead_s, microseconds=calls)
        return START + since

    def __getattr__(self, method: str) -> Any:
        return lambda *given, **named: self._call(method, given, named)

    def _call(self, method: str, given: Any, named: Any) -> Any:
        if self._before:
            answer = self._before.pop(0)
        elif self._store is not None and self.made is None:
            answer = self._make(method, given, named)
            self.answers.append(answer)
            if method not in TOGETHER:
                self.made = (method, given, answer)
        else:
            self.wanted = method
            raise Suspended
        self.time = answer.time
        if answer.error is not None:
            raise answer.error
        return answer.value

    def _make(self, method: str, given: Any, named: Any) -> Answer:
        if method == "sleep":
            return Answer(None, None, self._at)
        try:
            return Answer(getattr(self._store, method)(*given, **named), None, self._at)
        except NORMAL as error:
            return Answer(None, error, self._at)


@dataclass(frozen=True)
class Actor:
    """An actor with the answers that it got; ``wanted`` is its next call, None at its end."""

    name: str
    run: Callable[[Any], Any]
    clock_is_ahead_s: float = 0.0
    #: Whether it decides by the times of all its calls, and not only by that of the last.
    times_matter: bool = False
    #: Whether it may end because another was faster.
    may_lose: bool = True
    answers: tuple[Answer, ...] = ()
    wanted: str | None = "first"
    key: int = 0

    def stepped(self, store: SqlStore, time: float) -> tuple[Actor, tuple[str, Any, Answer] | None]:
        """Make the next call; return the actor after it, and the call."""
        scene = Scene(self, store, time)
        try:
            self.run(scene)
        except Suspended:
            pass
        except NORMAL as error:
            if not self.may_lose:
                raise Violation(f"{self.name} ended by {type(error).__name__}: {error}") from error
        except Exception as error:
            raise Violation(f"{self.name} ended by {type(error).__name__}: {error}") from error
        if scene.made is None:
            return replace(self, wanted=None), None
        told = [a if self.times_matter else a[:2] for a in scene.answers]
        key = hash((self.key, repr(told)))
        answers = (*self.answers, *scene.answers)
        after = replace(self, answers=answers, wanted=scene.wanted, key=key)
        return after, scene.made

    def can_step(self, time: float) -> bool:
        """Return whether it has a call to make; a sleep ends when time has passed."""
        if self.wanted == "sleep" and self.answers:
            return time > self.answers[-1].time
        return self.wanted is not None


class World(NamedTuple):
    """A state of everything. ``heard`` is when each claim was last heard of, ``way`` led here."""

    record: bytes
    actors: tuple[Actor, ...]
    time: float
    heard: tuple[tuple[str, float, float], ...]
    way: tuple[str, ...]


class Explorer:
    """Explores all interleavings of up to ``depth`` steps, until time is ``last_s``.

    ``has_a_way_on`` is called with a store in each state of the database; it raises AssertionError
    if the plan cannot be brought to its end. ``silence`` is how many of its intervals a claimant
    must have been silent before anybody may end its claim.
    """

    def __init__(
        self,
        plan: ActionPlan,
        actors: Sequence[Actor],
        *,
        last_s: float,
        depth: float,
        silence: int,
        has_a_way_on: Callable[[SqlStore], None],
    ) -> None:
        self._plan, self._actors, self._last_s = plan, tuple(actors), last_s
        self._silence, self._has_a_way_on, self._depth = silence, has_a_way_on, depth
        self._kept: dict[bytes, bytes] = {}
        self._seen: set[int] = set()
        self._records: set[int] = set()

    def explore(self) -> int:
        """Return the number of states; raises Violation."""
        with closing(TemporaryStore()) as store:
            with store._database.read() as transaction:
                self._driver = transaction._connection.driver
            self._store = store
            # A database in memory has no write-ahead log.
            empty = bytearray(empty_record())
            empty[18:20] = b"\1\1"
            self._driver.deserialize(bytes(empty))
            store.save_plan(self._plan)
            ahead = deque([World(self._driver.serialize(), self._actors, 0.0, (), ())])
            # With a depth, the shortest ways come first. Without one, each is followed to its end,
            # which finds most violations sooner.
            turn = ahead.pop if self._depth == inf else ahead.popleft
            while ahead and len(ahead[0].way) < self._depth:
                ahead += self._after(turn())
        return len(self._seen)

    def _after(self, world: World) -> list[World]:
        found = []
        if world.time < self._last_s:
            later = world._replace(time=world.time + 1, way=(*world.way, "a second passes"))
            self._add(later, self._dumped(world.record), found)
        for number, actor in enumerate(world.actors):
            if actor.can_step(world.time):
                self._step(world, number, found)
        return found

    def _dumped(self, record: bytes) -> int:
        self._driver.deserialize(record)
        return self._dump()

    def _dump(self) -> int:
        """Return a hash of the database, without times by which nobody decides anything."""
        rows = [self._driver.execute(select).fetchall() for select in SELECTS]
        return hash(repr(rows))

    def _step(self, world: World, number: int, found: list[World]) -> None:
        actor = world.actors[number]
        self._driver.deserialize(world.record)
        self._store._database._unsure.clear()
        count = iter(range(100))
        self._store._database.new_id = lambda: f"{actor.name}-{len(actor.answers)}-{next(count)}"
        before = self._head()
        try:
            after, made = actor.stepped(self._store, world.time)
            way = (*world.way, f"{actor.name}: {describe(made)}")
            heard = self._checked(world, actor, made, before, self._head())
        except AssertionError as error:
            steps = "\n  ".join((*world.way, f"{actor.name}: {actor.wanted}"))
            raise Violation(f"{error}\nafter:\n  {steps}") from error
        actors = (*world.actors[:number], after, *world.actors[number + 1 :])
        dump = self._dump()
        record = self._driver.serialize()
        new = World(self._kept.setdefault(record, record), actors, world.time, heard, way)
        self._add(new, dump, found)

    def _head(self) -> tuple[str | None, str, float]:
        select = "SELECT claim, state, heartbeat_interval_s FROM actionplan_plan"
        head: tuple[str | None, str, float] = self._driver.execute(select).fetchone()
        return head

    def _checked(self, world: World, actor: Actor, made: Any, before: Any, after: Any) -> Any:
        """Check a call by what it did to the claim; return when each claim was last heard of."""
        heard = {claim: (time, interval_s) for claim, time, interval_s in world.heard}
        if made is None or made[2].error is not None:
            return world.heard
        method, given, answer = made
        if method == "claim_plan":
            assert before[:2] == (None, "PENDING"), f"a plan was claimed that was {before}"
            assert after[0] == answer.value
            heard[answer.value] = (world.time, after[2])
        own = method in ("beat", "commit", "move_claimed", "reserve")
        if own:
            assert given[1] == before[0], f"{actor.name} wrote under a claim that was lost"
            heard[given[1]] = (world.time, heard[given[1]][1])
        if before[0] is not None and after[0] != before[0] and not own:
            time, interval_s = heard[before[0]]
            silent_s = world.time - time
            assert silent_s >= self._silence * interval_s, (
                f"{actor.name} ended the claim of one that was heard of {silent_s} s ago, "
                f"whose interval is {interval_s} s"
            )
        if method == "move_claimed":
            lost = self._lost_requests(after[1])
            assert not lost, f"{actor.name} left the plan {after[1]}, and a request to {lost[0][0]}"
        return tuple((claim, *known) for claim, known in sorted(heard.items()))

    def _lost_requests(self, state: str) -> list[tuple[str]]:
        """List what was requested under the last claim, and would have led to another state."""
        verbs = {"PENDING": ("pause", "cancel"), "PAUSED": ("cancel",)}.get(state, ())
        made = self._driver.execute(
            "SELECT verb FROM actionplan_request r, actionplan_plan "
            "WHERE r.number > requests_before"
        ).fetchall()
        return [row for row in made if row[0] in verbs]

    def _add(self, world: World, dump: int, found: list[World]) -> None:
        actors = tuple((a.key, a.wanted, a.answers[-1].time) for a in world.actors if a.answers)
        key = hash((dump, world.time, world.heard, actors))
        if key in self._seen:
            return
        self._seen.add(key)
        if dump not in self._records:
            self._records.add(dump)
            self._driver.deserialize(world.record)
            try:
                self._has_a_way_on(self._store)
            except Exception as error:
                steps = "\n  ".join(world.way)
                raise Violation(f"no way on: {error}\nafter:\n  {steps}") from error
        found.append(world)


def describe(made: tuple[str, Any, Answer] | None) -> str:
    """Return a line about a call."""
    if made is None:
        return "ends"
    method, _, answer = made
    return f"{method}" + (f" is refused: {answer.error}" if answer.error else "")
