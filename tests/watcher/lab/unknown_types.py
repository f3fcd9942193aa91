# SPDX-License-Identifier: Apache-2.0
"""Runs plans with actions of a type that our engine does not know: ``unknown_types.py FOLDER``.

It prints as JSON what each of two runs has logged. The first has two plans of three actions of the
type ``traced``, run by several workers; before the second, the option ``touches`` names the type.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from watcher_in_one_process import OneProcessWatcher

OURS = "watcher_workflow_engines.actionplan"


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.told = []

    def emit(self, record):
        """Keep a line."""
        self.told.append(record.getMessage())


def main(folder):
    """Run the plans."""
    from watcher.applier.loading.default import DefaultWorkFlowEngineLoader

    watcher = OneProcessWatcher(Path(folder), {OURS: {"max_workers": "4"}})
    DefaultWorkFlowEngineLoader().load("actionplan", context=None, applier_manager=None)
    logging.disable(logging.NOTSET)
    lines = Lines()
    logging.getLogger("applier.watcher").addHandler(lines)
    found = []
    for touches in ("", "traced: instance:{instance}"):
        watcher.conf.set_override("touches", touches, OURS)
        for _ in range(2):
            actions = [("traced", {"instance": str(i)}, []) for i in range(3)]
            plan = watcher.plan(*actions, ("nop", {"message": "m"}, [0]))
            watcher.run(plan, "actionplan")
            assert watcher.outcome(plan)["state"] == "SUCCEEDED"
        found.append(lines.told.copy())
        lines.told.clear()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
