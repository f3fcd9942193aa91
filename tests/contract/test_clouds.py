# SPDX-License-Identifier: Apache-2.0
"""The simulated cloud keeps the contract of clouds, and the suite sees the clouds that do not."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest

from applier.clouds.simulated import SimulatedCloud
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed
from applier.run.plan_cloud import SIMULATED
from applier.testing.cloud_suite import CloudContract, CloudSample
from planner.making import registry

INSTANCE = "00000000-0000-4000-8000-000000000001"
VOLUME = "00000000-0000-4000-8000-000000000002"
ROOM = {"vcpus": 4, "ram_mb": 4096, "disk_gb": 40}
WORLD = {
    "hosts": dict.fromkeys(("a", "b", "idle"), ROOM),
    "flavors": {
        "small": {"vcpus": 1, "ram_mb": 1024, "disk_gb": 10},
        "large": {"vcpus": 2, "ram_mb": 2048, "disk_gb": 20},
    },
    "instances": {INSTANCE: {"name": "web", "host": "a", "flavor": "small"}},
    "pools": {"fast": {"size_gb": 100}, "bulk": {"size_gb": 100}},
    "volume_types": ["ssd", "hdd"],
    "volumes": {VOLUME: {"name": "data", "size_gb": 10, "pool": "bulk", "type": "hdd"}},
}


def sample_of(cloud: Cloud) -> CloudSample:
    return CloudSample(
        cloud=cloud,
        instance=INSTANCE,
        host="a",
        other_host="b",
        flavor="small",
        other_flavor="large",
        idle_host="idle",
        volume=VOLUME,
        other_pool="fast",
        other_type="ssd",
    )


@pytest.fixture
def sample(tmp_path: Path) -> CloudSample:
    path = tmp_path / "cloud.json"
    SimulatedCloud.reset(path, WORLD)
    return sample_of(SimulatedCloud(path, speed=math.inf))


class TestSimulatedCloud(CloudContract):
    def test_it_is_registered_under_its_name(self, sample: CloudSample) -> None:
        assert registry.load(registry.CLOUDS, SIMULATED) is type(sample.cloud)
        assert sample.cloud.name == SIMULATED

    @pytest.mark.parametrize("name", ["live_migrate", "resize", "create", "delete", "power"])
    def test_an_operation_that_lasts_is_stopped(self, tmp_path: Path, name: str) -> None:
        """With time in between, the stop comes while the work is under way."""
        path = tmp_path / "slow.json"
        SimulatedCloud.reset(path, WORLD)
        slow = sample_of(SimulatedCloud(path, speed=1e-6))
        self.test_a_stop_that_is_set_ends_it_early(slow, name)


class Worse(SimulatedCloud):
    """A cloud that breaks the contract in one way after the other."""

    wrong = ""

    @property
    def name(self) -> str:
        return "" if self.wrong == "name" else "worse"

    def host(self, host):
        if self.wrong == "getter" and super().host(host) is None:
            raise ActionFailed(f"there is no host {host}")
        return super().host(host)

    def migrate(self, instance_id, destination, live, stop, output=print):
        if self.wrong == "early":
            return destination
        if self.wrong == "deaf":
            stop = threading.Event()
        return super().migrate(instance_id, destination, live, stop, output)

    def set_host_power(self, host, power, stop, output=print):
        if self.wrong == "library":
            raise KeyError(host)
        super().set_host_power(host, power, stop, output)

    def create_instance(self, name, wanted, stop, output=print):
        if self.wrong == "twice" and self.instance_named(name) is not None:
            return self.instance_named(name)
        if self.wrong == "output":
            output(None)
        return super().create_instance(name, wanted, stop, output)


@pytest.mark.parametrize(
    ("wrong", "check", "operation", "message"),
    [
        ("name", "its_name_is_stable", None, "the name is blank"),
        ("getter", "what_does_not_exist_is_none", None, "there is no host"),
        ("early", "it_ends_when_its_work_is_done", "live_migrate", "its work is not done"),
        ("library", "a_host_with_instances_that_run_is_not_switched_off", None, "KeyError"),
        ("library", "what_is_left_out_is_refused", None, "KeyError"),
        ("twice", "what_is_done_is_not_done_again", "create", "ended with None"),
        ("output", "it_ends_when_its_work_is_done", "create", "is no text"),
    ],
)
def test_a_cloud_that_breaks_the_contract_is_seen(tmp_path, wrong, check, operation, message):
    path = tmp_path / "cloud.json"
    SimulatedCloud.reset(path, WORLD)
    cloud = Worse(path, speed=math.inf)
    cloud.wrong = wrong
    suite = CloudContract()
    suite.LEFT_OUT = frozenset({"power"} if check == "what_is_left_out_is_refused" else ())
    given = () if operation is None else (operation,)
    with pytest.raises((AssertionError, pytest.fail.Exception, ActionFailed, KeyError)) as seen:
        getattr(suite, f"test_{check}")(sample_of(cloud), *given)
    assert message in str(seen.value)


def test_an_operation_that_does_not_end_is_seen(tmp_path):
    path = tmp_path / "cloud.json"
    SimulatedCloud.reset(path, WORLD)
    cloud = Worse(path, speed=1e-6)
    cloud.wrong = "deaf"
    suite = CloudContract()
    suite.PATIENCE_S = 0.05
    with pytest.raises(pytest.fail.Exception, match="still goes on after"):
        suite.test_a_stop_that_is_set_ends_it_early(sample_of(cloud), "live_migrate")
