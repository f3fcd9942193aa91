# SPDX-License-Identifier: Apache-2.0
"""The process that the campaign kills: runs one plan, whose actions write down what they do.

``python tests/campaign/victim.py '{"store": URL, "effects": FILE, "seed": 1, ...}'``; it kills
itself when it comes to ``point`` for the ``number``-th time, says ``ready`` before the plan begins,
and ends with 0 when the plan has ended.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from applier.contracts import ActionPlugin, Claimant, Report, StopSignal, Verified
from applier.engines.environment import ActionEnvironment
from applier.engines.linear import LinearEngine
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.run.runner import Runner
from applier.scheduling.failures import TypePolicy
from applier.storage.sql_store import SqlStore
from applier.storage.transactions import Connection
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from random_plans import FAILURES, Fate, carry_out, random_fate, random_plan

WORKERS = 4
#: How long an action works, and how long a process that is about to die waits for work that
#: should not have begun.
WORK_S, LINGER_S = 0.005, 0.05
#: Commits by what they hold.
KINDS = ("claim", "start", "end", "end and start", "plan")
#: Where a process dies, and among how many times that it comes there the one is chosen.
POINTS = {
    **{f"{when} {kind}": 1 for when in ("before", "in", "after") for kind in KINDS},
    **{f"{when} end": 3 for when in ("before", "in", "after")},
    **{f"{when} end and start": 40 for when in ("before", "in", "after")},
    "start durable, no work yet": 40,
    "work done, no report yet": 40,
    "while verifying": 3,
}


def plan_of(seed: int, size: int, certain: bool) -> ActionPlan:
    """Return the plan of a seed; unless it is ``certain``, a quarter cannot be verified."""
    plan = random_plan(seed, size)
    doubtful = (not certain and number % 4 == 0 for number in itertools.count())
    return replace(plan, actions=tuple(map(_typed, plan.actions, doubtful)))


def _typed(action: Action, doubtful: bool) -> Action:
    if action.action_type == JOIN:
        return action
    name = Doubtful.TYPE if doubtful else Work.TYPE
    return replace(action, action_type=name, input_parameters={"uuid": action.uuid})


def fate_of(seed: int, certain: bool) -> Fate:
    """Say how each action of the plan ends, whenever it runs."""
    return random_fate(seed, failing=0.0 if certain else 0.02)


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a victim is told: which plan, where its effects go, and where it dies."""

    store: str
    plan: str
    effects: str
    seed: int
    point: str = ""
    number: int = 0
    certain: bool = False
    planted: bool = False


def read_effects(path: str) -> list[list[str]]:
    """Read what the actions wrote: ``begin UUID ATTEMPT`` and ``done UUID OUTCOME``, as words."""
    file = Path(path)
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


class Effects:
    """What the actions did, each line in one write, whatever the record says."""

    def __init__(self, path: str) -> None:
        lines = read_effects(path)
        self._begun = Counter(uuid for word, uuid, _ in lines if word == "begin")
        self._done = {u for word, u, how in lines if word == "done" and how not in FAILURES}
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        #: Set by each beginning.
        self.something_began = threading.Event()

    def begin(self, uuid: str) -> None:
        """Write that an attempt begins."""
        self._begun[uuid] += 1
        self._write(f"begin {uuid} {self._begun[uuid]}")
        self.something_began.set()

    def done(self, uuid: str, outcome: Outcome | None) -> None:
        """Write that the work is done, or could not be."""
        self._write(f"done {uuid} {outcome}")

    def is_done(self, uuid: str) -> bool:
        """Return whether the work was done before this process began."""
        return uuid in self._done

    def _write(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())
        os.fsync(self._file)


class Death:
    """Waits at one point, for the time that counts."""

    def __init__(self, orders: Orders, effects: Effects) -> None:
        self._orders, self._effects = orders, effects
        self._times = itertools.count(1)

    def at(self, point: str) -> None:
        """Die, if this is the point and the time."""
        if point != self._orders.point or next(self._times) != self._orders.number:
            return
        if point.startswith("before"):  # whoever works too early gets the chance to show it
            self._effects.something_began.wait(LINGER_S)
        os.kill(os.getpid(), signal.SIGKILL)


