# SPDX-License-Identifier: Apache-2.0
"""The simulated cloud: operations that take time, by many at once, and what is left of them."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from datetime import datetime, timedelta

import pytest

from applier.clouds.simulated import SimulatedCloud
from applier.errors import ActionFailed, ConfigurationError
from planner import make_plan
from planner.errors import InvalidInput

WEB = [f"6a1f0001-0000-4000-8000-00000000000{n}" for n in (1, 2, 3)]
DB_1 = "6a1f0002-0000-4000-8000-000000000001"
APP_1 = "6a1f0003-0000-4000-8000-000000000001"
DATA_1 = "7b2e0001-0000-4000-8000-000000000001"
X, Y = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
#: A speed at which nothing ever ends.
NEVER = 1e-6


class Looking:
    """A stop that looks into the cloud while an operation takes its time, and then answers."""

    def __init__(self, cloud, answer=False) -> None:
        self.cloud, self.answer = cloud, answer
        self.waited, self.seen = None, None

    def is_set(self) -> bool:
        return False

    def wait(self, timeout=None) -> bool:
        self.waited, self.seen = timeout, self.cloud.snapshot()
        return self.answer


def where(cloud) -> dict[str, str]:
    return {i["name"]: i["host"] for i in cloud.snapshot()["instances"].values()}


@pytest.mark.parametrize(
    ("operate", "seconds"),
    [
        (lambda c, s: c.migrate(WEB[0], "compute-3", True, s), 2),
        (lambda c, s: c.migrate(WEB[0], "compute-3", False, s), 3),
        (lambda c, s: c.resize(WEB[0], "m1.large", s), 3),
        (lambda c, s: c.set_instance_status(WEB[0], "SHUTOFF", s), 1),
        (lambda c, s: c.set_instance_status(WEB[0], "SHELVED", s), 2),
        (lambda c, s: c.delete_instance(WEB[0], s), 1),
        (lambda c, s: c.set_service_status("compute-1", "disabled", None, s), 1),
        (lambda c, s: c.set_host_power("compute-4", "off", s), 3),
        (lambda c, s: c.migrate_volume(DATA_1, "fast", "ssd", s), 4),
    ],
)
def test_each_operation_takes_its_time_and_a_stop_in_its_middle_undoes_it(path, operate, seconds):
    cloud = SimulatedCloud(path, speed=2)
    before = cloud.snapshot()
    stop = Looking(cloud, answer=True)
    with pytest.raises(ActionFailed, match=r"was stopped$"):
        operate(cloud, stop)
    assert stop.waited == seconds / 2
    assert len(stop.seen["ongoing"]) == 1
    assert stop.seen["instances"] == before["instances"], "nothing changes before it is over"
    assert cloud.snapshot() == before
    operate(cloud, Looking(cloud))
    assert cloud.snapshot() != before
    assert cloud.snapshot()["ongoing"] == []


ADDING = """
import sys
from applier.clouds.simulated import SimulatedCloud
cloud = SimulatedCloud(sys.argv[1])
print("ready", flush=True)
input()
for number in range(25):
    cloud.inject({"operation": "stop", "message": f"{sys.argv[2]}-{number}"})
"""

HANGING = """
import sys
from applier.clouds.simulated import SimulatedCloud

class Telling:
    def wait(self, timeout=None):
        print("on its way", flush=True)
        input()
        return False

