# SPDX-License-Identifier: Apache-2.0
"""What a request to the API costs, as requests a second beside a floor of the same run.

Run it: ``python tests/benchmark/api.py``. The floor is a falcon application with a constant answer
in the same server. Both servers are processes of their own with a record in SQLite; clients keep
their connections, rounds alternate, and what is printed are medians. ``POST`` is compared in
processor time of the server with planning and storing the same document in one process.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

sys.path += [str(Path(__file__).parents[1] / "functional"), str(Path(__file__).parents[1])]

import falcon
from api_client import Process, api_process, configured
from command_line import CommandLine

from applier import configuration
from applier.api.feed import MOST_WAITING
from applier.api.server import Server
from applier.assembly import Assembly
from planner import make_plan
from planner.documents import parse

CLIENTS, SECONDS, ROUNDS = 4, 3.0, 5
AT_LEAST, AT_MOST = 0.25, 1.3
#: How often planning and POST are measured in turns, and how many of each at once.
TURNS, POSTS = 7, 5
#: As many readers as can wait for events, and the share of a core that they may cost.
READERS, WAITING = MOST_WAITING, 0.05


def floor(file: str) -> None:
    """Serve a constant answer; print the address."""

    class Constant:
        def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
            response.data, response.content_type = b'{"state": "SUCCEEDED"}', falcon.MEDIA_JSON

    application: falcon.App = falcon.App()
    application.add_route("/", Constant())
    server = Server(configuration.load([file]), application)
    server.open()
    print(server.url, flush=True)
    server.serve()


def rate(url: str, path: str) -> float:
    """Return how many requests a second some clients have answered."""
    end, counts = time.monotonic() + SECONDS, [0] * CLIENTS

    def ask(number: int) -> None:
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        while time.monotonic() < end:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            counts[number] += 1
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def document(actions: int) -> bytes:
    """Return a document with some actions."""
    made = [
        {"name": f"a{i}", "action_type": "nop", "touches": [f"node:{i}"]} for i in range(actions)
    ]
    return json.dumps({"actions": made}).encode()


def processor_s(pid: int) -> float:
    """Return the processor time that the threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def waiting_share(api: Process, readers: int, seconds: float) -> float:
    """Return which share of a core the API uses while readers wait and nothing happens."""
    place = urlsplit(api.url)
    after = api("/v2/events").json["newest"]
    connections = []
    for _ in range(readers):
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=90)
        connection.request("GET", f"/v2/events?after={after}&wait_s=60")
        connections.append(connection)
    # Once all wait, there is no place for another one.
    while api(f"/v2/events?after={after}&wait_s=0").status != 503:
        pass
    began = processor_s(api.process.pid)
    time.sleep(seconds)
    share = (processor_s(api.process.pid) - began) / seconds
    api("/v2/plans", document(1))
    for connection in connections:
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["items"], "it did not wait until now"
        connection.close()
    return share


def main() -> int:
    """Print the figures; return 1 if one is missed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        actionplan = configured(
            CommandLine(folder, folder / "cache"), port=0, requests_per_second=10**6
        )
        file = str(actionplan.configuration)
        least = stack.enter_context(
            subprocess.Popen([sys.executable, __file__, file], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(least.kill)
        assert least.stdout is not None
        floor_url = least.stdout.readline().strip()
        api = stack.enter_context(api_process(actionplan))
        plans = {n: api("/v2/plans", document(n)).json["uuid"] for n in (10, 1000)}
        rates: dict[str, list[float]] = {"floor": [], "10": [], "1000": []}
        for _ in range(ROUNDS):
            rates["floor"].append(rate(floor_url, "/"))
            for size, uuid in plans.items():
                rates[str(size)].append(rate(api.url, f"/v2/plans/{uuid}"))
        medians = {name: statistics.median(found) for name, found in rates.items()}
        share = medians["10"] / medians["floor"]
        print(
            f"floor {medians['floor']:.0f}/s; a plan of 10 actions {medians['10']:.0f}/s: "
            f"{share:.2f} (at least {AT_LEAST}); of 1000 actions {medians['1000']:.1f}/s"
        )
        body = document(1000)
        assembly = Assembly(configuration.load([file]))

        def created() -> float:
            began = time.process_time()
            for _ in range(POSTS):
                assembly.store.save_plan(make_plan(parse(body, "body"), conf=assembly.conf))
            return (time.process_time() - began) / POSTS

        def posted() -> float:
            began = processor_s(api.process.pid)
            for _ in range(POSTS):
                assert api("/v2/plans", body).status == 201
            return (processor_s(api.process.pid) - began) / POSTS

        created(), posted()
        # In turns, so that what else the machine does falls on both.
        turns = [(created(), posted()) for _ in range(TURNS)]
        alone, asked = (statistics.median(taken) for taken in zip(*turns, strict=True))
        print(
            f"POST of 1000 actions: {asked * 1000:.0f} ms of a processor, {asked / alone:.2f} x of"
            f" planning and storing ({alone * 1000:.0f} ms; at most {AT_MOST})"
        )
        waiting = waiting_share(api, READERS, 20)
        print(
            f"{READERS} readers that wait while nothing happens: {waiting:.1%} of a core"
            f" (at most {WAITING:.0%})"
        )
    return int(share < AT_LEAST or asked / alone > AT_MOST or waiting > WAITING)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        floor(sys.argv[1])
    else:
        raise SystemExit(main())
