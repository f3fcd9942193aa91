# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of action types: a small simulated cloud that takes no time."""

from __future__ import annotations

import math
import threading

import pytest

from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext

WEB_1 = "6a1f0001-0000-4000-8000-000000000001"


@pytest.fixture
def cloud(tmp_path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path / "cloud.json", speed=math.inf)


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def context(cloud, printed) -> ActionContext:
    return ActionContext(cloud=lambda: cloud, output=printed.append)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def web_1() -> dict[str, str]:
    """Return parameters that name an instance: ACTIVE on compute-1, flavor m1.medium."""
    return {"resource_id": WEB_1, "resource_name": "web-1"}


@pytest.fixture
def gone() -> dict[str, str]:
    """Return parameters that name an instance which does not exist."""
    return {"resource_id": "00000000-0000-4000-8000-000000000000", "resource_name": "web-9"}
