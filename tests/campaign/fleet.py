# SPDX-License-Identifier: Apache-2.0
"""Troubles one plan over many machines, while real commands run, and judges what these did.

``python tests/campaign/fleet.py [--record postgresql|mariadb] [--broker rabbitmq|redis]
[--seconds S] [--trouble NAME,...] [--fault NAME] [--away S]``. Two appliers and three workers, each
on a machine of its own, share a record and a broker that the campaign has started. All of them are
killed and frozen, links between them are cut, their clocks are apart. Nothing may begin twice, out
of order or beside too many others; each action ends, as it happened in the world or UNKNOWN; no job
is left. With ``--away``, the record, the broker and the links are away for so many seconds, one
after another, and nothing may be UNKNOWN. A planted fault has to be found.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import namespaces
import world
from fleet_site import AT_ONCE, FleetSite
from fleet_troubles import CABLES, CLOCKS, TROUBLES
from own_servers import BROKERS, RECORDS, MissingServer, own_server

from applier.errors import PlanConflict, StoreError
from applier.storage.schema_version import upgrade
from applier.storage.sql_store import SqlStore
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ENDED_PLAN, ActionState, PlanState

Answer = TypeVar("Answer")

#: How many seconds a plan may take beyond its troubles, and how long it is troubled.
PATIENCE_S, TROUBLED_S = 240.0, 25.0
#: How many times as long a planted fault is looked for.
LONGER = 10
#: One of so many commands is long: it outlives what is in trouble.
RARE = 3
#: The longest pause between two troubles, in seconds.
PAUSE_S = 4.0


class Campaign:
    """Plans, one after another, each troubled until it ends."""

    def __init__(self, site: FleetSite, store: SqlStore, given: argparse.Namespace) -> None:
        self._site, self._store, self._given = site, store, given
        self._names = [name for name in given.trouble.split(",") if name != CLOCKS]
        # A planted fault ends the campaign: a slow machine may take longer to come to it.
        seconds = given.seconds * (LONGER if given.fault != "none" else 1)
        self._end = time.monotonic() + seconds
        self._away = list(AWAY) if given.away else []
        self.done: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.found: list[str] = []
        self.plans = 0

    def run(self) -> None:
        """Trouble plans until the time is up; the last plan may come to its end."""
        while not self.found and (
            self.plans == 0 or self._away or (not self._given.away and self._is_time_left())
        ):
            self.plans += 1
            self._one_plan()

    def _is_time_left(self) -> bool:
        return time.monotonic() < self._end

    def _one_plan(self) -> None:
        file = self._site.folder / f"world-{self.plans}"
        seed = self._given.seed * 1000 + self.plans
        size, longest = self._given.actions, self._given.longest
        plan = world.plan_of(seed, size, file, longest, rare=RARE, in_process=self._given.work)
        while self._site.troubled:
            time.sleep(0.1)
        self._store.save_plan(replace(plan, state=PlanState.PENDING))
        found = self._troubled(plan.uuid, file)
        # A command may outlive them all.
        deadline = time.monotonic() + 2 * self._given.longest
        while time.monotonic() < deadline and _some_run(file):
            time.sleep(0.2)
        events = world.read(file)
        wrong = [
            *world.wrong_in(plan, events, AT_ONCE),
            *world.wrong_at_the_end(found, events, doubts=not self._given.away),
            *self._wrong_on_record(found),
        ]
        self.states.update(str(a.state) for a in found.actions if a.action_type != JOIN)
        self.found += [f"plan {seed}: {text}" for text in wrong]
        for action in found.actions:
            if action.state is ActionState.UNKNOWN:
                print(f"plan {seed}: {action.uuid} is UNKNOWN: {action.status_message}", flush=True)

    def _troubled(self, uuid: str, file: Path) -> ActionPlan:
        """Trouble the fleet until the plan has ended, or takes too long."""
        patient_until = time.monotonic() + PATIENCE_S
        while not world.read(file) and time.monotonic() < patient_until:
            time.sleep(0.1)
        began = time.monotonic()
        quiet_from = began + TROUBLED_S + 10 * self._given.longest
        while True:
            found = self._read(lambda: self._store.load_plan(uuid))
            now = time.monotonic()
            if found.state in ENDED_PLAN or now > quiet_from + PATIENCE_S:
                return found
            if found.state is PlanState.PAUSED:
                self._resume(uuid)
            if self._away and not self._site.troubled:
                name = self._away.pop(0)
                AWAY[name](self._site, self._given.away)
                self.done[name] += 1
            elif now < quiet_from and self._names and not self._given.away:
                name = self._site.chance.choice(self._names)
                self.done[name] += {**TROUBLES, **CABLES}[name](self._site)
            time.sleep(self._site.chance.uniform(0.2, PAUSE_S))

    def _resume(self, uuid: str) -> None:
        """Resume a plan that was paused because an action was interrupted again and again."""
        with suppress(PlanConflict):  # the answer to the first try was lost
            self._read(lambda: self._store.resume_plan(uuid, [], now=datetime.now(UTC)))

    def _wrong_on_record(self, found: ActionPlan) -> Iterator[str]:
        """Say which attempts and jobs of an ended plan are not as they must be."""
        jobs = self._read(lambda: self._store.jobs_of(found.uuid))
        for job in jobs:
            yield f"the job of {job.key.action} is left: {job.state}"
        for action in found.actions:
            attempts = self._read(partial(self._store.attempts, found.uuid, action.uuid))
            well = [a for a in attempts if a.outcome == "changed"]
            if len(well) > 1 or (well and action.state is not ActionState.SUCCEEDED):
                yield f"{action.uuid} has {len(well)} results of success on record"

    def _read(self, what: Callable[[], Answer]) -> Answer:
        """Ask the record until it answers: the site heals it meanwhile."""
        while True:
            try:
                return what()
            except StoreError:
                time.sleep(0.2)

    def tell(self) -> None:
        """Print what was done and what was found; the last line counts."""
        print(*self.found[:20], sep="\n", end="\n" if self.found else "")
        for numbers in (self.done, self.states):
            print(", ".join(f"{name}: {number}" for name, number in sorted(numbers.items())))
        print(f"{self.plans} passed, 0 failed" if not self.found else "0 passed, 1 failed")


def _server_away(kind: str, site: FleetSite, seconds: float) -> None:
    site.servers[kind].kill()
    site.trouble(kind, seconds, site.servers[kind].start)


def _links_away(kind: str, site: FleetSite, seconds: float) -> None:
    for machine in site.machines:
        machine.links[kind].hang()
        site.trouble(f"{machine.name} to {kind}", seconds, machine.links[kind].come_back)


#: What is away with ``--away``, one after another.
AWAY = {
    "record away": partial(_server_away, "record"),
    "broker away": partial(_server_away, "broker"),
    "links to the record away": partial(_links_away, "record"),
    "links to the broker away": partial(_links_away, "broker"),
}


def _some_run(file: Path) -> bool:
    words = Counter(word for word, _ in world.read(file))
    return words["begin"] > words["end"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", choices=RECORDS, default="postgresql")
    parser.add_argument("--broker", choices=BROKERS, default="rabbitmq")
    parser.add_argument("--seconds", type=float, default=60.0, help="no new plan after these")
    parser.add_argument("--trouble", default=",".join((*TROUBLES, CLOCKS)), help="which, by name")
    parser.add_argument("--longest", type=float, default=6.0, help="seconds of the longest command")
    parser.add_argument("--actions", type=int, default=40, help="how many a plan has")
    parser.add_argument("--work", type=float, default=0.1, help="a part that are no commands")
    parser.add_argument("--lease", type=float, default=6.0, help="seconds of a lease")
    parser.add_argument("--away", type=float, default=0.0, help="seconds; instead of --trouble")
    parser.add_argument("--namespaces", action="store_true", help="a network for each machine")
    parser.add_argument("--fault", default="none", help="requeue, or twice; has to be found")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other plans")
    parser.add_argument("--keep", type=Path, help="a new folder for logs, to be looked at")
    given = parser.parse_args(arguments)
    known = (*TROUBLES, *CABLES, CLOCKS)
    if unknown := set(given.trouble.split(",")) - set(known):
        parser.error(f"no trouble {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        if given.namespaces:
            namespaces.go_inside()
        with ExitStack() as scratch:
            return _ran(given, scratch)
    except namespaces.Missing as reason:
        print(f"Skipped, because no network namespaces can be made: {reason}")
        return 0
    except MissingServer as reason:
        print(f"No server could be made: {reason}")
        return 1 if os.environ.get("CI") else 0


def _ran(given: argparse.Namespace, scratch: ExitStack) -> int:
    folder = given.keep or Path(scratch.enter_context(tempfile.TemporaryDirectory()))
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # servers run as users of their own
    record = scratch.enter_context(own_server(RECORDS[given.record], folder / "record"))
    broker = scratch.enter_context(own_server(BROKERS[given.broker], folder / "broker"))
    upgrade(record.url)
    chance = Random(given.seed)
    how = {"lease_s": given.lease, "fault": given.fault, "apart": given.namespaces}
    site = FleetSite(record, broker, folder, chance, **how)
    if CLOCKS in given.trouble.split(",") and not given.away:
        site.clocks = ("", "+90s", "-90s", "+1d")
    with closing(SqlStore(record.url)) as store:
        campaign = Campaign(site, store, given)
        site.begin()
        try:
            campaign.run()
        finally:
            site.end()
    campaign.found += site.wrong()
    campaign.tell()
    if given.fault != "none":
        return 0 if campaign.found else 1
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
