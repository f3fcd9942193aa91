# SPDX-License-Identifier: Apache-2.0
"""How soon a dead worker is known, and how soon work goes on when the broker is back.

Run it as a program: ``python tests/benchmark/worker_faults.py``. It needs PostgreSQL and
``redis-server``, and takes about two minutes. The floor of both is what they are made of: the lease
of a job, and the shortest outage.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

# Databases and processes of tests are made by modules of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "functional"))
from scratch_database import POSTGRESQL, scratch_database
from worker_processes import Fleet, OwnRedis, fleet, until

from applier.store.worker_jobs import JobTask

LEASE_S, ROUNDS, AWAY_S = 5.0, 3, (1.0, 20.0)


def known_after_s(processes: Fleet) -> float:
    """Kill the only worker; return after how long the record says that it is lost."""
    (worker,) = processes.workers(1)
    begun = processes.effects()[0].total()
    plan = processes.shells(1, 2 * LEASE_S)
    until(lambda: processes.effects()[0].total() > begun, processes.told)
    began = time.perf_counter()
    processes.kill(worker)
    until(lambda: processes.store.jobs_of(plan.uuid)[0].task is JobTask.VERIFY, processes.told)
    took = time.perf_counter() - began
    (worker,) = processes.workers(1)
    processes.ended(plan)
    processes.kill(worker)
    return took


def goes_on_after_s(processes: Fleet, broker: OwnRedis, away_s: float) -> float:
    """Take the broker away; return how long after its return a new action begins."""
    broker.kill()
    begun = processes.effects()[0].total()
    processes.shells(1, 0)
    time.sleep(away_s)
    assert processes.effects()[0].total() == begun
    broker.start()
    began = time.perf_counter()
    until(lambda: processes.effects()[0].total() > begun, processes.told)
    return time.perf_counter() - began


def main() -> None:
    """Measure both."""
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        broker = OwnRedis(Path(folder))
        broker.start()
        try:
            with (
                scratch_database(POSTGRESQL) as url,
                fleet(Path(folder), url, broker.url, lease_s=LEASE_S) as processes,
            ):
                processes.start("actionplan-applier")
                found = [known_after_s(processes) for _ in range(ROUNDS)]
                print(f"  dead worker known after {_told(found)} with a lease of {LEASE_S:g} s")
                processes.workers(2)
                for away_s in AWAY_S:
                    found = [goes_on_after_s(processes, broker, away_s) for _ in range(ROUNDS)]
                    print(f"  broker away for {away_s:g} s: work goes on after {_told(found)}")
        finally:
            broker.kill()


def _told(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} s (at most {max(seconds):.1f})"


if __name__ == "__main__":
    main()
