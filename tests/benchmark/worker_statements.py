# SPDX-License-Identifier: Apache-2.0
"""What actions at workers cost the database: for each thing that appliers and workers do.

Run it as a program: ``python tests/benchmark/worker_statements.py [ROWS]``, with as many jobs in
the table as are said to run: 10,000. ``ACTIONPLAN_TEST_POSTGRESQL`` is the URL of a database whose
user may create others; RabbitMQ is expected on this machine. All statements are those of the store.
They pass a proxy that counts them, and their bytes both ways; the database's part is the processor
time of the process that serves the connection, as the kernel counts it, so this machine has to run
the database. Commits do not wait for the disk. ``doc/architecture/at-scale.rst`` adds it all up.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import kombu

from applier.contracts import JobOffer, Report
from applier.storage import schema_version
from applier.storage.connection import parse
from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import OVER, AttemptKey, HeldJob, Worker
from applier.workers.celery_app import PREFIX, celery_app
from applier.workers.follower import LONGEST_S, SHORTEST_S

# The databases of tests are made by a module of the tests.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(sys.path[0], "contract"))
from sample_plans import new_plan
from scratch_database import POSTGRESQL, connected, run, scratch_database
from store_checks.running_plans import NOW, claimed, starts, succeeds

RULES = Path(__file__).parents[2] / "etc" / "worker-accounts.postgresql.sql"
#: As a shell action has it, about 500 bytes.
PAYLOAD = {
    "format": 1,
    "release": "1.0.0",
    "cloud": "simulated",
    "name": "restart-the-agent-on-compute-0042",
    "action_type": "shell",
    "input_parameters": {"command": "systemctl restart agent && " + "x" * 250},
    "limit_s": 600.0,
    "cut_off": False,
}
RESULT = {
    "state": "SUCCEEDED",
    "outcome": "changed",
    "state_reason": None,
    "message": "exit code 0",
    "output": "restarted\n" * 10,
}
PLAN_SIZE, TIMES, LEASE_S = 100, 1000, 30.0
#: How many workers are on record when their queues are asked for.
WORKERS = 1000
#: How long a plan runs whose looks for ends are simulated.
SIMULATED_S = 1000.0
RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"


class Counted(NamedTuple):
    """What has passed so far: statements, bytes both ways, seconds of processors.

    Those of the database, and of this thread, which makes the statements and reads the answers.
    """

    statements: int
    sent: int
    answered: int
    database_s: float
    own_s: float


class Meter:
    """A way to the database that counts what passes; for one connection at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.statements = self.sent = self.answered = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._server)
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for move in (self._forth, self._back):
                threading.Thread(target=move, args=(client, server), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        """Pass messages on to the database. Each has a letter and its length, but the first."""
        rest, begun = b"", False
        while data := client.recv(65536):
            server.sendall(data)
            self.sent += len(data)
            rest += data
            while len(rest) >= 5:
                at = 1 if begun else 0
                size = int.from_bytes(rest[at : at + 4], "big") + at
                if len(rest) < size:
                    break
                # Executions of prepared statements, and plain queries, among them BEGIN and COMMIT.
                self.statements += begun and rest[:1] in (b"E", b"Q")
                rest, begun = rest[size:], True
        server.close()

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        while data := server.recv(65536):
            self.answered += len(data)
            client.sendall(data)
        client.close()


class Side:
    """A store whose connection is counted."""

    def __init__(self, url: str) -> None:
        plain = parse(url)
        self._meter = Meter(plain.host or "127.0.0.1", plain.port or 5432)
        options = {"sslmode": "disable", "gssencmode": "disable"}
        through = plain._replace(host="127.0.0.1", port=self._meter.port, options=options)
        self.store = SqlStore(through.with_password())
        self.pid = 0

    def counted(self) -> Counted:
        """Return what has passed so far."""
        fields = (
            Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
        used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        meter = self._meter
        return Counted(meter.statements, meter.sent, meter.answered, used_s, time.thread_time())

    def find_process(self, url: str) -> None:
        """Find the process of the database that serves this side's last connection."""
        self.store.workers()
        text = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        text += "pg_backend_pid() ORDER BY query_start DESC LIMIT 1"
        [self.pid] = run(url, text)


def show(name: str, side: Side, times: int, what: Callable[[int], object]) -> None:
    """Do something several times, and print what each time cost."""
    for number in range(5):
        what(number)  # statements are prepared
    before = side.counted()
    for number in range(5, 5 + times):
        what(number)
    after = side.counted()
    each = [(b - a) / times for a, b in zip(before, after, strict=True)]
    numbers = (each[0], each[1], each[2], each[3] * 1e6, each[4] * 1e6)
    print(f"{name:<42}", *(f"{number:>8.0f}" for number in numbers))


def offer(key: AttemptKey, queue: str) -> JobOffer:
    """Return the job of an attempt."""
    return JobOffer(key.attempt, queue, "shell", PAYLOAD)


def running(
    store: SqlStore, number: int, queue: str
) -> tuple[str, str, list[tuple[Any, AttemptKey]]]:
    """Start the actions of a plan; return its uuid, its claim, and its actions with their keys."""
    plan = new_plan(*(f"a{i}" for i in range(number)))
    claim = claimed(store, plan)
    keys = [(action, AttemptKey(plan.uuid, action.uuid, 1)) for action in plan.actions]
    store.commit(plan.uuid, claim, started(keys, queue), now=NOW)
    return plan.uuid, claim, keys


def started(keys: list[tuple[Any, AttemptKey]], queue: str) -> list[Report]:
    """Return the reports of starts that offer jobs."""
    return [starts(action)._replace(job=offer(key, queue)) for action, key in keys]


def worker_side(side: Side, who: str, keys: list[AttemptKey]) -> None:
    """Print what a worker does, for one job and for the eight that it holds."""
    store, tokens = side.store, [str(uuid4()) for _ in keys]
    worker = Worker(
        who, "h", 1, "u", "1", queues=["site-b"], types=["shell"] * 26, places=8, running=8
    )
    store.report_worker(worker)

    def take(i: int) -> None:
        assert store.take_job(keys[i], worker=f"{who}{i // 8}", token=tokens[i], lease_s=LEASE_S)

    show(f"{who}: take a job", side, TIMES, take)
    held = [HeldJob(key, token) for key, token in zip(keys, tokens, strict=True)][8:16]
    show(
        f"{who}: renew the leases of 8 jobs", side, TIMES, lambda _: store.renew_jobs(held, LEASE_S)
    )
    show(f"{who}: look whether its 8 jobs go on", side, TIMES, lambda _: store.held_jobs(f"{who}1"))
    show(
        f"{who}: look for lost jobs to find",
        side,
        TIMES,
        lambda _: store.jobs_to_find(f"h:1:{who}", ["site-b"]),
    )
    show(f"{who}: say that it lives", side, TIMES, lambda _: store.report_worker(worker))
    show(f"{who}: end a job", side, TIMES, lambda i: store.end_job(keys[i], tokens[i], RESULT))


def applier_side(side: Side, keys: list[tuple[Any, AttemptKey]], plan: str, claim: str) -> None:
    """Print what an applier does; ``keys`` are of actions that have not started."""
    store = side.store

    def start(i: int) -> None:
        store.commit(plan, claim, started([keys[i]], "site-b"), now=NOW)

    def end(i: int) -> None:
        action, key = keys[i]
        report = succeeds(action)._replace(job=offer(key, "site-b"), output=RESULT["output"])
        store.commit(plan, claim, [report], now=NOW)

    show("applier: record a start with its job", side, TIMES, start)
    show("applier: record an end, remove its job", side, TIMES, end)


@contextmanager
def prepared(url: str) -> Iterator[str]:
    """Make the tables and an account of a worker; yield the URL of the account."""
    schema_version.upgrade(url)
    name, account = parse(url).database, f"worker_{uuid4().hex[:12]}"
    with connected(url) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        cursor.execute(RULES.read_text(encoding="utf-8"))
        cursor.execute(f"CREATE ROLE {account} LOGIN PASSWORD 'x' IN ROLE actionplan_worker")
        text = "INSERT INTO actionplan_rights.served_queue VALUES (%s, 'site-b')"
        cursor.execute(text, (account,))
    try:
        own = parse(url)._replace(user=account, password="x")  # noqa: S106
        yield own.with_password()
    finally:
        run(url, f"DROP ROLE {account}")


def messages() -> None:
    """Print how many bytes a message takes to the broker, and to its worker."""
    meter = Meter("127.0.0.1", 5672)
    url = RABBITMQ.replace(":5672", f":{meter.port}")
    name = f"benchmark-{uuid4().hex[:12]}"
    app = celery_app(url, [name])
    key, passed = AttemptKey(str(uuid4()), str(uuid4()), 1), []
    with app.connection_for_write() as connection:
        queue = kombu.Queue(PREFIX + name, channel=connection.default_channel)
        queue.declare()
        producer = app.amqp.Producer(connection, auto_declare=False)
        for number in (50, 250):
            before = meter.sent
            for _ in range(number):
                app.send_task(
                    "actionplan.perform",
                    tuple(key),
                    producer=producer,
                    queue=queue.name,
                    expiration=60,
                    retry=False,
                    ignore_result=True,
                )
            while queue.queue_declare(passive=True).message_count < number:
                pass
            passed.append(meter.sent - before)
            before = meter.answered
            while (message := queue.get()) is not None:
                message.ack()
            passed.append(meter.answered - before)
        queue.delete()
    print(f"A message: {(passed[2] - passed[0]) / 200:.0f} bytes to the broker,")
    print(f"{(passed[3] - passed[1]) / 200:.0f} bytes to its worker.")


def looks_a_second(ends_a_second: float) -> float:
    """Return how often an applier looks for ends of a plan, if they come at random times."""
    dice, at, looks, pause_s = random.Random(1), 0.0, 0, SHORTEST_S
    next_end = dice.expovariate(ends_a_second)
    while at < SIMULATED_S:
        looks += 1
        found = next_end <= at
        while next_end <= at:
            next_end += dice.expovariate(ends_a_second)
        pause_s = SHORTEST_S if found else min(1.5 * pause_s, LONGEST_S)
        at += pause_s
    return looks / SIMULATED_S


def main() -> None:
    """Print a line for each thing."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    server = os.environ.get("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL)
    with scratch_database(server) as url, prepared(url) as account:
        with closing(SqlStore(url)) as store:
            plan = ""
            for _ in range(rows // PLAN_SIZE):
                plan, *_ = running(store, PLAN_SIZE, "site-a")
            mine = [running(store, TIMES + 5, "site-b")[2] for _ in range(2)]
            other = new_plan(*(f"a{i}" for i in range(TIMES + 5)))
            claim = claimed(store, other)
            keys = [(action, AttemptKey(other.uuid, action.uuid, 1)) for action in other.actions]
        run(url, "ANALYZE")
        print(f"{rows} jobs in the table, {PLAN_SIZE} in each plan; each time:")
        heads = ("state-", "bytes to", "bytes", "its CPU", "own CPU")
        print(" " * 42, *(f"{head:>8}" for head in heads))
        print(" " * 42, *(f"{head:>8}" for head in ("ments", "database", "back", "us", "us")))
        for side, who, its in ((Side(url), "worker", mine[0]), (Side(account), "account", mine[1])):
            side.find_process(url)
            worker_side(side, who, [key for _, key in its])
            side.store.close()
        side = Side(url)
        side.find_process(url)
        applier_side(side, keys, other.uuid, claim)
        jobs = side.store
        show("applier: look for ends in 100 jobs", side, TIMES, lambda _: jobs.jobs_of(plan, OVER))
        show("applier: look for leases that ran out", side, TIMES, lambda _: jobs.fence_jobs(plan))
        show(
            "applier: look for jobs to send again",
            side,
            TIMES,
            lambda _: jobs.unsent_jobs(plan, 1e6),
        )
        for i in range(WORKERS):
            about = (f"h{i}", i, "u", "1", [f"site-{i % 10}"], ["shell"] * 26, 16)
            jobs.report_worker(Worker(f"h{i}:{i}:a", *about))
        show(
            f"applier: served queues, {WORKERS} workers",
            side,
            TIMES // 10,
            lambda _: jobs.served_queues(),
        )
        side.store.close()
    messages()
    for rate in (0.1, 1, 1.7, 10, 100):
        print(f"{rate:g} ends a second: {looks_a_second(rate):.0f} looks a second")


if __name__ == "__main__":
    main()