class Work(ActionPlugin):
    """Writes down that it begins and what it did; looks there when it is asked."""

    TYPE: ClassVar[str] = "work"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    effects: ClassVar[Effects]
    death: ClassVar[Death]
    fate: ClassVar[Fate]

    def execute(self, stop: StopSignal) -> Outcome:
        uuid = self.parameters["uuid"]
        self.death.at("start durable, no work yet")
        self.effects.begin(uuid)
        stop.wait(WORK_S)
        end = type(self).fate(uuid)
        self.effects.done(uuid, end.outcome)
        self.death.at("work done, no report yet")
        return carry_out(end)

    def verify(self) -> Verified:
        self.death.at("while verifying")
        done = self.effects.is_done(self.parameters["uuid"])
        return Verified.DONE if done else Verified.NOT_DONE


class Doubtful(Work):
    """Cannot say whether its work is done, but may do it again."""

    TYPE: ClassVar[str] = "doubtful"
    RERUN_SAFE: ClassVar[bool] = True

    def verify(self) -> Verified:
        self.death.at("while verifying")
        return Verified.IN_DOUBT


class Mortal:
    """A connection that calls ``commits`` right before it commits."""

    def __init__(self, connection: Any, commits: Callable[[], None]) -> None:
        self._connection, self._commits = connection, commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Commit, if it lives that long."""
        self._commits()
        self._connection.commit()


class MortalStore(SqlStore):
    """Dies before, in and after commits: in them means before the database itself commits."""

    def __init__(self, url: str, death: Death, effects: Effects) -> None:
        super().__init__(url)
        self._death, self._effects, self._kind = death, effects, ""
        connections = self._database._transactions
        begin = connections.begin

        def mortal(statement: str) -> Connection:
            connection = begin(statement)
            if isinstance(connection.driver, Mortal):  # it was kept since an earlier transaction
                return connection
            return connection._replace(driver=Mortal(connection.driver, self._commits))

        connections.begin = mortal  # type: ignore[method-assign]

    def claim_plan(self, *given: Any, **named: Any) -> str:
        with self._around("claim"):
            return super().claim_plan(*given, **named)

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], **named: Any) -> None:
        starts = sum(report.state is ActionState.ONGOING for report in reports)
        kind = "end" if not starts else "start" if starts == len(reports) else "end and start"
        with self._around(kind):
            super().commit(uuid, claim, reports, **named)

    def move_claimed(self, *given: Any, **named: Any) -> None:
        with self._around("plan"):
            super().move_claimed(*given, **named)

    @contextmanager
    def _around(self, kind: str) -> Iterator[None]:
        self._effects.something_began.clear()
        self._death.at(f"before {kind}")
        self._kind = kind
        yield
        self._kind = ""
        self._death.at(f"after {kind}")

    def _commits(self) -> None:
        self._death.at(f"in {self._kind}")


class Started:
    """What runs, for an engine that started it already."""

    def __init__(self, running: Any) -> None:
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    def start(self, uuid: str) -> None:
        """Do nothing."""


def plant() -> None:
    """Plant a fault: work begins before the commit of its start."""
    carry_out = LinearEngine._carry_out

    def too_early(engine: LinearEngine, turn: Any, running: Any, workers: Any) -> None:
        for uuid in turn.starts:
            running.start(uuid)
        carry_out(engine, turn, Started(running), workers)

    LinearEngine._carry_out = too_early


def run(orders: Orders) -> PlanState:
    """Run the plan to its end, or die."""
    effects = Effects(orders.effects)
    death = Death(orders, effects)
    Work.effects, Work.death, Work.fate = (
        effects,
        death,
        staticmethod(fate_of(orders.seed, orders.certain)),
    )
    if orders.planted:
        plant()
    with closing(MortalStore(orders.store, death, effects)) as store:
        environment = ActionEnvironment(
            plugins={plugin.TYPE: plugin for plugin in (Work, Doubtful)},
            cloud=lambda: None,
            policies={Work.TYPE: TypePolicy(retries=1, retry_delay_s=0.01)},
        )
        runner = Runner(
            store=store,
            engine=TaskFlowEngine(max_workers=WORKERS),
            environment=environment,
            claimant=Claimant(host=socket.gethostname(), pid=os.getpid(), user="campaign"),
        )
        print("ready", flush=True)
        return runner.run(orders.plan)


if __name__ == "__main__":
    run(Orders(**json.loads(sys.argv[1])))
