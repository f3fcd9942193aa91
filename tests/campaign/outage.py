# SPDX-License-Identifier: Apache-2.0
"""Takes the database server away from a process that runs a plan, and gives it back.

``python tests/campaign/outage.py [--seconds S] [--times N]``. The server is a PostgreSQL of one's
own, in a scratch folder on a free port, which is stopped at once (``pg_ctl -m immediate``: no
goodbye) while the plan runs and started again ``S`` seconds later. Nothing may begin while it is
away, and the plan ends as if nothing had been, in the same process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from kill import PATIENCE_S, VICTIM, Trial, check_effects, check_end
from victim import WORKERS, read_effects

from applier.storage.schema_version import upgrade
from applier.storage.sql_store import SqlStore
from planner.plan.states import ENDED_PLAN

sys.path.insert(0, str(Path(__file__).parents[1]))

from reserved_port import ReservedPort

#: How many actions a plan has, and after how many beginnings the server goes away.
SIZE, BEGUN = 1000, 100


class Server:
    """A PostgreSQL of one's own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._data = programs, folder / "data"
        # Kept while it is away, too.
        self._kept = ReservedPort()
        self._port = self._kept.port
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        # It refuses to be run by root.
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, "postgres")
        self._call("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-N")

    def start(self) -> None:
        """Start it; returns when it answers."""
        options = f"-p {self._port} -k {self._data} -c listen_addresses=127.0.0.1"
        log = str(self._data / "log")
        wait = ["-w", "-t", f"{PATIENCE_S:.0f}"]
        self._call("pg_ctl", "start", *wait, "-D", str(self._data), "-o", options, "-l", log)

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        self._call("pg_ctl", "stop", "-m", "immediate", "-D", str(self._data))

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


def programs() -> Path | None:
    """Find the folder of initdb and pg_ctl, which is not in PATH everywhere."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def server() -> Iterator[Server]:
    """Make a server and start it; stop it and remove it at the end."""
    where = programs()
    if where is None:
        raise FileNotFoundError("there is no initdb of PostgreSQL here")
    with tempfile.TemporaryDirectory() as folder:
        made = Server(where, Path(folder))
        made.start()
        try:
            yield made
        finally:
            made.stop()


def begun(trial: Trial) -> int:
    """Count the beginnings so far."""
    return sum(line[0] == "begin" for line in read_effects(trial.effects))


def wait_for(trial: Trial, number: int, child: subprocess.Popen[str]) -> None:
    """Wait until so many actions began, or the child ended."""
    end = time.monotonic() + PATIENCE_S
    while begun(trial) < number and child.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


def problems(trial: Trial, own: Server, seconds: float, times: int) -> Iterator[str]:
    """Run a plan, take the server away while it runs, and say what went wrong."""
    command = [sys.executable, str(VICTIM), json.dumps(asdict(trial.orders()))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for outage in range(1, times + 1):
            wait_for(trial, outage * BEGUN, child)
            before = begun(trial)
            if before < outage * BEGUN:
                child.kill()
                yield f"only {before} actions began before the server could be taken away"
                return
            own.stop()
            before = begun(trial)
            time.sleep(seconds)
            more = begun(trial) - before
            print(f"away for {seconds:g} s after {before} beginnings; {more} began meanwhile")
            if child.poll() is not None:
                yield f"the process ended with {child.returncode} while the server was away"
            if more > WORKERS:
                yield f"{more} actions began while the server was away"
            own.start()
        try:
            code = child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = None
    if code != 0:
        yield f"the process ended with {code}" if code else "the process hangs"
    with closing(SqlStore(own.url)) as store:
        found = store.load_plan(trial.plan.uuid)
    if found.state not in ENDED_PLAN:
        yield f"the plan is {found.state}"
    yield from check_effects(trial, found)
    yield from check_end(trial, found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long it is away")
    parser.add_argument("--times", type=int, default=1, help="how often it goes away")
    given = parser.parse_args(arguments)
    try:
        with server() as own, tempfile.TemporaryDirectory() as folder:
            upgrade(own.url)
            trial = Trial(own.url, Path(folder), 1, SIZE, certain=True)
            found = list(problems(trial, own, given.seconds, given.times))
            print(f"{begun(trial)} actions began in all")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"No server could be made: {error}")
        return 1 if os.environ.get("CI") else 0
    print(*found[:10], sep="\n", end="\n" if found else "")
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
