# SPDX-License-Identifier: Apache-2.0
"""What it costs that actions run at workers: ratios to threads, with one record and in one run.

Run it as a program: ``python tests/benchmark/workers.py``. It needs PostgreSQL, MariaDB and
RabbitMQ (see ``tests/scratch_database.py``), and takes about a minute. Four workers of four places
each carry out no-ops; threads are 16. Runs alternate, and what is printed are medians. The time
from the commit of a start to its begin is that of a command that writes the time, one at a time on
idle workers.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from applier.assembly import Assembly
from applier.configuration import load
from applier.storage import schema_version
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

# Databases and processes of tests are made by modules of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "functional"))
from scratch_database import MYSQL, POSTGRESQL, scratch_database
from worker_processes import fleet

BROKER = os.environ.get("ACTIONPLAN_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")
NUMBER, ROUNDS, LATENCIES = 300, 3, 20


class Took(NamedTuple):
    """The seconds of a run, and of the processor of the applier."""

    seconds: float
    processor_s: float


def plan_of(site: str, number: int, command: str | None = None) -> ActionPlan:
    """Return a plan of no-ops, or of commands."""
    kind = "shell" if command else "nop"
    parameters = {"command": command} if command else {}
    return ActionPlan(
        uuid=str(uuid4()),
        planner="weight",
        created_at=datetime.now(UTC),
        state=PlanState.PENDING,
        actions=tuple(
            Action(
                uuid=str(uuid4()),
                name=f"n{i}",
                action_type=kind,
                tokens=(f"region:{site}",),
                input_parameters=parameters,
            )
            for i in range(number)
        ),
    )


def run(assembly: Assembly, plan: ActionPlan, listeners: tuple[object, ...] = ()) -> Took:
    """Run a plan, which must succeed."""
    assembly.store.save_plan(plan)
    runner = assembly.runner(listeners=listeners)
    began, used = time.perf_counter(), time.process_time()
    state = runner.run(plan.uuid)
    assert state is PlanState.SUCCEEDED, state
    return Took(time.perf_counter() - began, time.process_time() - used)


class Starts:
    """Notes when a start was committed."""

    at = 0.0

    def on_reports(self, reports: object) -> None:
        for report in reports:  # type: ignore[attr-defined]
            if report.state is ActionState.ONGOING:
                self.at = time.time()

    def on_plan(self, *_: object) -> None:
        pass


def latency_s(assembly: Assembly, site: str, file: Path) -> float:
    """Return the median time from the commit of a start to the begin of its command."""
    found = []
    for _ in range(LATENCIES):
        starts = Starts()
        run(assembly, plan_of(site, 1, f"date +%s.%N > {file}"), (starts,))
        found.append(float(file.read_text()) - starts.at)
    return statistics.median(found)


@contextmanager
def assembled(configuration: Path, workers: str) -> Iterator[Assembly]:
    """Yield the parts of a configuration, with another value of ``workers``."""
    text = configuration.read_text(encoding="utf-8")
    own = configuration.with_name(f"{workers}.conf")
    own.write_text(
        text.replace("workers = celery\nmax_workers = 4", f"workers = {workers}\nmax_workers = 16")
    )
    with closing(Assembly(load([str(own)]))) as assembly:
        yield assembly


def measure(url: str, folder: Path) -> None:
    """Print the figures for one record."""
    schema_version.upgrade(url)
    with fleet(folder, url, BROKER, lease_s=30.0, places=4) as made:
        made.workers(4)
        with (
            assembled(made.configuration, "threads") as threads,
            assembled(made.configuration, "celery") as remote,
        ):
            took: dict[str, list[Took]] = {"threads": [], "workers": []}
            for _ in range(ROUNDS):
                took["threads"].append(run(threads, plan_of(made.site, NUMBER)))
                took["workers"].append(run(remote, plan_of(made.site, NUMBER)))
            rate = {}
            for name, runs in took.items():
                rate[name] = NUMBER / statistics.median(t.seconds for t in runs)
                used = statistics.median(t.processor_s for t in runs) / NUMBER
                print(
                    f"  {name}: {rate[name]:.0f} no-ops a second, "
                    f"{used * 1e3:.2f} ms of the applier each"
                )
            print(f"  ratio {rate['workers'] / rate['threads']:.2f}")
            for name, assembly in (("threads", threads), ("workers", remote)):
                ms = 1e3 * latency_s(assembly, made.site, folder / "begun")
                print(f"  {name}: {ms:.1f} ms from the commit of a start to its begin")


def main() -> None:
    """Measure on each server that is there."""
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, server in (("PostgreSQL", POSTGRESQL), ("MariaDB", MYSQL)):
        print(name)
        with tempfile.TemporaryDirectory() as folder, scratch_database(server) as url:
            measure(url, Path(folder))


if __name__ == "__main__":
    main()
