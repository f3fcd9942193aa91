# SPDX-License-Identifier: Apache-2.0
"""Kills processes that run plans, and checks after each kill what they did against the record.

``python tests/campaign/kill.py [--rounds N] [--seconds S] [--store URL] [--planted] [--actions N]
[--certain]``. A round is a kill: at a chosen point or at a random moment. The plan is resumed and
killed again until it ends. With ``--certain`` no action fails and each can say whether its work is
done, so that all is done once whenever the kill comes; the moments are random then.
``--planted`` runs plans with a fault and fails if it is not found. Without ``--store`` the record
is a SQLite file; with it, a scratch database on that server, which is dropped at the end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from victim import POINTS, WORKERS, Doubtful, Orders, fate_of, plan_of, read_effects

from applier.errors import StoreError
from applier.run.resume import resume
from applier.scheduling.gates import Gates
from applier.scheduling.verdict import ActionEnd
from applier.storage.schema_version import upgrade
from applier.storage.sql_store import SqlStore
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ENDED_PLAN, OPEN, WELL, ActionState, Outcome, PlanState

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from random_plans import FAILURES, expected_ends

VICTIM = Path(__file__).with_name("victim.py")
#: A child that takes longer than this hangs; beside other campaigns, all are slow.
PATIENCE_S = 300.0
RANDOM, TO_THE_END, ENDED = "at a random moment", "to the end", "what a plan ended with"
#: A random moment is within so many seconds after the plan begins.
WITHIN_S = 0.5
#: How many times as long a planted fault is looked for.
LONGER = 10
#: So many kills, then the plan may run to its end.
KILLS_PER_PLAN = 12


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class Trial:
    """One plan that is killed again and again, and what is known of it."""

    def __init__(self, url: str, folder: Path, seed: int, size: int, certain: bool) -> None:
        plan = plan_of(seed, size, certain)
        self.plan = replace(plan, uuid=f"plan-{seed}-{os.getpid()}")
        self.effects = str(folder / f"effects-{seed}")
        self.actions = {action.uuid: action for action in self.plan.actions}
        self.url, self.seed, self.certain = url, seed, certain
        self.fate = fate_of(seed, certain)
        #: Those that ran when their process was killed.
        self.cut_off: set[str] = set()
        #: Those that a resume let run again: what comes after them may have run before that.
        self.reset: set[str] = set()
        with closing(SqlStore(url)) as store:
            store.save_plan(self.plan)

    def orders(self, **where: object) -> Orders:
        """Return the orders for the next child."""
        return Orders(
            store=self.url,
            plan=self.plan.uuid,
            effects=self.effects,
            seed=self.seed,
            certain=self.certain,
            **where,  # type: ignore[arg-type]
        )

    def go_on(self) -> ActionPlan:
        """Return the plan as the dead child left it; make it PENDING again if it is not over."""
        with closing(SqlStore(self.url)) as store:
            found = store.load_plan(self.plan.uuid)
            self.cut_off |= {a.uuid for a in found.actions if a.state is ActionState.ONGOING}
            if found.state is PlanState.ONGOING:
                self.reset |= {*resume(store, found.uuid, clock=now, who="campaign")}
        if Path(self.effects).exists():
            with open(self.effects, "a") as file:
                file.write("killed - -\n")
        return found


def check_effects(trial: Trial, found: ActionPlan) -> Iterator[str]:
    """Say what the effects show that the record does not bear out."""
    lines = read_effects(trial.effects)
    kept = {action.uuid: action for action in found.actions}
    begun = Counter(uuid for word, uuid, _ in lines if word == "begin")
    for uuid, number in begun.items():
        action = kept[uuid]
        if number > action.attempts:
            yield f"{uuid} began {number} times, of which {action.attempts} starts are durable"
        for before in action.before():
            if kept[before].state in OPEN and before not in trial.reset:
                yield f"{uuid} began before the end of {before} was durable"
        for group in [*((need,) for need in action.needs), *action.needs_any]:
            if not any(kept[n].state in WELL or n in trial.reset for n in group):
                yield f"{uuid} began, but of {group} none ended well"
    yield from check_once(trial, lines)
    yield from check_order(trial, lines)


def check_once(trial: Trial, lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Say what was done twice."""
    done = Counter(u for word, u, how in lines if word == "done" and how not in FAILURES)
    for uuid, number in done.items():
        again_allowed = trial.actions[uuid].action_type == Doubtful.TYPE and uuid in trial.cut_off
        if number > 1 and not again_allowed:
            yield f"{uuid} was done {number} times"


