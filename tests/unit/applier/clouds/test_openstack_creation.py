# SPDX-License-Identifier: Apache-2.0
"""Two servers of one name are never created, even if the answer of Nova is lost."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.clouds.openstack import calls, state_waits
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.server_states import Creation

LOST = [
    keystone.ConnectFailure("lost"),
    exceptions.HttpException(message="Bad Gateway", http_status=502),
    exceptions.HttpException(message="Gateway Timeout", http_status=504),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again after a moment."""
    for name in ("_FIRST_S", "_LONGEST_S"):
        monkeypatch.setattr(calls, name, 0.001)
        monkeypatch.setattr(state_waits, name, 0.001)


class Nova:
    """Answers a creation with an error; the server appears after ``lists`` lists, None: never."""

    def __init__(self, error: Exception, lists: int | None) -> None:
        self._error, self._lists, self.requests = error, lists, 0

    def find_flavor(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(id="f1")

    def create_server(self, **_: object) -> None:
        self.requests += 1
        raise self._error

    def servers(self, **_: object) -> list[SimpleNamespace]:
        if self.requests and self._lists:
            self._lists -= 1
        return [self.get_server("s")] if self._lists == 0 else []

    def get_server(self, server_id: str) -> SimpleNamespace:
        return SimpleNamespace(id=server_id, name="job-1", status="ACTIVE", task_state=None)

    def server_actions(self, _server_id: str) -> list[object]:
        return []


def create(nova: Nova, patience_s: float) -> str:
    creation = Creation(Compute(nova, Calls(patience_s)), images=None)
    return creation.create("job-1", {"flavor": "m1"}, threading.Event(), lambda _: None)


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_server_that_appears_after_a_lost_answer_is_the_one(error):
    nova = Nova(error, lists=5)
    assert create(nova, patience_s=120.0) == "s"
    assert nova.requests == 1


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_creation_without_an_answer_and_a_server_is_in_doubt(error):
    nova = Nova(error, lists=None)
    with pytest.raises(ConnectionError):
        create(nova, patience_s=0.05)
    assert nova.requests == 1
