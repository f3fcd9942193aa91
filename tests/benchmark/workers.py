# SPDX-License-Identifier: Apache-2.0
"""What it costs that actions run at workers: ratios to threads, with one record and in one run.

Run it as a program: ``python tests/benchmark/workers.py``. It needs PostgreSQL, MariaDB and
RabbitMQ (see ``tests/scratch_database.py``), and takes some minutes. Four workers of four places
each carry out no-ops; threads are 16. Runs alternate, and what is printed are medians. The time
from the commit of a start to its begin is that of a command that writes the time, one at a time: on
idle workers, and behind commands that take long at three of four places. In it is the start of a
process, as it is with threads. A stop is from the cancel to when no command runs any more.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from applier.assembly import Assembly
from applier.configuration import load
from applier.storage import schema_version
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

# Databases and processes of tests are made by modules of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "functional"))
from scratch_database import MYSQL, POSTGRESQL, scratch_database
from worker_processes import fleet, until

BROKER = os.environ.get("ACTIONPLAN_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")
NUMBER, ROUNDS, LATENCIES = 300, 3, 10


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
def busy(assembly: Assembly, site: str, number: int, folder: Path) -> Iterator[Callable[[], float]]:
    """Let so many commands run; yield what cancels them, and returns how many seconds that took."""
    begun = folder / f"busy-{uuid4().hex}"
    begun.mkdir()
    plan = plan_of(site, number, f"touch {begun}/$$; exec sleep 600")
    assembly.store.save_plan(plan)
    runner = assembly.runner()
    thread = threading.Thread(target=runner.run, args=(plan.uuid,))
    thread.start()

    def cancelled() -> float:
        began = time.perf_counter()
        runner.cancel()
        for process in list(begun.iterdir()):
            while Path("/proc", process.name).exists():
                time.sleep(0.005)
        took = time.perf_counter() - began
        thread.join()
        return took

    try:
        until(lambda: len(list(begun.iterdir())) == number)
        yield cancelled
    finally:
        cancelled()


def stop_s(assembly: Assembly, site: str, folder: Path) -> float:
    """Return how long it takes to stop sixteen commands."""
    with busy(assembly, site, 16, folder) as cancelled:
        return cancelled()


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
            both = (("threads", threads), ("workers", remote))
            waits: dict[str, list[float]] = {"threads": [], "workers": [], "behind": []}
            stops: dict[str, list[float]] = {"threads": [], "workers": []}
            for _ in range(ROUNDS):
                for name, assembly in both:
                    waits[name].append(latency_s(assembly, made.site, folder / "begun"))
                    stops[name].append(stop_s(assembly, made.site, folder))
                with busy(remote, made.site, 12, folder):
                    waits["behind"].append(latency_s(remote, made.site, folder / "begun"))
            floor = statistics.median(waits.pop("threads"))
            print(f"  threads: {1e3 * floor:.1f} ms from the commit of a start to its begin")
            for name, found in waits.items():
                more = 1e3 * (statistics.median(found) - floor)
                print(f"  {name}: {more:.1f} ms more")
            for name, found in stops.items():
                print(f"  {name}: {statistics.median(found):.2f} s to stop 16 commands")


def main() -> None:
    """Measure on each server that is there."""
    # Imported in the thread of a run, it would keep that from being joined.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, server in (("PostgreSQL", POSTGRESQL), ("MariaDB", MYSQL)):
        print(name)
        with tempfile.TemporaryDirectory() as folder, scratch_database(server) as url:
            measure(url, Path(folder))


if __name__ == "__main__":
    main()
