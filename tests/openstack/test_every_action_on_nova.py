# SPDX-License-Identifier: Apache-2.0
"""Every action on servers, at once: killed, timed out, aborted, failing, refused on a real Nova."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import CommandLine
from nova_lab import NovaLab

from applier.clouds.openstack.server_fields import WAITS_FOR_CONFIRMATION, task_of
from planner.plan.model import Action
from planner.plan.states import ActionState, PlanState

pytestmark = pytest.mark.slow

MADE = "job-1"
FAILING = dict.fromkeys(("lab_lm", "lab_resize", "lab_power", "lab_spawn"), "fail")
NOTHING = "00000000-0000-4000-8000-000000000000"


class Case(NamedTuple):
    """An action: its type and parameters, its server before and after, its names in Nova."""

    action_type: str
    parameters: Mapping[str, Any]
    host: str
    before: str
    after: str | None
    in_nova: tuple[str, ...]


def move(kind: str, source: str, destination: str) -> dict[str, str]:
    return {"migration_type": kind, "source_node": source, "destination_node": destination}


CASES = {
    "live": Case(
        "migrate", move("live", "cmp1", "cmp2"), "cmp1", "ACTIVE", "ACTIVE", ("live-migration",)
    ),
    "cold": Case(
        *("migrate", move("cold", "cmp3", "cmp2"), "cmp3", "ACTIVE", "ACTIVE"),
        ("migrate", "confirmResize"),
    ),
    "resize": Case(
        "resize", {"flavor": "m1.medium"}, "cmp1", "ACTIVE", "ACTIVE", ("resize", "confirmResize")
    ),
    "stop": Case("stop", {}, "cmp1", "ACTIVE", "SHUTOFF", ("stop",)),
    "start": Case("start", {}, "cmp1", "SHUTOFF", "ACTIVE", ("start",)),
    "shelve": Case("shelve", {}, "cmp1", "ACTIVE", "SHELVED_OFFLOADED", ("shelve",)),
    "unshelve": Case("unshelve", {}, "cmp1", "SHELVED_OFFLOADED", "ACTIVE", ("unshelve",)),
    "delete": Case("delete", {}, "cmp1", "ACTIVE", None, ("delete",)),
}


class Site(NamedTuple):
    """The servers of the cases by name, and the document of their actions."""

    lab: NovaLab
    servers: Mapping[str, str]
    actions: tuple[Mapping[str, Any], ...]

    def is_busy(self) -> bool:
        """Return whether Nova works on all servers, the one that is to be made among them."""
        known = {s.id: s for s in self.lab.nova.servers(all_projects=True)}
        there = [known.get(server) for server in self.servers.values()]
        made = any(server.name == MADE for server in known.values())
        busy = (s is not None and (task_of(s) or s.status == WAITS_FOR_CONFIRMATION) for s in there)
        return made and all(busy)


def prepared(lab: NovaLab, **metadata: str) -> Site:
    """Make a server for each case, in the status it needs; ``metadata`` holds from then on."""
    servers = {name: lab.boot(name, case.host) for name, case in CASES.items()}
    for name, case in CASES.items():
        if case.before == "SHUTOFF":
            lab.nova.stop_server(servers[name])
        elif case.before != "ACTIVE":
            # The metadata of a server that is shelved cannot be set; shelving must not fail.
            known = {"lab_hold", "lab_spawn"}
            lab.mark(servers[name], **{k: v for k, v in metadata.items() if k in known})
            lab.nova.shelve_server(servers[name])
    for name, case in CASES.items():
        lab.until(lambda n=name, c=case: lab.server(servers[n]).status == c.before, name)
        if case.before in ("ACTIVE", "SHUTOFF"):
            lab.mark(servers[name], **metadata)
    actions = [
        {
            "name": name,
            "action_type": case.action_type,
            "resource_id": servers[name],
            "input_parameters": dict(case.parameters),
        }
        for name, case in CASES.items()
    ]
    properties = {
        "flavor": "m1.small",
        "image": "cirros",
        "networks": "none",
        "metadata": metadata,
    }
    wanted = {"type": "OS::Nova::Server", "properties": properties}
    made = {
        "name": "create",
        "action_type": "create_instance",
        "input_parameters": {"name": MADE, "configuration": wanted},
    }
    return Site(lab, servers, (*actions, made))


def configured(on_lab: CommandLine, **policy: float) -> None:
    types = {case.action_type for case in CASES.values()} | {"create_instance"}
    on_lab.configure(
        actionplan={"cloud": "openstack"},
        openstack={"cloud": NovaLab.NAME},
        watcher_applier={"heartbeat_interval_s": 0.5, "on_failure": "continue"},
        watcher_planner={"planner": "workload_stabilization"},
        watcher_workflow_engines__taskflow={"max_workers": 12},
        **{f"watcher_actions__{name}": policy for name in types if policy},
    )


def ended(on_lab: CommandLine) -> dict[str, Action]:
    return {str(action.name): action for action in on_lab.plan().actions}


def in_nova(lab: NovaLab, server: str) -> list[str]:
    """Return the actions on a server that Nova has on record since it was prepared."""
    return [action.action for action in lab.nova.server_actions(server)]


def held(lab: NovaLab, file: Path) -> Site:
    """Return a prepared site, where Nova ends nothing while the file exists."""
    site = prepared(lab, lab_hold=str(file))
    file.touch()
    return site


def test_all_are_killed_halfway_go_on_and_are_done_once(lab, on_lab, hold):
    configured(on_lab)
    site = held(lab, hold)
    before = {name: len(in_nova(lab, server)) for name, server in site.servers.items()}
    on_lab.document("all.yaml", *site.actions)
    with on_lab.start("apply", "all.yaml", "--yes") as applying:
        lab.until(site.is_busy, "work on all servers")
        assert applying.poll() is None
        os.kill(applying.pid, signal.SIGKILL)
    assert on_lab("resume", "last").code == 0
    with on_lab.start("apply", "last", "--yes") as applying:
        on_lab.wait_for(**dict.fromkeys((*CASES, "create"), ActionState.ONGOING))
        hold.unlink()
        assert applying.wait() == 0
    plan = on_lab.plan()
    assert plan.state is PlanState.SUCCEEDED
    assert {a.state for a in plan.actions} == {ActionState.SUCCEEDED}
    for name, case in CASES.items():
        server = site.servers[name]
        if case.after is None:
            assert lab.nova.find_server(server) is None
            continue
        assert lab.server(server).status == case.after, name
        since = in_nova(lab, server)[: -before[name]]
        assert tuple(reversed(since)) == case.in_nova, name
    assert len([s for s in lab.nova.servers(all_projects=True) if s.name == MADE]) == 1


STOPPED = {
    "live": "Nova cancelled migration",
    "cold": "and undone",
    "resize": "and undone",
    "stop": "Nova goes on with its powering-off",
    "start": "Nova goes on with its powering-on",
    "shelve": "Nova goes on with its shelving",
    "unshelve": "Nova goes on with its ",
    "delete": "Nova goes on with it",
    "create": "Nova goes on with it as ",
}
#: What ends while Nova is held: a live migration is cancelled, and these others are left to Nova at
#: once. They begin last: when they are stopped, all are.
HELD = ("live", "stop", "start", "shelve", "unshelve", "delete", "create")


def ended_as_told(site: Site, on_lab: CommandLine, state: ActionState, why: str) -> None:
    """Assert that all were stopped, that it is said what became of them, and that it is so."""
    actions = ended(on_lab)
    for name, told in STOPPED.items():
        assert actions[name].state is state, actions[name]
        message = str(actions[name].status_message)
        assert why in message, message
        assert told in message, message
    lab = site.lab
    for name, end in (("live", "cancelled"), ("cold", "reverted"), ("resize", "reverted")):
        assert lab.server(site.servers[name]).compute_host == CASES[name].host
        assert [status for _, _, status in lab.moves(site.servers[name])] == [end]
    lab.until(lambda: lab.nova.find_server(site.servers["delete"]) is None, "the removal")
    for name in ("stop", "start", "shelve", "unshelve"):
        after = CASES[name].after
        lab.until(lambda n=name, a=after: lab.server(site.servers[n]).status == a, name)


def test_all_are_stopped_by_their_time_out(lab, on_lab, hold):
    """The time is long enough for Nova to have begun with all of them."""
    configured(on_lab, timeout_s=20.5)
    site = held(lab, hold)
    on_lab.document("all.yaml", *site.actions)
    with on_lab.start("apply", "all.yaml", "--yes") as applying:
        on_lab.wait_for(**dict.fromkeys(HELD, ActionState.FAILED))
        hold.unlink()
        assert applying.wait() == 3
    ended_as_told(site, on_lab, ActionState.FAILED, "timed out after 20.5 s")


def test_all_are_aborted(lab, on_lab, hold):
    configured(on_lab)
    site = held(lab, hold)
    on_lab.document("all.yaml", *site.actions)
    with on_lab.start("apply", "all.yaml", "--yes") as applying:
        lab.until(site.is_busy, "work on all servers")
        lab.until(lambda: lab.is_moving(site.servers["live"]), "a live migration that runs")
        for action in site.actions:
            asked = on_lab.inside("stop", "last", "--abort", action["name"])
            assert asked.code == 0, asked
        on_lab.wait_for(**dict.fromkeys(HELD, ActionState.CANCELLED))
        hold.unlink()
        assert applying.wait() == 3
    ended_as_told(site, on_lab, ActionState.CANCELLED, "stopped")


WHY = {
    "live": "its migration record [0-9]+ is failed",
    "cold": "RuntimeError",
    "resize": "RuntimeError",
    "stop": "the stop of stop failed",
    "start": "the start of start failed",
    "shelve": "the shelving of shelve failed",
    "unshelve": "the unshelving of unshelve failed",
    "delete": "the removal of delete failed",
    "create": "the creation of job-1 failed",
}


def test_all_fail_midway_and_say_why(lab, on_lab):
    configured(on_lab)
    site = prepared(lab, **FAILING)
    lab.mark(site.servers["delete"], lab_destroy="fail")
    on_lab.document("all.yaml", *site.actions)
    applied = on_lab("apply", "all.yaml", "--yes")
    assert applied.code == 3, applied
    actions = ended(on_lab)
    for name, why in WHY.items():
        assert actions[name].state is ActionState.FAILED, actions[name]
        assert matches(why, actions[name]), actions[name]


def test_what_cannot_be_begun_is_refused_or_skipped_and_nova_is_not_asked(lab, on_lab):
    """The servers do not exist; what is to be made has no flavor."""
    configured(on_lab)
    wanted = {"type": "OS::Nova::Server", "properties": {"flavor": "m9", "image": "cirros"}}
    actions = [
        {
            "name": name,
            "action_type": case.action_type,
            "resource_id": NOTHING[:-1] + str(number),
            "input_parameters": dict(case.parameters),
        }
        for number, (name, case) in enumerate(CASES.items())
    ]
    parameters = {"name": MADE, "configuration": wanted}
    made = {"name": "create", "action_type": "create_instance", "input_parameters": parameters}
    on_lab.document("all.yaml", *actions, made)
    before = len(lab.requests())
    applied = on_lab("apply", "all.yaml", "--yes", "--accept-drift")
    assert applied.code == 3, applied
    states = {name: action.state for name, action in ended(on_lab).items()}
    assert states.pop("create") is ActionState.FAILED
    assert set(states.values()) == {ActionState.SKIPPED}
    asked = lab.requests()[before:]
    assert [line for line in asked if not line.startswith("GET ")] == []


def matches(pattern: str, action: Action) -> bool:
    return re.search(pattern, str(action.status_message)) is not None
