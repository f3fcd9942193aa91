# SPDX-License-Identifier: Apache-2.0
"""Plans the maintenance of a host with our planner: ``python planned_maintenance.py FOLDER``.

The uuids are the same in each run. A second plan, which fails, has been run by our engine if a
further argument is given.
"""

from __future__ import annotations

import random
import sys
import uuid
from pathlib import Path
from unittest import mock

from watcher_in_one_process import OneProcessWatcher

SETTINGS = {
    "watcher_applier": {"workflow_engine": "actionplan"},
    "watcher_planner": {"planner": "actionplan"},
    "watcher_workflow_engines.actionplan": {"max_workers": "4", "limits": "node:*=2"},
}


def maintenance():
    """Return the actions of a strategy that empties a host."""
    yield "change_nova_service_state", {"resource_id": "compute-1", "state": "disabled"}
    for number, destination in enumerate(["compute-2", "compute-3", "compute-2"], 1):
        move = {
            "resource_id": f"6a1f000{number}-0000-4000-8000-000000000001",
            "resource_name": f"web-{number}",
            "migration_type": "live",
            "source_node": "compute-1",
            "destination_node": destination,
        }
        yield "migrate", move


def main(folder, *more):
    """Store the plans."""
    watcher = OneProcessWatcher(Path(folder), SETTINGS)
    chance = random.Random(7)
    uuids = (uuid.UUID(int=chance.getrandbits(128), version=4) for _ in iter(int, 1))
    with mock.patch("planner.making.planning.uuid4", side_effect=uuids):
        watcher.schedule("actionplan", *maintenance())
        if more:
            fails = {"message": "m", "fail_execute": True}
            plan = watcher.schedule("actionplan", ("nop", fails), ("sleep", {"duration": 0}))
            watcher.run(plan, "actionplan")


if __name__ == "__main__":
    main(*sys.argv[1:])
