# SPDX-License-Identifier: Apache-2.0
"""A cloud that defines its name, its facts and moves: all else is read from facts, or refused."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from applier.actions.instance_moves import Migrate, Resize
from applier.contracts import ActionContext
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed, AlreadyDone

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
