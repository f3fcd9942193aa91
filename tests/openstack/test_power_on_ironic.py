# SPDX-License-Identifier: Apache-2.0
"""What the cloud ``openstack`` does with the power of hosts, compared with what a real Ironic did.

A real Nova has the instances on them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator

import environments
import one_action
import pytest
from environments import Environment
from guarded_process import GuardedProcess
from nova_lab import NovaLab
from power_lab import PowerLab

from applier.clouds.openstack.cloud import OpenStackCloud
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.states import Outcome

pytestmark = pytest.mark.slow
ON, OFF, SOFT = "power on", "power off", "soft power off"


@pytest.fixture(scope="module")
def ironic_environment() -> Environment:
    return environments.require_made(environments.IRONIC)


@pytest.fixture(scope="module")
def power_lab(
    ironic_environment: Environment, nova_lab: NovaLab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PowerLab]:
    """Return an Ironic that runs, in a cloud with the Nova of the lab."""
    nova = nova_lab.connection.config.get_session().get_endpoint(service_type="compute")
    with PowerLab(tmp_path_factory.mktemp("ironic"), nova) as lab:
        yield lab


@pytest.fixture
def lab(power_lab: PowerLab, nova_lab: NovaLab, monkeypatch: pytest.MonkeyPatch) -> PowerLab:
    """Return the lab: there is neither a node nor an instance."""
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(power_lab.clouds_yaml))
    power_lab.reset()
    nova_lab.reset()
    return power_lab


@pytest.fixture
def opened() -> Iterator[Callable[..., OpenStackCloud]]:
    """Return the function that opens the cloud with options."""
    made: list[OpenStackCloud] = []

    def open_cloud(**options: float) -> OpenStackCloud:
        made.append(OpenStackCloud(cloud="lab", **options))
        return made[-1]

    yield open_cloud
    for cloud in made:
        cloud.close()


@pytest.fixture
def cloud(lab: PowerLab, opened: Callable[..., OpenStackCloud]) -> OpenStackCloud:
    return opened()


def test_a_host_goes_off_and_on_again_once(cloud, lab, stop):
    lab.create("cmp1")
    printed: list[str] = []
    for power in ("on", "off", "off", "on"):
        cloud.set_host_power("cmp1", power, stop, printed.append)
        assert cloud.host("cmp1") == {"power": power}
        assert lab.power("cmp1") == (f"power {power}", None)
    assert lab.told("cmp1") == [OFF, ON]
    assert [line.split(",")[0] for line in printed] == [
        "switching off cmp1: power off",
        "switching on cmp1: power on",
    ]


@pytest.mark.parametrize(
    ("extra", "told"),
    [({}, [SOFT]), ({"lab_soft": "fail"}, [SOFT, OFF]), ({"lab_soft": "refuse"}, [OFF])],
    ids=["obeyed", "not obeyed", "not known"],
)
def test_a_soft_power_off_comes_before_a_hard_one(lab, opened, stop, extra, told):
    lab.create("cmp1", **extra)
    printed: list[str] = []
    opened(soft_power_off_s=7).set_host_power("cmp1", "off", stop, printed.append)
    assert lab.told("cmp1") == told
    assert ("lab_soft=fail within 7 s" in "".join(printed)) is (told == [SOFT, OFF])
    assert ("not support the power state" in "".join(printed)) is (told == [OFF])
    assert lab.power("cmp1") == (OFF, None)


@pytest.mark.parametrize("soft_s", [0, 7])
def test_a_change_that_fails_says_why(lab, opened, stop, soft_s):
    lab.create("cmp1", lab_power="fail")
    with pytest.raises(ActionFailed, match=r"switching off cmp1 failed: .*lab_power=fail"):
        opened(soft_power_off_s=soft_s).set_host_power("cmp1", "off", stop)
    assert lab.power("cmp1") == (ON, None)


def test_a_host_with_instances_that_run_is_not_switched_off(cloud, lab, nova_lab, stop):
    lab.create("cmp1")
    stopped, moved = (nova_lab.boot(name, "cmp1") for name in ("web-1", "web-2"))
    with pytest.raises(ActionFailed, match=r"cmp1 still runs web-1, web-2$"):
        cloud.set_host_power("cmp1", "off", stop)
    cloud.set_instance_status(stopped, "SHUTOFF", stop)
    with pytest.raises(ActionFailed, match=r"cmp1 still runs web-2$"):
        cloud.set_host_power("cmp1", "off", stop)
    assert lab.told("cmp1") == []
    cloud.migrate(moved, "cmp2", True, stop)
    cloud.set_host_power("cmp1", "off", stop)
    assert lab.told("cmp1") == [OFF]


def test_a_host_to_which_an_instance_moves_is_not_switched_off(cloud, lab, nova_lab, stop):
    lab.create("cmp2")
    server = nova_lab.boot("web-1", "cmp1", lab_lm_seconds="60")
    nova_lab.nova.live_migrate_server(server, host="cmp2", block_migration="auto")
    nova_lab.until(lambda: nova_lab.moves(server) != [], "a record of the move")
    with pytest.raises(ActionFailed, match=r"on the way to cmp2: web-1$"):
        cloud.set_host_power("cmp2", "off", stop)
    assert lab.told("cmp2") == []


def test_a_host_that_nova_does_not_know_by_its_name_is_not_switched_off(cloud, lab, stop):
    lab.create("cmp1.example.org")
    with pytest.raises(ActionFailed, match=r"no host cmp1\.example\.org "):
        cloud.set_host_power("cmp1.example.org", "off", stop)
    assert lab.told("cmp1.example.org") == []


def test_what_ironic_cannot_do_is_refused(cloud, lab, nova_lab, opened, monkeypatch, stop):
    lab.create("cmp1")
    with pytest.raises(ActionFailed, match="suspending cmp1 was refused"):
        cloud.set_host_power("cmp1", "suspended", stop)
    assert cloud.host("cmp3") == {"power": "on"}
    assert cloud.host("cmp9") is None
    with pytest.raises(ActionFailed, match=r"Ironic has no node cmp3$"):
        cloud.set_host_power("cmp3", "off", stop)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(nova_lab.clouds_yaml))
    without = opened()
    assert without.host("cmp1") == {"power": "on"}
    with pytest.raises(ActionFailed, match=r"on cmp1 was refused: .* no Ironic"):
        without.set_host_power("cmp1", "on", stop)


def test_a_change_that_is_stopped_goes_on(cloud, lab, stop):
    with lab.held() as held:
        lab.create("cmp1", **held)
        stopping = threading.Thread(target=stop_when_it_changes, args=(lab, stop))
        stopping.start()
        with pytest.raises(ActionFailed, match=r"was stopped; .* power off$"):
            cloud.set_host_power("cmp1", "off", stop)
        stopping.join()
        assert cloud.host("cmp1") == {"power": "unknown"}
    cloud.set_host_power("cmp1", "off", threading.Event())
    assert lab.told("cmp1") == [OFF]


def stop_when_it_changes(lab: PowerLab, stop: threading.Event) -> None:
    lab.until(lambda: lab.power("cmp1") == (ON, OFF), "change of the power")
    stop.set()


def test_a_change_by_a_killed_process_is_followed_and_not_begun_again(cloud, lab, stop, tmp_path):
    given = {"resource_id": "cmp1", "state": "off"}
    with lab.held() as held:
        lab.create("cmp1", **held)
        command = [sys.executable, one_action.__file__, "change_node_power_state"]
        process = GuardedProcess([*command, json.dumps(given)], tmp_path / "out", os.environ)
        process.wait_until("a change", lambda: lab.power("cmp1") == (ON, OFF))
        process.kill()
        again = one_action.action(cloud, "change_node_power_state", given)
        assert again.verify() is Verified.NOT_DONE
        again.precheck()
    assert again.execute(stop) is Outcome.CHANGED
    assert lab.told("cmp1") == [OFF]
    assert again.verify() is Verified.DONE
    with pytest.raises(AlreadyDone):
        again.precheck()
    assert again.revert(stop) is Outcome.CHANGED
    assert lab.told("cmp1") == [OFF, ON]
