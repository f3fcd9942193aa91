# SPDX-License-Identifier: Apache-2.0
"""Plans with our planner in Watcher: ``python our_planner.py FOLDER < CASES``.

CASES is a list in JSON of ``settings`` (sections of watcher.conf), ``actions`` (type and
parameters) and ``hosts`` (of instances, in place of Nova). With ``refused``, the database refuses
the row of the last action. For each, it prints what Watcher's database holds of the plan, or the
error and whether the database is as it was.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import sys
import types
from pathlib import Path
from unittest import mock

from watcher_in_one_process import OneProcessWatcher


class Nova:
    """Says where instances are; those that no case names are elsewhere."""

    def __init__(self, hosts):
        self._hosts = hosts

    def find_instance(self, uuid):
        """Return an instance."""
        return types.SimpleNamespace(host=self._hosts.get(uuid, "elsewhere"))

    def get_hostname(self, instance):
        """Return the host of an instance."""
        return instance.host


def configure(path, base, settings):
    """Write the settings of a case into watcher.conf, beside those it began with."""
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    parser.read_string(base)
    parser.read_dict(settings)
    with path.open("w") as file:
        parser.write(file)


def rows(watcher):
    """Return how many rows of each kind the database holds."""
    kinds = ("ActionPlan", "Action", "EfficacyIndicator")
    return {kind: len(getattr(watcher.objects, kind).list(watcher.context)) for kind in kinds}


@contextlib.contextmanager
def refused():
    """Give the last action the UUID of the first."""
    from applier.watcher import planner

    def twice(plan):
        found = action_rows(plan)
        return [*found[:-1], found[-1] | {"uuid": found[0]["uuid"]}]

    action_rows = planner.action_rows
    with mock.patch.object(planner, "action_rows", twice):
        yield


def planned(watcher, case):
    """Plan one case; return what became of it."""
    before = rows(watcher)
    nova = mock.patch("watcher.common.nova_helper.NovaHelper", return_value=Nova(case["hosts"]))
    faults = refused() if case.get("refused") else contextlib.nullcontext()
    with nova, faults, watcher.notifications() as sent:
        try:
            plan = watcher.schedule(case.get("planner", "actionplan"), *case["actions"])
        except Exception as error:
            return {"error": str(error), "left": rows(watcher) == before, "sent": sent}
    found = watcher.outcome(plan)
    parameters = [action.input_parameters for action in watcher.actions(plan)]
    return {**found, "parameters": parameters, "sent": sent}


def main(folder):
    """Plan all cases."""
    watcher = OneProcessWatcher(Path(folder), {})
    path = Path(folder) / "watcher.conf"
    base = path.read_text()
    found = []
    for case in json.load(sys.stdin):
        configure(path, base, case["settings"])
        found.append(planned(watcher, case))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
