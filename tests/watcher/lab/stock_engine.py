# SPDX-License-Identifier: Apache-2.0
"""Plans and applies with Watcher's own planner and engine: ``python stock_engine.py FOLDER``.

It prints as JSON how each plan ended, and the numbers of notifications.
"""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path

from watcher_in_one_process import OneProcessWatcher


def nop(**faults):
    """Return the parameters of a nop, with faults that Watcher has for its tests."""
    return {"message": "m", **faults}


def main(folder):
    """Run three plans."""
    watcher = OneProcessWatcher(
        Path(folder), {"watcher_planners.weight": {"weights": "nop:1,sleep:2"}}
    )
    failing = watcher.plan(
        ("nop", nop(fail_execute=True), []),
        ("nop", nop(), [0]),
        ("nop", nop(skip_pre_condition=True), []),
    )
    planned = watcher.schedule("weight", ("nop", nop()), ("nop", nop()), ("sleep", {"duration": 0}))
    found = {"recommended": watcher.outcome(planned)}
    with watcher.notifications() as sent:
        watcher.run(failing, "taskflow")
    watcher.run(planned, "taskflow")
    found |= {"failing": watcher.outcome(failing), "planned": watcher.outcome(planned)}
    print(json.dumps({**found, "sent": collections.Counter(sent)}))


if __name__ == "__main__":
    main(sys.argv[1])
