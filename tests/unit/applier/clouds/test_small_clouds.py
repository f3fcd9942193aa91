# SPDX-License-Identifier: Apache-2.0
"""The file of a simulated cloud, and a cloud that defines its name, its facts and moves alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from applier.actions.instance_moves import Migrate, Resize
from applier.clouds.simulated_document import ONGOING
from applier.clouds.world_file import WorldFile, born
from applier.contracts import ActionContext
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed, AlreadyDone, ConfigurationError


def test_it_is_made_on_first_use_with_its_folders_and_for_its_owner_only(tmp_path):
    path = tmp_path / "deep" / "down" / "cloud.json"
    assert "compute-1" in WorldFile(path).read()["hosts"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in path.parent.iterdir()) == ["cloud.json", "cloud.json.lock"]


def test_a_change_that_raises_changes_nothing_and_lets_others_in(path):
    file = WorldFile(path)
    before = file.read()
    with pytest.raises(KeyError), file.changing() as world:
        world["hosts"].clear() or world["no such table"]
    assert file.read() == before
    with file.changing():
        pass


def test_it_has_a_line_for_each_thing(path):
    world = WorldFile(path).read()
    lines = path.read_text().splitlines()
    assert json.loads(path.read_text()) == world
    assert [line for line in lines if '"name": "web-1"' in line and '"host": "compute-1"' in line]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ('{"hosts": {', "Expecting property name"),
        ("[]", "is not a mapping"),
        ("{}", "the field 'hosts' is missing"),
        ('{"hosts": {}, "flavors": {}, "instances": {}}', "tables are missing"),
        ('{"hosts": {"a": 5}, "flavors": {}, "instances": {}}', "hosts.a: 5 is not a mapping"),
        (b"\xff\xfe", "it is not text"),
    ],
)
def test_a_damaged_file_is_named_with_what_helps(path, text, why):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for use in (WorldFile(path).read, WorldFile(path).changing().__enter__):
        with pytest.raises(ConfigurationError) as refusal:
            use()
        assert str(path) in str(refusal.value)
        assert why in str(refusal.value)
        assert "actionplan simulator reset" in str(refusal.value)
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cloud\.json: Not a directory"):
        WorldFile(tmp_path / "file" / "cloud.json").read()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match="folder: Is a directory"):
        WorldFile(tmp_path / "folder").read()


@pytest.mark.slow
def test_a_process_is_alive_until_it_has_ended_even_before_anybody_waits_for_it():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert born(child.pid) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert born(child.pid) is None, "a zombie"
    finally:
        child.kill()
        child.communicate()
    assert born(child.pid) is None
    assert born(os.getpid()) is not None


# A cloud that defines its name, its facts and moves: all else is read from facts, or refused.

WEB = {"name": "web-1", "host": "a", "flavor": "small", "status": "ACTIVE", "task": None}
MOVE = {"resource_id": "6a1f", "migration_type": "live", "source_node": "a"}


class SmallCloud(Cloud):
    """Two hosts and one instance."""

    name = "small"

    def __init__(self) -> None:
        self.instances = {"6a1f": dict(WEB)}

    def facts(self) -> Mapping[str, Any]:
        enabled = {"status": "enabled", "reason": None}
        return {"instances": self.instances, "services": {"a": enabled, "b": enabled}}

    def migrate(self, instance_id, destination, live, stop, output=print) -> str:
        self.instances[instance_id]["host"] = destination or "b"
        return str(self.instances[instance_id]["host"])


def test_facts_and_migrate_are_enough_to_move_an_instance() -> None:
    cloud = SmallCloud()
    context = ActionContext(cloud=lambda: cloud, output=print)
    move = Migrate({**MOVE, "destination_node": "b"}, context)
    move.precheck()
    move.execute(threading.Event())
    assert cloud.instances["6a1f"]["host"] == "b"
    with pytest.raises(AlreadyDone):
        move.precheck()
    unknown = {**MOVE, "source_node": "b", "destination_node": "c"}
    with pytest.raises(ActionFailed, match="no such host"):
        Migrate(unknown, context).precheck()


def test_what_it_does_not_define_is_refused_in_a_sentence() -> None:
    cloud = SmallCloud()
    context = ActionContext(cloud=lambda: cloud, output=print)
    with pytest.raises(ActionFailed, match="the cloud small cannot resize an instance"):
        Resize({"resource_id": "6a1f", "flavor": "large"}, context).execute(threading.Event())
    with pytest.raises(ActionFailed, match="the cloud small cannot switch a host to off"):
        cloud.set_host_power("a", "off", threading.Event())


def test_a_name_that_two_instances_have_is_refused() -> None:
    cloud = SmallCloud()
    assert cloud.instance_named("web-1") == "6a1f"
    assert cloud.instance_named("web-2") is None
    cloud.instances["6a20"] = dict(WEB)
    with pytest.raises(ActionFailed, match="several instances"):
        cloud.instance_named("web-1")


def test_what_another_process_of_the_same_number_began_is_over(tmp_path):
    file, pid = WorldFile(tmp_path / "cloud.json"), os.getpid()
    since = born(pid)
    with file.changing() as world:
        entries = [dict.fromkeys(ONGOING) | {"pid": pid, "born": at} for at in (since, since - 1)]
        world["ongoing"] = entries
    assert file.read()["ongoing"] == entries[:1]
