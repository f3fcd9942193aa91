# SPDX-License-Identifier: Apache-2.0
"""Sends each change over HTTP many times at once with one key, beside slow clients and kills.

``python tests/campaign/clients.py [--seconds S] [--seed N]``. Two API processes share a record.
Hundreds of connections to them send nothing, or a byte now and then. Eight clients at once send a
change with one ``Idempotency-Key``, to any of both, and again until it is answered; meanwhile a
process may be killed. Each change is made once, and all clients get one answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

from processes import Applier

sys.path.insert(0, str(Path(__file__).parents[1]))

from reserved_port import ReservedPort

AT_ONCE, SLOW = 8, 150
#: How likely a process is killed during a change, and how long a client insists on its answer.
KILLED, PATIENCE_S = 0.2, 180.0
#: A slow client sends a byte after so many seconds, at the latest, and ends with such a chance.
SLOWLY_S, TIRED = 2.0, 0.1
PROGRAM = "actionplan-api"
CONFIGURATION = """
[actionplan]
connection = sqlite:///{record}/plans.db
simulator = {record}/simulator.json
[api]
port = {port}
requests_per_second = 100000
"""
HEAD = b"POST /v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n"
WHY = {"why": "looked at"}
#: The changes of a plan, one after another: the method, the path below the plan, and the body.
CHANGES: Sequence[tuple[str, str, Any]] = (
    ("POST", "/approve", WHY),
    ("POST", "/actions/first/skip", WHY),
    ("POST", "/start", {}),
    ("POST", "/cancel", {}),
    ("DELETE", "", None),
    ("POST", "/undelete", {}),
)
DOCUMENT = {"actions": [{"name": name, "action_type": "nop"} for name in ("first", "second")]}


class Api:
    """An API process that is started again when it was killed."""

    def __init__(self, folder: Path, record: Path) -> None:
        self._folder, self._kept = folder, ReservedPort()
        self.port = self._kept.port
        folder.mkdir()
        text = CONFIGURATION.format(record=record, port=self.port)
        (folder / "watcher.conf").write_text(text, encoding="utf-8")
        self.processes: list[Applier] = []
        self.start()

    def start(self) -> None:
        """Start it."""
        self.processes.append(Applier(self._folder, [PROGRAM], len(self.processes), ""))

    def kill(self) -> None:
        """Kill it, and start it again."""
        self.processes[-1].signal(signal.SIGKILL)
        self.processes[-1].wait(PATIENCE_S)
        self.start()


class Slow(threading.Thread):
    """A client that begins a request and hardly goes on, again and again."""

    def __init__(self, port: int, chance: Random, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._port, self._chance, self._over = port, chance, over

    def run(self) -> None:
        """Waste the time of a server until the end."""
        while not self._over.wait(self._chance.uniform(0, SLOWLY_S)):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port)) as one:
                one.sendall(HEAD[: self._chance.randrange(len(HEAD) + 1)])
                while self._chance.random() > TIRED:
                    if self._over.wait(self._chance.uniform(0, SLOWLY_S)):
                        break
                    one.sendall(b"x")


class Round:
    """A plan, and all that is done to it."""

    def __init__(self, apis: Sequence[Api], seed: int) -> None:
        self._apis, self._seed, self._chance = apis, seed, Random(seed)
        self.kills = 0

    def run(self) -> Iterator[str]:
        """Make a plan and all its changes, and say what is wrong."""
        made = self._change("POST", "/v2/plans", DOCUMENT)
        if len({answer["uuid"] for answer in made}) != 1:
            yield f"one key has made {len({a['uuid'] for a in made})} plans"
        path, expected = f"/v2/plans/{made[0]['uuid']}", ["create"]
        for method, below, body in CHANGES:
            answers = self._change(method, path + below, body)
            expected.append(below.rpartition("/")[2] or "delete")
            if any(answer != answers[0] for answer in answers):
                yield f"{method} {below} has several answers: {answers}"
        history = self._insist("GET", f"{path}/history", None, "")["items"]
        if (verbs := [entry["verb"] for entry in history]) != expected:
            yield f"the history has {verbs}, and should have {expected}"
        approvals = self._insist("GET", f"{path}/approvals", None, "")["items"]
        if len(approvals) != 1:
            yield f"it was approved {len(approvals)} times"

    def _change(self, method: str, path: str, body: Any) -> list[Any]:
        """Make a change many times at once; return all answers."""
        key, barrier = f"{self._seed} {method} {path}", threading.Barrier(AT_ONCE)

        def send(number: int) -> Any:
            barrier.wait()
            return self._insist(method, path, body, key, number)

        with ThreadPoolExecutor(AT_ONCE) as clients:
            sent = [clients.submit(send, number) for number in range(AT_ONCE)]
            if self._chance.random() < KILLED:
                time.sleep(self._chance.uniform(0, 0.3))
                self._chance.choice(self._apis).kill()
                self.kills += 1
            return [one.result() for one in sent]

    def _insist(self, method: str, path: str, body: Any, key: str, number: int = 0) -> Any:
        """Ask one process after the other until one answers."""
        deadline, last = time.monotonic() + PATIENCE_S, "nothing"
        while time.monotonic() < deadline:
            port = self._apis[number % len(self._apis)].port
            number += 1
            try:
                status, text = _asked(port, method, path, body, key)
            except (OSError, http.client.HTTPException) as reason:
                last = f"{type(reason).__name__}: {reason}"
            else:
                last = f"{status} {text[:300]!r}"
                if status < 300:
                    return json.loads(text) if text else None
                if status not in (409, 503) or b"with this key" not in text:
                    raise AssertionError(f"{method} {path}: {last}")
            time.sleep(0.2)
        raise AssertionError(f"{method} {path}: no answer; at last {last}")


def _asked(port: int, method: str, path: str, body: Any, key: str) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    text = None if body is None else json.dumps(body)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="no new round after these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other troubles")
    given = parser.parse_args(arguments)
    end, rounds, kills, over = time.monotonic() + given.seconds, 0, 0, threading.Event()
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        record = Path(name) / "record"
        record.mkdir()
        apis = [Api(Path(name) / f"api-{number}", record) for number in (1, 2)]
        slow = [
            Slow(a.port, Random(given.seed * 1000 + i), over) for i in range(SLOW) for a in apis
        ]
        for one in slow:
            one.start()
        while not found and (rounds == 0 or time.monotonic() < end):
            rounds += 1
            now = Round(apis, given.seed * 1000 + rounds)
            try:
                found = list(now.run())
            except AssertionError as reason:
                found = [str(reason)]
            kills += now.kills
        over.set()
        for one in slow:
            one.join()
        for process in (process for api in apis for process in api.processes):
            process.end()
            found += process.wrong()
    print(*found[:20], sep="\n", end="\n" if found else "")
    print(f"{rounds} plans, {kills} kills, {len(slow)} slow clients")
    print(f"{rounds} passed, 0 failed" if not found else f"{rounds - 1} passed, 1 failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
