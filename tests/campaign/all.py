# SPDX-License-Identifier: Apache-2.0
"""Runs campaigns, one after another or at once, and says at the end which found something.

``python tests/campaign/all.py [--seconds S] [--at-once] [NAME...]``. Each begins nothing new after
S seconds, and comes to the end of what it does. For a night: ``--seconds 28800 --at-once``. With
``--minutes M`` they are drawn by lot for as long; what fails is then run once more, alone, with the
same seed, and told as FLAKY if it passes.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
POSTGRESQL = os.environ.get(
    "ACTIONPLAN_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1/postgres"
)
MYSQL = os.environ.get("ACTIONPLAN_TEST_MYSQL", "mysql://root@127.0.0.1/test")

#: The command of each campaign; ``SECONDS`` and ``SEED`` are filled in.
CAMPAIGNS = {
    "planted fault": "kill.py --planted --rounds 0",
    "kills": "kill.py --rounds 0",
    "kills, a thousand": "kill.py --rounds 0 --actions 1000 --certain",
    "kills, PostgreSQL": f"kill.py --rounds 0 --store {POSTGRESQL}",
    "store away": "outage.py --seconds 20",
    "hundred nodes": "deployments.py --times 3",
    "rollouts": "rollouts.py --seed SEED",
    "bad input": "inputs.py --rounds 1000000 --seed SEED",
    "orphans": "appliers.py --trouble kill --longest 60 --actions 16 --seed SEED",
    "appliers": "appliers.py --seed SEED",
    "appliers, PostgreSQL": "appliers.py --trouble kill,freeze,race,cut --seed SEED"
    f" --store {POSTGRESQL}",
    "appliers, MariaDB": f"appliers.py --trouble kill,cut,deadlock --seed SEED --store {MYSQL}",
    "server crashes": "appliers.py --trouble kill,crash --seed SEED --store own",
    "fleet, planted fault": "fleet.py --record postgresql --broker redis --fault requeue"
    " --trouble kill-worker,freeze-worker --seed SEED",
    "fleet": "fleet.py --record postgresql --broker rabbitmq --seed SEED",
    "fleet, Redis": "fleet.py --record postgresql --broker redis --seed SEED",
    "fleet, MariaDB": "fleet.py --record mariadb --broker rabbitmq --seed SEED",
    "fleet, MariaDB, Redis": "fleet.py --record mariadb --broker redis --seed SEED",
    "fleet, away": "fleet.py --record postgresql --broker redis --away 20 --lease 30"
    " --longest 25 --seed SEED",
    "fleet, cables": "fleet.py --namespaces --record postgresql --broker redis"
    " --trouble vanish,freeze-worker,kill-worker --work 0.3 --seed SEED",
    "cables, planted fault": "fleet.py --namespaces --record postgresql --broker redis"
    " --trouble vanish,freeze-worker --fault twice --work 0.8 --seed SEED",
    "deliveries": "deliveries.py --seed SEED",
    "clients": "clients.py --seed SEED",
    "full disk": "appliers.py --trouble kill,full --seed SEED --store small",
    "few files and threads": "appliers.py --trouble starve --seed SEED",
    "64 appliers": "appliers.py --trouble crowd --actions 8 --longest 4 --seed SEED",
    "two versions": "appliers.py --trouble kill,race,pause,look,versions --seed SEED",
}
#: How much of the output of a campaign that failed is repeated at the end.
LAST_LINES = 40
#: Those with an end of their own.
WITHOUT_SECONDS = frozenset({"store away", "hundred nodes", "fleet, away"})


class Ended(NamedTuple):
    """What a campaign printed, and how many seconds it took."""

    name: str
    output: str
    failed: bool
    took: float


def run(name: str, seconds: float, seed: int) -> Ended:
    """Run a campaign to its end."""
    program, *words = CAMPAIGNS[name].replace("SEED", str(seed)).split()
    limit = [] if name in WITHOUT_SECONDS else ["--seconds", str(seconds)]
    command = [sys.executable, str(FOLDER / program), *words, *limit]
    began = time.monotonic()
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    took = time.monotonic() - began
    return Ended(name, ended.stdout.decode(errors="replace"), ended.returncode != 0, took)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaigns; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each goes on")
    parser.add_argument("--seed", type=int, help="another number makes other troubles")
    parser.add_argument("--at-once", action="store_true", help="not one after another")
    parser.add_argument("--minutes", type=float, help="draw campaigns by lot for as long in all")
    given = parser.parse_args(arguments)
    names = given.names or list(CAMPAIGNS)
    unknown = sorted(set(names) - set(CAMPAIGNS))
    if unknown:
        parser.error(f"no campaign {', '.join(unknown)}; there are {', '.join(CAMPAIGNS)}")
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000
    print(f"Seed {seed}", flush=True)
    deadline = None
    if given.minutes is not None:
        random.Random(seed).shuffle(names)
        deadline = time.monotonic() + 60 * given.minutes - given.seconds
    runs = tried(names, seed, given.seconds, deadline, len(names) if given.at_once else 1)
    failed = [ended for ended in runs if ended.failed]
    again = {}
    if given.minutes is not None:
        again = {ended.name: shown(run(ended.name, given.seconds, seed)) for ended in failed}
    print("\n== Campaigns")
    for ended in runs:
        how = "FAILED" if ended.failed else "ok"
        print(f"{ended.name:22} {how:7} {ended.took:5.0f} s")
    # Again, so that who sees only the end of a long output sees the reason.
    for ended in failed:
        flaky = ended.name in again and not again[ended.name].failed
        last = ended.output.splitlines()[-LAST_LINES:]
        title = f"FLAKY: {ended.name}" if flaky else f"Failed: {ended.name}"
        print(f"\n== {title} (seed {seed})", *last, sep="\n")
    return int(any(ended.name not in again or again[ended.name].failed for ended in failed))


def tried(
    names: Sequence[str], seed: int, seconds: float, deadline: float | None, at_once: int
) -> list[Ended]:
    """Run campaigns and print the output of each; begin none after the deadline."""

    def begun(name: str) -> Ended | None:
        return None if deadline and time.monotonic() > deadline else run(name, seconds, seed)

    with ThreadPoolExecutor(at_once) as pool:
        return [shown(ended) for ended in pool.map(begun, names) if ended]


def shown(ended: Ended) -> Ended:
    """Print the output of a campaign under its name, and return it."""
    print(f"\n== Campaign: {ended.name}", ended.output, sep="\n", end="", flush=True)
    return ended


if __name__ == "__main__":
    sys.exit(main())
