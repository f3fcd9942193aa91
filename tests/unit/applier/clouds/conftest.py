# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of clouds."""

from __future__ import annotations

import math
import threading

import pytest

from applier.clouds.simulated import SimulatedCloud


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cloud.json"


@pytest.fixture
def cloud(path) -> SimulatedCloud:
    """Return the packaged small cloud, in which operations take no time."""
    return SimulatedCloud(path, speed=math.inf)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def tiny(path) -> SimulatedCloud:
    """Return a cloud where a holds two instances and is full, b has room for one, c is off."""
    room = {"vcpus": 2, "ram_mb": 2048, "disk_gb": 20}
    one = {"vcpus": 1, "ram_mb": 1024, "disk_gb": 10}
    SimulatedCloud.reset(
        path,
        {
            "hosts": {"a": room, "b": {**room, "vcpus": 1}, "c": {**room, "power": "off"}},
            "flavors": {"one": one, "all": room},
            "instances": {
                "00000000-0000-4000-8000-000000000001": {"name": "x", "host": "a", "flavor": "one"},
                "00000000-0000-4000-8000-000000000002": {"name": "y", "host": "a", "flavor": "one"},
            },
        },
    )
    return SimulatedCloud(path, speed=math.inf)


@pytest.fixture
def quick(monkeypatch) -> None:
    """Let the parts of the OpenStack cloud look again after a moment."""
    from applier.clouds.openstack import calls, moves, power, state_waits

    for module in (calls, moves, power, state_waits):
        for name in ("_FIRST_S", "_LONGEST_S", "_INTERVAL_S", "_BETWEEN_S"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, 0.001)