def check_order(trial: Trial, lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Say where an action began too early, or beside too many others."""
    last = {uuid: place for place, (word, uuid, _) in enumerate(lines) if word == "done"}
    running: set[str] = set()
    limit = Gates(trial.plan.limits, WORKERS).limit
    for place, (word, uuid, _) in enumerate(lines):
        if word == "killed":
            running.clear()
        elif word == "done":
            running.discard(uuid)
        else:
            running.add(uuid)
            for before in {*trial.actions[uuid].before()} - trial.reset:
                if last.get(before, -1) > place:
                    yield f"{uuid} began before {before} was done"
            held = Counter(t for u in running for t in trial.actions[u].tokens)
            for token in trial.actions[uuid].tokens:
                if held[token] > (limit(token) or held[token]):
                    yield f"{token} was held {held[token]} times when {uuid} began"
            if len(running) > WORKERS:
                yield f"{len(running)} ran at once when {uuid} began"


def check_end(trial: Trial, found: ActionPlan) -> Iterator[str]:
    """Say what is not as it should be in a plan that has ended."""
    lines = read_effects(trial.effects)
    how = {uuid: outcome for word, uuid, outcome in lines if word == "done"}
    ends = {a.uuid: ActionEnd(a.state, a.outcome) for a in found.actions}

    def fate_with_crashes(uuid: str) -> ActionEnd:
        end = trial.fate(uuid)
        changed = uuid in trial.cut_off and ends[uuid].outcome is Outcome.CHANGED
        return replace_outcome(end) if changed and end.outcome is Outcome.OK else end

    for uuid, end in expected_ends(trial.plan, fate_with_crashes).items():
        if ends[uuid] != end:
            yield f"{uuid} ended {ends[uuid]}, and should have ended {end}"
    well = all(end.state in WELL for end in ends.values())
    if found.state is not (PlanState.SUCCEEDED if well else PlanState.FAILED):
        yield f"the plan ended {found.state}"
    yield from check_told(trial, found.actions, how)


def replace_outcome(end: ActionEnd) -> ActionEnd:
    """Return the end of an action that was cut off and turned out to be done."""
    return ActionEnd(end.state, Outcome.CHANGED)


def check_told(trial: Trial, actions: Sequence[Action], how: dict[str, str]) -> Iterator[str]:
    """Say where the record tells another end than the effects do."""
    for action in actions:
        uuid, told = action.uuid, how.get(action.uuid)
        ran = action.state in (ActionState.SUCCEEDED, ActionState.FAILED)
        if action.action_type == JOIN:
            continue
        if ran != (told is not None):
            yield f"{uuid} is {action.state}, and its effects say {told}"
        may_differ = uuid in trial.cut_off and (told, action.outcome) == ("ok", "changed")
        if ran and told != action.outcome and not may_differ:
            yield f"{uuid} ended {action.outcome}, and its effects say {told}"


class Campaign:
    """Rounds of kills, as many as are wanted or the time allows."""

    def __init__(self, url: str, folder: Path, given: argparse.Namespace) -> None:
        self._url, self._folder, self._planted = url, folder, given.planted
        self._size, self._certain = given.actions, given.certain
        # A planted fault ends the campaign: a slow machine may take longer to come to it.
        seconds = given.seconds * (LONGER if given.planted else 1)
        self._rounds, self._end = given.rounds, time.monotonic() + seconds
        self._chance = random.Random(4)
        #: Where to kill next; a point that a plan did not come to is the one after next.
        self._points = deque([RANDOM] if given.certain else [*POINTS, *[RANDOM] * 6])
        self.kills = self.began = 0
        self.passed: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.found: list[str] = []

    @property
    def over(self) -> bool:
        """True once there were enough rounds, or the time is up, or the planted fault is found."""
        late = time.monotonic() > self._end
        enough = self._rounds and self.kills >= self._rounds
        return bool(enough) or late or (self._planted and bool(self.found))

    def run(self) -> None:
        """Kill one plan after another."""
        for seed in itertools.count(1):
            if self.over:
                return
            trial = Trial(self._url, self._folder, seed, self._size, self._certain)
            self._kill_until_it_ends(trial)

    def _kill_until_it_ends(self, trial: Trial) -> None:
        for number in itertools.count(1):
            # Enough is enough: what is left of the plan must come to its end.
            last = self.over or number > KILLS_PER_PLAN
            point = TO_THE_END if last else self._points[0]
            killed, trouble = self._child(trial, point)
            if killed:
                self.kills += 1
                self._points.rotate(-1)
            elif not last:
                # A plan that has just begun has nothing to verify: another death comes first.
                self._points.insert(1, self._points.popleft())
            found = trial.go_on()
            problems = [*trouble, *check_effects(trial, found)]
            self._note(trial, point if killed else TO_THE_END, problems)
            if found.state in ENDED_PLAN:
                self.began += sum(line[0] == "begin" for line in read_effects(trial.effects))
                self._note(trial, ENDED, [*check_end(trial, found)])
            if found.state in ENDED_PLAN or trouble or (self._planted and self.found):
                return

    def _child(self, trial: Trial, point: str) -> tuple[bool, list[str]]:
        """Run a child until it dies or has ended; says whether it was killed, and what is wrong."""
        where: dict[str, object] = {"planted": self._planted}
        if point in POINTS:
            where |= {"point": point, "number": self._chance.randint(1, POINTS[point])}
        command = [sys.executable, str(VICTIM), json.dumps(asdict(trial.orders(**where)))]
        with (
            tempfile.TemporaryFile("w+", dir=self._folder) as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as child,
        ):
            assert child.stdout is not None
            child.stdout.readline()
            try:
                child.wait(self._chance.uniform(0, WITHIN_S) if point == RANDOM else PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                if point != RANDOM:
                    return True, ["the child hangs"]
            log.seek(0)
            told = log.read()[-2000:]
        if child.returncode in (0, -signal.SIGKILL):
            return child.returncode != 0, []
        return False, [f"the child ended with {child.returncode}: {told}"]

    def _note(self, trial: Trial, point: str, problems: Sequence[str]) -> None:
        (self.failed if problems else self.passed)[point] += 1
        self.found += [f"plan {trial.seed}, {point}: {problem}" for problem in problems]

    def tell(self) -> None:
        """Print the table and what was found; the last line counts."""
        print(f"{'killed':28} {'passed':>7} {'failed':>7}")
        for point in (*POINTS, RANDOM, TO_THE_END, ENDED):
            print(f"{point:28} {self.passed[point]:7} {self.failed[point]:7}")
        print(*self.found[:10], sep="\n", end="\n" if self.found else "")
        wanted = self._rounds or "as many as the time allows"
        print(f"{self.kills} kills of {wanted}, {self.began} actions begun")
        print(f"{self.passed.total()} passed, {self.failed.total()} failed")

    def well(self) -> bool:
        """Return whether the campaign found what it should: nothing, or the planted fault."""
        if self._planted:
            return bool(self.found)
        return not self.found and self.kills >= max(1, self._rounds)


@contextmanager
def record(server: str | None, folder: Path) -> Iterator[str]:
    """Return the URL of an empty record; raises StoreError if the server does not answer."""
    if server is None:
        yield f"sqlite:///{folder}/plans.db"
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from scratch_database import scratch_database

    with scratch_database(server) as url:
        upgrade(url)
        yield url


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=60, help="how many kills; 0: as many as the time allows"
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="no new round after these")
    parser.add_argument("--store", help="URL of a database whose user may create others")
    parser.add_argument("--planted", action="store_true", help="with a fault that must be found")
    parser.add_argument("--actions", type=int, default=300, help="how many a plan has")
    parser.add_argument("--certain", action="store_true", help="all can say what they have done")
    given = parser.parse_args(arguments)
    with ExitStack() as scratch:
        folder = Path(scratch.enter_context(tempfile.TemporaryDirectory()))
        try:
            url = scratch.enter_context(record(given.store, folder))
        except StoreError as error:
            print(f"The record cannot be used: {error}")
            return 1 if os.environ.get("CI") else 0
        campaign = Campaign(url, folder, given)
        campaign.run()
        campaign.tell()
    return 0 if campaign.well() else 1


if __name__ == "__main__":
    sys.exit(main())