print(SimulatedCloud(sys.argv[1]).migrate(sys.argv[2], "b", True, Telling()), flush=True)
"""


def python(program, *arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_processes_at_once_lose_no_change(path, cloud):
    names = ("left", "right")
    writers = [python(ADDING, path, name) for name in names]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n", "ready\n"]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for number in range(25):
        cloud.inject({"operation": "stop", "message": f"here-{number}"})
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    messages = [fault["message"] for fault in cloud.snapshot()["faults"]]
    assert sorted(messages) == sorted(f"{n}-{i}" for n in (*names, "here") for i in range(25))


@pytest.mark.slow
def test_room_taken_by_another_process_counts_and_it_can_finish(path, tiny, stop):
    mover = python(HANGING, path, X)
    assert mover.stdout.readline() == "on its way\n"
    with pytest.raises(ActionFailed, match="b has no room for y"):
        tiny.migrate(Y, "b", True, stop)
    assert mover.communicate("\n", timeout=120)[0] == "b\n"
    assert where(tiny) == {"x": "b", "y": "a"}


@pytest.mark.slow
def test_room_taken_by_a_process_that_was_killed_is_free_again(path, tiny, stop):
    mover = python(HANGING, path, X)
    assert mover.stdout.readline() == "on its way\n"
    assert len(tiny.snapshot()["ongoing"]) == 1
    mover.kill()
    mover.communicate(timeout=120)
    assert tiny.snapshot()["ongoing"] == []
    assert where(tiny) == {"x": "a", "y": "a"}
    assert tiny.migrate(Y, "b", True, stop) == "b"


def test_a_reset_in_the_middle_makes_an_operation_fail(path, tiny):
    class Resetting(Looking):
        def wait(self, timeout=None) -> bool:
            SimulatedCloud.reset(path)
            return False

    with pytest.raises(ActionFailed, match="failed: the cloud was reset meanwhile"):
        tiny.migrate(X, "b", True, Resetting(tiny))
    assert "web-1" in where(tiny)


@pytest.mark.parametrize("speed", [0, -1, math.nan])
def test_time_goes_forward(path, speed):
    with pytest.raises(ConfigurationError, match="above 0"):
        SimulatedCloud(path, speed=speed)


class TestFaults:
    def test_a_failure_has_its_message_and_strikes_as_often_as_it_says(self, cloud, stop):
        cloud.inject(
            {"operation": "migrate", "target": "web-1", "times": 1, "message": "no route to host"}
        )
        before = where(cloud)
        with pytest.raises(ActionFailed, match=r"^no route to host$"):
            cloud.migrate(WEB[0], "compute-3", True, stop)
        assert where(cloud) == before
        assert cloud.snapshot()["ongoing"] == []
        assert cloud.migrate(WEB[0], "compute-3", True, stop) == "compute-3"

    def test_an_error_is_no_failure_of_the_operation(self, cloud, stop):
        cloud.inject({"operation": "*", "target": "compute-2", "kind": "error", "message": "gone"})
        with pytest.raises(ConnectionError, match="gone"):
            cloud.migrate(WEB[0], "compute-2", True, stop)
        with pytest.raises(ConnectionError, match="gone"):
            cloud.resize(DB_1, "m1.small", stop)
        cloud.resize(WEB[0], "m1.small", stop)

    def test_a_slow_one_takes_longer(self, path):
        cloud = SimulatedCloud(path, speed=2)
        cloud.inject({"operation": "resize", "kind": "slow", "seconds": 10})
        stop = Looking(cloud)
        cloud.resize(WEB[0], "m1.small", stop)
        assert stop.waited == (3 + 10) / 2
        assert cloud.instance(WEB[0])["flavor"] == "m1.small"

    def test_one_that_hangs_lasts_until_it_is_stopped(self, cloud, stop):
        cloud.inject({"operation": "migrate", "kind": "hang"})
        threading.Timer(0.05, stop.set).start()
        with pytest.raises(ActionFailed, match="was stopped"):
            cloud.migrate(WEB[0], "compute-3", True, stop)

    def test_what_is_refused_anyway_does_not_use_a_fault_up(self, cloud, stop):
        cloud.inject({"operation": "migrate", "times": 1})
        with pytest.raises(ActionFailed, match="there is no host compute-9"):
            cloud.migrate(WEB[0], "compute-9", True, stop)
        assert cloud.snapshot()["faults"][0]["times"] == 1

    def test_one_that_names_nothing_is_refused_and_not_kept(self, cloud):
        with pytest.raises(ConfigurationError, match="did you mean 'web-1'"):
            cloud.inject({"operation": "migrate", "target": "wb-1"})
        assert cloud.snapshot()["faults"] == []

    def test_one_for_an_instance_that_is_gone_harms_nobody(self, path, cloud, stop):
        cloud.inject({"operation": "migrate", "target": "app-1"})
        cloud.delete_instance(APP_1, stop)
        again = SimulatedCloud(path, speed=math.inf)
        again.inject({"operation": "migrate", "target": "web-1"})
        assert len(again.snapshot()["faults"]) == 2


class TestReset:
    def test_it_puts_a_fresh_cloud_in_place_of_a_damaged_one(self, path):
        path.write_text("{")
        SimulatedCloud.reset(path)
        assert SimulatedCloud(path).host("compute-1")["power"] == "on"


def test_the_facts_are_the_whole_cloud_with_what_is_free(tiny):
    facts = tiny.facts()
    assert facts["cloud"] == tiny.name
    assert datetime.fromisoformat(facts["at"]).utcoffset() == timedelta(0)
    x = "00000000-0000-4000-8000-000000000001"
    assert facts["instances"][x] == tiny.instance(x)
    assert facts["hosts"]["a"]["free"] == {"vcpus": 0, "ram_mb": 0, "disk_gb": 0}
    assert facts["hosts"]["b"]["free"] == {"vcpus": 1, "ram_mb": 2048, "disk_gb": 20}
    assert {name: s["state"] for name, s in facts["services"].items()} == {
        "a": "up",
        "b": "up",
        "c": "down",
    }
    assert {"name": "one", **facts["flavors"]["one"]} == tiny.flavor("one")


def test_the_facts_are_those_of_a_document(tiny):
    actions = [{"action_type": "nop"}]
    plan = make_plan({"actions": actions, "facts": tiny.facts()})
    assert [a.action_type for a in plan.actions] == ["nop"]
    with pytest.raises(InvalidInput, match="networks"):
        make_plan({"actions": actions, "facts": {**tiny.facts(), "networks": {}}})
