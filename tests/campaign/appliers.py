# SPDX-License-Identifier: Apache-2.0
"""Troubles appliers that share one record, while real commands run, and judges what these did.

``python tests/campaign/appliers.py [--seconds S] [--trouble NAME,...] [--store URL]``. Three
services and now and then an ``apply`` or ``resume`` run one plan after another. Meanwhile they are
killed, frozen and let go, started with clocks that are apart, paused and resumed. Commands outlive
them. Each plan must succeed, with each command run once, in order and within the limits; no action
may be in doubt, and nobody sets one by hand.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random

import outage
import versions
import world
from outage import Server
from processes import SERVICES, WORKERS, Site
from troubles import ANYWHERE, CLOCKS, OWN, SMALL, STATES, TROUBLES, VERSIONS

from applier.errors import StoreError
from applier.storage.schema_version import upgrade
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import ENDED_PLAN, PlanState

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from scratch_database import scratch_database  # noqa: E402

#: How many seconds a plan may take beyond what its commands take.
PATIENCE_S = 120.0
#: The states of a plan that an applier runs or will run.
LIVING = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING)


class Campaign:
    """Plans, one after another, each troubled until it ends."""

    def __init__(self, site: Site, given: argparse.Namespace, names: Sequence[str]) -> None:
        self._site, self._given, self._chance = site, given, site.chance
        self._names = [name for name in names if name not in STATES]
        self._end = time.monotonic() + given.seconds
        self.done: Counter[str] = Counter()
        self.found: list[str] = []
        self.plans = 0

    def run(self) -> None:
        """Trouble plans until the time is up; the last plan may come to its end."""
        while self.plans == 0 or (time.monotonic() < self._end and not self.found):
            self.plans += 1
            self._one_plan()

    def _one_plan(self) -> None:
        site = self._site
        file = site.folder / f"world-{self.plans}"
        seed = self._given.seed * 1000 + self.plans
        plan = world.plan_of(seed, self._given.actions, file, self._given.longest)
        site.plan = plan.uuid
        site.store.save_plan(plan)
        try:
            found = self._troubled()
            wrong = [*self._wrong_in_the_crowd()]
        finally:
            for applier in site.appliers:
                applier.end()
        # A command may outlive them all.
        deadline = time.monotonic() + 2 * self._given.longest
        while time.monotonic() < deadline and _some_run(file):
            time.sleep(0.2)
        events = world.read(file)
        wrong += [*world.wrong_in(plan, events, WORKERS), *world.wrong_at_the_end(found, events)]
        for applier in site.appliers:
            wrong += applier.wrong()
        wrong += site.left_behind()
        if found.state not in ENDED_PLAN:
            wrong[:0] = [f"{a.name} ended{a.how_it_ended()}" for a in site.appliers[-SERVICES:]]
        site.appliers.clear()
        self.found += [f"plan {seed}: {text}" for text in wrong]

    def _wrong_in_the_crowd(self) -> Iterator[str]:
        """Say which plans of a crowd did not run once and well, and were not refused with a word.

        Whatever is left of those whose applier was killed, a service carries out.
        """
        patience = time.monotonic() + PATIENCE_S
        for applier, plan, file in self._site.crowd:
            applier.wait(max(0.0, patience - time.monotonic()))
            while True:
                found = self._site.read(lambda store: store.load_plan(plan.uuid))  # noqa: B023
                if found.state not in LIVING or time.monotonic() > patience:
                    break
                self._site.keep_services()
                time.sleep(0.2)
            events = world.read(file)
            if found.state is PlanState.RECOMMENDED and not events:
                self.done["refused"] += 1
                if "locked" not in applier.told():
                    yield f"{applier.name} says not why nothing has run{applier.how_it_ended()}"
                continue
            yield from world.wrong_in(plan, events, WORKERS)
            yield from world.wrong_at_the_end(found, events)
        self._site.crowd.clear()

    def _troubled(self) -> ActionPlan:
        """Trouble whoever runs the plan until it has ended, or takes too long."""
        site, uuid = self._site, self._site.plan
        quiet_from = time.monotonic() + PATIENCE_S / 2 + 10 * self._given.longest
        # Whoever is killed each second may do nothing but begin; what is left runs undisturbed.
        deadline = quiet_from + PATIENCE_S / 2 + 10 * self._given.longest
        while True:
            site.keep_services()
            found = site.read(lambda store: store.load_plan(uuid))
            if found.state in ENDED_PLAN or time.monotonic() > deadline:
                return found
            if found.state in (PlanState.PAUSED, PlanState.RECOMMENDED):
                site.verb("start", uuid)
            elif time.monotonic() < quiet_from and self._names:
                name = self._chance.choice(self._names)
                TROUBLES[name](site)
                self.done[name] += 1
            time.sleep(self._chance.uniform(0.2, 1.5))

    def tell(self) -> None:
        """Print what was done and what was found; the last line counts."""
        print(*self.found[:20], sep="\n", end="\n" if self.found else "")
        print(", ".join(f"{name}: {number}" for name, number in sorted(self.done.items())))
        print(f"{self.plans} passed, 0 failed" if not self.found else "0 passed, 1 failed")


def _some_run(file: Path) -> bool:
    words = Counter(word for word, _ in world.read(file))
    return words["begin"] > words["end"]


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Give a folder a file system of its own, with little room; only root may.

    SQLite's log of changes takes 4 MiB before it is written back, whoever fills the disk.
    """
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def made(store: str | None, scratch: ExitStack) -> tuple[str, Path, Server | None]:
    """Make an empty record; return its URL, a folder, and the server if it may be stopped."""
    folder = Path(scratch.enter_context(tempfile.TemporaryDirectory()))
    (folder / "record").mkdir()
    server = None
    if store in (None, SMALL):
        if store == SMALL:
            scratch.enter_context(small_disk(folder / "record"))
        return f"sqlite:///{folder}/record/plans.db", folder, None
    if store == OWN:
        server = scratch.enter_context(outage.server())
        url = server.url
    else:
        url = scratch.enter_context(scratch_database(str(store)))
    upgrade(url)
    return url, folder, server


