# SPDX-License-Identifier: Apache-2.0
"""What an operator does with Watcher, by its own client: ``openstack optimize``."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import environments
from guarded_process import PATIENCE_S

#: A host, its status, one of its servers and the state of that; no server is None, None.
Seen = tuple[str | None, ...]
ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


def client_environment(folder: Path) -> dict[str, str]:
    """Return the environment of clients of a lab: nothing of the user's own clouds."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    clouds = {"OS_CLIENT_CONFIG_FILE": str(folder / "nova" / "clouds.yaml"), "OS_CLOUD": "lab"}
    return {**own, **clouds, "HOME": str(folder)}


class Optimize:
    """``openstack optimize`` of one lab. Waiting asks the API itself: a client takes seconds."""

    def __init__(self, environment: Mapping[str, str], keystone: str, url: str) -> None:
        self._environment, self._keystone, self._url = environment, keystone, url
        self._header: dict[str, str] = {}

    def __call__(self, *words: str) -> Any:
        """Run a command of the client; return the JSON that it prints, None for nothing."""
        client = str(environments.WATCHER.program("openstack"))
        ended = subprocess.run(
            [client, "optimize", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )
        assert ended.returncode == 0, f"{' '.join(words)}: {ended.stderr}"
        return json.loads(ended.stdout) if ended.stdout.strip() else None

    def plan(self, goal: str, strategy: str, **parameters: str) -> str:
        """Run an audit to its end; return the UUID of the plan it recommends."""
        pairs = [word for pair in parameters.items() for word in ("-p", "=".join(pair))]
        chosen = ("--goal", goal, "--strategy", strategy)
        audit = self("audit", "create", *chosen, *pairs, "-f", "json")["UUID"]
        ended = self.wait("audits", audit)
        assert ended["state"] == "SUCCEEDED", ended
        [plan] = self.get(f"action_plans?audit_uuid={audit}")["action_plans"]
        return str(plan["uuid"])

    def start(self, plan: str) -> None:
        """Start a plan."""
        self("actionplan", "start", plan, "-f", "json")

    def cancel(self, plan: str) -> None:
        """Cancel a plan."""
        self("actionplan", "cancel", plan, "-f", "json")

    def actions(self, plan: str) -> list[dict[str, Any]]:
        """Return the actions of a plan, as the API gives them in detail."""
        found = self.get(f"actions/detail?action_plan_uuid={plan}&limit=1000")["actions"]
        return list(found)

    def wait(self, kind: str, uuid: str, states: Container[str] = ENDED) -> dict[str, Any]:
        """Return an audit or an action plan once it is in one of some states."""
        end = time.monotonic() + PATIENCE_S
        while (found := self.get(f"{kind}/{uuid}"))["state"] not in states:
            assert time.monotonic() < end, found
            time.sleep(0.2)
        return dict(found)

    def seen(self) -> set[Seen]:
        """Return what the decision engine knows."""
        rows = self.get("data_model?data_model_type=compute")["context"]
        names = ("node_hostname", "node_status", "server_uuid", "server_state")
        return {tuple(map(row.get, names)) for row in rows}

    def wait_until_seen(self, there: set[Seen]) -> None:
        """Return once the decision engine knows what there is in Nova."""
        end = time.monotonic() + PATIENCE_S
        while (seen := self.seen()) != there:
            assert time.monotonic() < end, f"there is {there}, seen is {seen}"
            time.sleep(0.5)

    def get(self, path: str) -> Any:
        """Return what the API says at a path below /v1."""
        if not self._header:
            self._header = {"X-Auth-Token": self._token()}
        version = {"OpenStack-API-Version": "infra-optim latest"}
        request = urllib.request.Request(  # noqa: S310
            f"{self._url}/v1/{path}", headers={**self._header, **version}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return json.load(answer)

    def _token(self) -> str:
        user = {"name": "admin", "password": "x", "domain": {"id": "default"}}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
        request = urllib.request.Request(f"{self._keystone}/v3/auth/tokens", data=body)  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return str(answer.headers["X-Subject-Token"])
