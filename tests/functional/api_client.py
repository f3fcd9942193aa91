# SPDX-License-Identifier: Apache-2.0
"""The HTTP API for tests: its application in this process, or the program as a process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple

from command_line import PATIENCE_S, CommandLine
from falcon import testing

from applier import configuration
from applier.api import routing
from applier.assembly import Assembly

PROGRAM = Path(sys.executable).with_name("actionplan-api")
#: The name by which requests in this process ask.
HOST = "localhost:9322"
JSON = {"Content-Type": "application/json"}
_LISTENING = re.compile(r"Listening on (http[^\s,]+)")


def configured(actionplan: CommandLine, **api: Any) -> CommandLine:
    """Configure a command line whose record and simulated cloud need no environment."""
    own = {"connection": f"sqlite:///{actionplan.record}", "simulator": actionplan.simulator}
    actionplan.record.parent.mkdir(parents=True, exist_ok=True)
    actionplan.configure(actionplan={**own, "simulator_speed": 1000}, api=api)
    return actionplan


def client_of(actionplan: CommandLine) -> testing.TestClient:
    """Return a client of the application, with the record of a command line."""
    conf = configuration.load([str(actionplan.configuration)])
    application = routing.make(Assembly(conf))
    return testing.TestClient(application, headers={"Host": HOST})


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)


class Process:
    """``actionplan-api`` as a process."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url

    def __call__(
        self,
        path: str,
        body: bytes | None = None,
        *,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request; a body makes it a POST."""
        request = urllib.request.Request(  # noqa: S310
            self.url + path, data=body, method=method, headers=dict(headers or JSON)
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.headers, refused.read())


@contextmanager
def api_process(
    actionplan: CommandLine, program: Path = PROGRAM, *options: str
) -> Iterator[Process]:
    """Start a program, with ``[api] port = 0``; end it with SIGTERM."""
    process = subprocess.Popen(
        [program, "--config-file", str(actionplan.configuration), *options],
        cwd=actionplan.folder,
        env=actionplan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines: list[str] = []
    rest = threading.Thread(target=lines.extend, args=(process.stderr,))
    try:
        for line in process.stderr:
            lines.append(line)
            if found := _LISTENING.search(line):
                break
        else:
            raise AssertionError("".join(lines))
        # What is not read would stop the program once the pipe is full.
        rest.start()
        yield Process(process, found[1])
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            if rest.ident is not None:
                rest.join()
            process.stderr.close()
