# SPDX-License-Identifier: Apache-2.0
"""The application of the HTTP API on a record in a file, asked as Watcher's client asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from applier.api import routing
from applier.api.main import configured
from applier.assembly import Assembly
from applier.storage.sql import SqlStore

HOST = "127.0.0.1"


class Client:
    """Asks the application; paths are below /v1 unless they begin with a slash."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._client = falcon.testing.TestClient(routing.make(assembly))

    @property
    def store(self) -> SqlStore:
        """The record that the application uses."""
        return self.assembly.store

    def ask(
        self, path: str, *, method: str = "GET", version: str | None = "1.5", **options: Any
    ) -> falcon.testing.Result:
        """Send a request; return the answer, whatever it is."""
        headers = {"OpenStack-API-Version": f"infra-optim {version}"} if version else {}
        path, _, query = path.partition("?")
        return self._client.simulate_request(
            method,
            path if path.startswith("/") else f"/v1/{path}",
            host=HOST,
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


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client of an application with an empty record."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    file = tmp_path / "watcher.conf"
    record = f"sqlite:///{tmp_path}/plans.db"
    file.write_text(f"[actionplan]\nconnection = {record}\nsimulator_speed = 1000\n")
    conf = configured(["--config-file", str(file)], pytest.fail)
    with closing(Assembly(conf)) as assembly:
        yield Client(assembly)
