# SPDX-License-Identifier: Apache-2.0
"""Where the action types of nodes run, and what they refuse."""

from __future__ import annotations

import jsonschema
import pytest

from applier.actions.markers import Anchor, Skipped
from applier.actions.node_commands import Puppet, Reboot, Shell
from applier.actions.node_files import CopyFiles, Sync, UploadFile
from applier.contracts import ActionContext, Verified
from applier.errors import ActionFailed, AlreadyDone
from applier.machines.open_machines import OpenMachines
from applier.machines.simulated_nodes import SimulationSettings
from planner.plan.model import Touch
from planner.plan.states import Outcome

TYPES = [Puppet, Shell, Sync, UploadFile, CopyFiles, Reboot]
types = pytest.mark.parametrize("action", TYPES, ids=lambda action: action.TYPE)
#: What each type cannot do without, on a real machine.
REQUIRED = {
    Puppet: {"manifest": "/site.pp"},
    Shell: {"command": "true"},
    Sync: {"src": "/a", "dst": "/b"},
    UploadFile: {"path": "/a", "data": ""},
    CopyFiles: {"files": [{"src": "/a", "dst": "/b"}]},
    Reboot: {},
}


def fits(action, parameters):
    return jsonschema.Draft202012Validator(dict(action.SCHEMA)).is_valid(parameters)


@types
def test_a_task_of_a_node_plans_without_what_it_would_need_to_run(action):
    assert fits(action, {"node": "3"})
    assert fits(action, {"node": "3", "address": "root@10.0.0.3:22", "duration_s": 1.5})
    assert fits(action, REQUIRED[action])
    assert fits(action, {"address": "10.0.0.3", **REQUIRED[action]})
    for name in REQUIRED[action]:
        without = {k: v for k, v in REQUIRED[action].items() if k != name}
        assert not fits(action, without)
        assert not fits(action, {"address": "10.0.0.3", **without})


@types
def test_a_place_that_is_none_is_refused_by_the_schema(action):
    addresses = ("", "a b", "-oProxyCommand=x", "-u@h", "u@-h", "a:b:c", "h:", 1)
    wrong = {"node": (3, "", None), "duration_s": (-1, "1", None), "address": addresses}
    places = [{name: value} for name, values in wrong.items() for value in values]
    assert not [p for p in places if fits(action, {"node": "3", **REQUIRED[action], **p})]


@types
def test_what_is_missing_is_refused_where_it_would_really_run(action, context):
    if REQUIRED[action]:
        (first, *_) = REQUIRED[action]
        with pytest.raises(
            ActionFailed, match=f"this {action.TYPE} cannot run: it has no '{first}"
        ):
            action({"node": "3", "address": "10.0.0.3"}, context).precheck()
    action({"node": "3"}, context).precheck()


def test_the_machine_of_the_applier_is_not_restarted(context):
    with pytest.raises(ActionFailed, match="'address'"):
        Reboot({}, context).precheck()


@types
def test_it_touches_its_node_and_takes_its_time_where_it_is_simulated(action):
    assert action.touches({"node": "3", "address": "10.0.0.3"}) == (Touch("node:3"),)
    assert action.touches({"address": "root@10.0.0.3:22"}) == (Touch("node:10.0.0.3"),)
    assert action.touches(REQUIRED[action]) == ()
    assert action.estimate({"node": "3", "duration_s": 60}) == 60
    assert action.estimate({"node": "3"}) == 0
    assert action.estimate({"node": "3", "address": "10.0.0.3", "duration_s": 60}) is None
    assert action.estimate(REQUIRED[action]) is None
    assert action.describe({"node": "3", **REQUIRED[action]}).endswith(" on node 3")


class Waited:
    """A stop that notes for how long somebody waits for it."""

    def __init__(self, ends=False):
        self.waited, self.ends = [], ends

    def is_set(self):
        return False

    def wait(self, timeout=None):
        self.waited.append(timeout)
        return self.ends


def simulated(cloud, **settings) -> ActionContext:
    machines = OpenMachines(simulation=SimulationSettings(**settings))
    return ActionContext(
        cloud=lambda: cloud, output=lambda _: None, machines=machines, name="3/ntp"
    )


@types
def test_on_a_simulated_node_nothing_is_done_and_it_takes_its_time(action, cloud, tmp_path):
    log, stop = tmp_path / "log", Waited()
    context = simulated(cloud, speed=2.0, log=str(log))
    work = action({"node": "3", "duration_s": 60, **REQUIRED[action]}, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert stop.waited == [30.0]
    assert [line.split()[1:] for line in log.read_text().splitlines()] == [
        ["start", "3", "ntp"],
        ["changed", "3", "ntp"],
    ]
    assert work.verify() is Verified.NOT_DONE


@types
def test_a_simulated_task_stops_when_it_is_told_to(action, cloud, tmp_path):
    log = tmp_path / "log"
    context = simulated(cloud, log=str(log))
    work = action({"node": "3", "duration_s": 1e300}, context)
    with pytest.raises(ActionFailed, match=r"stopped after .* 1e\+300 s"):
        work.execute(Waited(ends=True))
    assert log.read_text().splitlines()[-1].split()[1:] == ["stopped", "3", "ntp"]


def test_an_anchor_takes_no_time_and_no_worker(context, stop):
    assert (Anchor.waits_s({}), Anchor.estimate({}), Anchor.TAKES_WORKER) == (0, 0, False)
    assert Anchor.touches({}) == ()
    assert Anchor({}, context).execute(stop) is Outcome.CHANGED


def test_what_is_skipped_says_why(context):
    assert (Skipped.waits_s({}), Skipped.TAKES_WORKER) == (None, False)
    assert not fits(Skipped, {})
    with pytest.raises(AlreadyDone, match="its condition is false"):
        Skipped({"reason": "its condition is false"}, context).precheck()
