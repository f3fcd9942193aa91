# SPDX-License-Identifier: Apache-2.0
"""What the cloud ``openstack`` does with volumes, compared with the records of a real Cinder."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import environments
import one_action
import pytest
from guarded_process import GuardedProcess
from lets_go import LetsGo
from volume_lab import B1P1, B1P2, B2P1, VolumeLab

from applier.clouds.openstack.cloud import OpenStackCloud
from applier.contracts import Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.states import Outcome

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def volume_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VolumeLab]:
    """Return a Cinder that runs, with two backends of two pools."""
    environments.require_made(environments.CINDER)
    with VolumeLab(tmp_path_factory.mktemp("cinder")) as lab:
        yield lab


@pytest.fixture
def lab(volume_lab: VolumeLab, monkeypatch: pytest.MonkeyPatch) -> VolumeLab:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(volume_lab.clouds_yaml))
    return volume_lab


@pytest.fixture
def cloud(lab: VolumeLab) -> Iterator[OpenStackCloud]:
    made = OpenStackCloud(cloud=lab.NAME, reconnect_timeout_s=10)
    yield made
    made.close()


def parameters(volume: Any, **others: str) -> dict[str, str]:
    kind = "migrate" if "destination_node" in others else "retype"
    name = {"resource_id": volume.id, "resource_name": volume.name}
    return {**name, "migration_type": kind, **others}


def test_what_is_there_and_what_is_not(cloud, lab):
    volume = lab.create()
    known = {"name": volume.name, "pool": volume.host, "type": "plain", "instance": None}
    assert cloud.volume(volume.id) == {**known, "task": None}
    assert cloud.volume("00000000-0000-4000-8000-000000000000") is None


@pytest.mark.parametrize("pool", [B1P2, B2P1], ids=["by the driver", "by a copy"])
def test_a_volume_is_moved_once(cloud, lab, stop, pool):
    volume, printed = lab.create(pool=B1P1), []
    before = lab.requests(volume)
    for _ in range(2):
        cloud.migrate_volume(volume.id, pool, None, stop, printed.append)
        assert lab.place(volume) == (pool, "plain", "available", "success")
    assert lab.requests(volume) == before + 1
    [line] = printed
    assert f"{volume.name} to {pool}: request req-" in line


@pytest.mark.parametrize(("kind", "backend"), [("plain", "b1"), ("t2", "b2")])
def test_a_type_is_changed_where_it_is_or_elsewhere(cloud, lab, stop, kind, backend):
    volume = lab.create("t1")
    cloud.migrate_volume(volume.id, None, kind, stop)
    pool, now, status, _ = lab.place(volume)
    assert (now, status) == (kind, "available")
    assert f"@{backend}#" in pool


def test_what_cannot_be_done_is_refused_before_it_begins(cloud, lab, stop):
    volume = lab.create("t1")
    before = lab.place(volume)
    nothing = "00000000-0000-4000-8000-000000000000"
    for volume_id, pool, kind, why in (
        (volume.id, "lab@b1#p9", None, r"refused: there is no such pool in use; known: lab@b1#p1"),
        (volume.id, "lab@b1", None, "refused: there is no such pool in use"),
        (volume.id, None, "tape", "to type tape was refused: .*tape"),
        (nothing, B1P2, None, f"there is no volume {nothing}"),
    ):
        with pytest.raises(ActionFailed, match=why):
            cloud.migrate_volume(volume_id, pool, kind, stop)
    stop.set()
    with pytest.raises(ActionFailed, match="to type t2 was stopped before it began"):
        cloud.migrate_volume(volume.id, None, "t2", stop)
    assert lab.place(volume) == before


@pytest.mark.parametrize(
    ("kind", "metadata", "pool", "wanted"),
    [
        ("plain", {"lab_assist": "fail"}, B1P2, None),
        ("plain", {"lab_copy": "fail"}, B2P1, None),
        ("plain", {"lab_create": "fail"}, B2P1, None),
        ("t1", {}, B2P1, None),
        ("t1", {}, None, "tnone"),
    ],
    ids=["driver", "copy", "no room", "other backend", "no backend"],
)
def test_what_fails_is_told_and_the_volume_is_as_before(
    cloud, lab, stop, kind, metadata, pool, wanted
):
    """Before it, the volume was moved with success, which its migration status still says."""
    volume = lab.create(kind, B1P1)
    if volume.migration_status is None:
        lab.cinder.migrate_volume(volume, host=B1P2)
        lab.until(lambda: lab.volume(volume).migration_status == "success", "its first move")
        pool = B1P1 if pool == B1P2 else pool
    lab.cinder.set_volume_metadata(volume, **metadata)
    before = lab.place(volume)
    assert before[3] == "success"
    with pytest.raises(ActionFailed, match="the volume is available") as told:
        cloud.migrate_volume(volume.id, pool, wanted, stop)
    assert lab.place(volume)[:3] == before[:3]
    assert f"on {before[0]}" in str(told.value)


def test_one_that_is_attached_is_copied_by_nova_alone(cloud, lab, stop):
    """There is none here."""
    volume, server = lab.create(pool=B1P1), "11111111-1111-4111-8111-111111111111"
    lab.cinder.attach_volume(volume, "/dev/vdb", instance=server)
    lab.until(lambda: lab.volume(volume).status == "in-use", "in-use")
    assert cloud.volume(volume.id)["instance"] == server
    with pytest.raises(ActionFailed, match="the volume is in-use"):
        cloud.migrate_volume(volume.id, B2P1, None, stop)


def test_a_move_that_is_stopped_goes_on_and_can_be_undone(cloud, lab, stop):
    volume = lab.create(pool=B1P1)
    with lab.held() as held:
        lab.cinder.set_volume_metadata(volume, **held)
        stopping = threading.Thread(target=stop_when_it_moves, args=(lab, volume, stop))
        stopping.start()
        with pytest.raises(ActionFailed, match="Cinder cannot cancel it"):
            cloud.migrate_volume(volume.id, B1P2, None, stop)
        stopping.join()
        assert cloud.volume(volume.id)["task"] == "migrating"
    work = one_action.action(
        cloud, "volume_migrate", parameters(volume, destination_node=B1P2, source_node=B1P1)
    )
    assert work.revert(threading.Event()) is Outcome.CHANGED
    assert lab.place(volume) == (B1P1, "plain", "available", "success")


def stop_when_it_moves(lab: VolumeLab, volume: Any, stop: threading.Event) -> None:
    lab.until(lambda: lab.volume(volume).migration_status == "migrating", "migrating")
    stop.set()


def test_work_of_a_killed_process_is_followed_and_not_begun_again(cloud, lab, tmp_path):
    volume = lab.create(pool=B1P1)
    before = lab.requests(volume)
    with ExitStack() as holding:
        lab.cinder.set_volume_metadata(volume, **holding.enter_context(lab.held()))
        given = parameters(volume, destination_node=B2P1)
        command = [sys.executable, one_action.__file__, "volume_migrate", json.dumps(given)]
        process = GuardedProcess(command, tmp_path / "out", os.environ)
        process.wait_until("a move", lambda: lab.volume(volume).migration_status == "migrating")
        process.kill()
        again = one_action.action(cloud, "volume_migrate", given)
        assert again.verify() is Verified.NOT_DONE
        again.precheck()
        assert again.execute(LetsGo(holding.close)) is Outcome.CHANGED
    assert lab.requests(volume) == before + 1
    assert lab.place(volume) == (B2P1, "plain", "available", "success")
    assert again.verify() is Verified.DONE
    with pytest.raises(AlreadyDone):
        again.precheck()


@pytest.mark.parametrize(
    ("kind", "metadata", "end"),
    [("t2", {}, None), ("t2", {"lab_copy": "fail"}, "failed: what was under way already ended")],
    ids=["done", "failed"],
)
def test_a_change_of_the_type_that_is_under_way_is_followed(cloud, lab, kind, metadata, end):
    volume = lab.create("t1")
    with ExitStack() as holding:
        held = holding.enter_context(lab.held())
        lab.cinder.set_volume_metadata(volume, **held, **metadata)
        lab.cinder.retype_volume(volume, kind, migration_policy="on-demand")
        before = lab.requests(volume)
        with pytest.raises(ActionFailed, match=end) if end else nullcontext():
            cloud.migrate_volume(volume.id, None, kind, LetsGo(holding.close))
    assert lab.requests(volume) == before
    assert lab.place(volume)[1] == ("t1" if end else kind)


def test_a_change_of_the_type_after_a_move_that_was_under_way_can_fail(cloud, lab):
    volume = lab.create(pool=B1P1)
    with ExitStack() as holding:
        held = holding.enter_context(lab.held())
        lab.cinder.set_volume_metadata(volume, **held, lab_copy="fail")
        lab.cinder.migrate_volume(volume, host=B1P2)
        with pytest.raises(ActionFailed, match="to type t2 failed: it ended"):
            cloud.migrate_volume(volume.id, None, "t2", LetsGo(holding.close))
    assert lab.place(volume) == (B1P2, "plain", "available", "error")


def test_several_are_waited_for_together(cloud, lab, stop):
    volumes = [lab.create(pool=B1P1) for _ in range(2)]
    with lab.held() as held:
        for volume in volumes:
            lab.cinder.set_volume_metadata(volume, **held)
        threads = [
            threading.Thread(target=cloud.migrate_volume, args=(volume.id, B1P2, None, stop))
            for volume in volumes
        ]
        for thread in threads:
            thread.start()
        lab.until(lab.asked_for_changes, "question for all changes")
    for thread in threads:
        thread.join()
    for volume in volumes:
        assert lab.place(volume) == (B1P2, "plain", "available", "success")


def test_one_whose_cinder_was_killed_is_busy_until_an_administrator_resets_it(cloud, lab, stop):
    volume = lab.create(pool=B1P1)
    with lab.held() as held:
        lab.cinder.set_volume_metadata(volume, **held)
        lab.cinder.migrate_volume(volume, host=B1P2)
        lab.until(lambda: lab.volume(volume).migration_status == "migrating", "migrating")
        lab.kill()
    lab.start()
    assert cloud.volume(volume.id)["task"] == "migrating"
    stop.set()
    with pytest.raises(ActionFailed, match=r"was stopped; .* is migrating"):
        cloud.migrate_volume(volume.id, B1P2, None, stop)
    lab.cinder.reset_volume_status(volume, status="available", migration_status="none")
    cloud.migrate_volume(volume.id, B1P2, None, threading.Event())
    assert lab.place(volume)[0] == B1P2
