# SPDX-License-Identifier: Apache-2.0
"""The HTTP API for tests: its application in this process, or the program as a process."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import bcrypt
import requests
from command_line import PATIENCE_S, CommandLine
from falcon.testing import Result, TestClient
from jsonschema import Draft202012Validator

from applier import configuration
from applier.api import routing
from applier.api.endpoints import Call
from applier.api.v2.operation import Operation
from applier.assembly import Assembly
from applier.storage.sql_store import SqlStore

_respond = Operation.respond


def _checked(operation: Operation, call: Call) -> None:
    """Answer a call, and check that the answer keeps the schema of its operation."""
    _respond(operation, call)
    response = call.response
    if response.status_code >= 300 or "json" not in (response.content_type or ""):
        return
    if response.stream is not None:
        pieces = list(response.stream)
        response.stream = iter(pieces)
        content = b"".join(pieces)
    else:
        content = response.render_body() or b""
    if content:
        Draft202012Validator(operation.answer).validate(json.loads(content))


#: Every answer in tests is checked in this process.
Operation.respond = _checked  # type: ignore[method-assign]

PROGRAM = Path(sys.executable).with_name("actionplan-api")
#: The name by which requests in this process ask.
HOST = "localhost:9322"
JSON = {"Content-Type": "application/json"}
_LISTENING = re.compile(r"Listening on (http[^\s,]+)")


DOCUMENT = {
    "name": "night",
    "actions": [
        {"name": "first", "action_type": "nop", "touches": ["node:a"]},
        {"name": "second", "action_type": "nop", "touches": ["node:a"]},
    ],
}
SHELL = {"actions": [{"name": "s", "action_type": "shell", "input_parameters": {"command": "id"}}]}


def configured(actionplan: CommandLine, **api: Any) -> CommandLine:
    """Configure a command line whose record and simulated cloud need no environment."""
    own = {"connection": f"sqlite:///{actionplan.record}", "simulator": actionplan.simulator}
    actionplan.record.parent.mkdir(parents=True, exist_ok=True)
    actionplan.configure(actionplan={**own, "simulator_speed": 1000}, api=api)
    return actionplan


def client_of(actionplan: CommandLine) -> TestClient:
    """Return a client of the application, with the record of a command line."""
    conf = configuration.load([str(actionplan.configuration)])
    application = routing.make(Assembly(conf))
    return TestClient(application, headers={"Host": HOST})


@contextmanager
def closed_client(actionplan: CommandLine) -> Iterator[TestClient]:
    """Yield a client of an application of its own; close its connections."""
    with closing(Assembly(configuration.load([str(actionplan.configuration)]))) as assembly:
        yield TestClient(routing.make(assembly), headers={"Host": HOST})


def administrators(actionplan: CommandLine, **api: Any) -> TestClient:
    """Return a client whose callers may administer the record."""
    policy = actionplan.folder / "policy.yaml"
    rules = ("record:administer", "event:administer")
    policy.write_text("".join(f"{rule}: role:operator\n" for rule in rules), encoding="utf-8")
    configured(actionplan, **api)
    with actionplan.configuration.open("a", encoding="utf-8") as file:
        file.write(f"[oslo_policy]\npolicy_file = {policy}\n")
    return client_of(actionplan)


def post(api: TestClient, path: str, value: Any = None, **headers: str) -> Result:
    """Send JSON."""
    body = "" if value is None else json.dumps(value)
    return api.simulate_post(path, body=body, headers={**JSON, **headers})


def stored(api: TestClient, document: Any = DOCUMENT) -> str:
    """Store a plan of a document; return its uuid."""
    made = post(api, "/v2/plans", document)
    assert made.status_code == 201, made.text
    return str(made.json["uuid"])


def is_problem(answer: Result, status: int, text: str) -> bool:
    """Check that an answer is a problem document that says something."""
    problem = answer.json
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["instance"] == answer.headers["x-openstack-request-id"]
    assert text in problem["detail"], problem
    return True


class WatcherClient:
    """Asks as Watcher's client does; paths are below /v1 if they begin with no slash."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._client = TestClient(routing.make(assembly))

    @property
    def store(self) -> SqlStore:
        """The record that the application uses."""
        return self.assembly.store

    def ask(
        self, path: str, *, method: str = "GET", version: str | None = "1.5", **options: Any
    ) -> Result:
        """Send a request; return the answer, whatever it is."""
        headers = {"OpenStack-API-Version": f"infra-optim {version}"} if version else {}
        path, _, query = path.partition("?")
        return self._client.simulate_request(
            method,
            path if path.startswith("/") else f"/v1/{path}",
            host="127.0.0.1",
            query_string=query,
            headers={**headers, **options.pop("headers", {})},
            **options,
        )

    def get(self, path: str, **options: Any) -> Any:
        """Return the document at a path, which must be there."""
        answer = self.ask(path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json

    def refused(self, path: str, **options: Any) -> tuple[int, str]:
        """Return status and text of a refusal, from JSON in a text of JSON."""
        answer = self.ask(path, **options)
        fault = json.loads(answer.json["error_message"])
        assert set(fault) == {"faultcode", "faultstring", "debuginfo"}
        return answer.status_code, fault["faultstring"]

    def patch(self, path: str, **fields: Any) -> dict[str, Any]:
        """Return the options of a request that replaces fields."""
        steps = [{"op": "replace", "path": f"/{k}", "value": v} for k, v in fields.items()]
        return {"path": path, "method": "PATCH", "json": steps}


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
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
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] = JSON
    ) -> Answer:
        """Send a request; a body makes it a POST."""
        method = "GET" if body is None else "POST"
        found = requests.request(
            method, self.url + path, data=body, headers=dict(headers), timeout=PATIENCE_S
        )
        return Answer(found.status_code, found.headers, found.content)


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


def basic(user: str, password: str) -> dict[str, str]:
    """Return the headers of a JSON request of a user."""
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Content-Type": "application/json", "Authorization": f"Basic {token}"}


def users_of(actionplan: CommandLine, *names: str) -> dict[str, object]:
    """Return the options of an API with these users, whose password is ``right``."""
    file = actionplan.folder / "htpasswd"
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    file.write_text("".join(f"{name}:{hashed}\n" for name in names), encoding="utf-8")
    return {"auth_strategy": "http_basic", "http_basic_auth_user_file": file}


def kinds(events: list[Any]) -> list[tuple[str, str]]:
    """Return the type of each event, and the state or the verb that it tells."""
    return [(e["type"], e["data"].get("state") or e["data"]["verb"]) for e in events]