def other_versions(folder: Path, chance: Random) -> tuple[tuple[str, ...], ...]:
    """Return this version, as often as all others, and an earlier and a later one."""
    others = [versions.command(versions.later(folder / "later"))]
    if found := versions.earlier(folder / "earlier", chance):
        print(f"The earlier version is that of the commit {found[0]}", flush=True)
        others.append(versions.command(found[1]))
    return (*[()] * len(others), *others)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="no new plan after these")
    parser.add_argument("--trouble", default=",".join((*ANYWHERE, CLOCKS)), help="which, by name")
    parser.add_argument("--longest", type=float, default=8.0, help="seconds of the longest command")
    parser.add_argument("--actions", type=int, default=40, help="how many a plan has")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other plans")
    parser.add_argument(
        "--store",
        help="URL of a database whose user may create others; own: a PostgreSQL that may crash; "
        "small: a SQLite file on a small disk",
    )
    given = parser.parse_args(arguments)
    names = given.trouble.split(",")
    known = (*TROUBLES, *STATES)
    if unknown := set(names) - set(known):
        parser.error(f"no trouble {', '.join(unknown)}; there are {', '.join(known)}")
    with ExitStack() as scratch:
        url, folder, server = made(given.store, scratch)
        store = scratch.enter_context(closing(SqlStore(url)))
        site = Site(url, store, folder, Random(given.seed))
        site.server = server
        if CLOCKS in names:
            site.clocks = ("", "+90s", "-90s", "+1d")
        if VERSIONS in names:
            site.versions = other_versions(folder, site.chance)
        campaign = Campaign(site, given, names)
        campaign.run()
        try:
            SqlStore(url).close()
        except StoreError as reason:  # another version has changed the tables
            campaign.found.append(str(reason))
        campaign.tell()
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
