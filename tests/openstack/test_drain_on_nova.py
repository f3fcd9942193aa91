# SPDX-License-Identifier: Apache-2.0
"""Servers of a real Nova are moved by the command line."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from command_line import CommandLine
from nova_lab import NovaLab

from planner.plan.states import ActionState, PlanState

pytestmark = pytest.mark.slow
COUNT = 6


def completed(lab: NovaLab, servers: list[str]) -> int:
    return sum(end == "completed" for server in servers for _, _, end in lab.moves(server))


def moving(lab: NovaLab, servers: list[str]) -> list[str]:
    return [server for server in servers if lab.is_moving(server)]


def test_a_drain_that_was_killed_halfway_goes_on_and_moves_nothing_twice(
    lab: NovaLab, on_lab: CommandLine, hold: Path
) -> None:
    names = [f"web-{i}" for i in range(COUNT)]
    paths = [hold.with_name(f"hold-{name}") for name in names]
    servers = [
        lab.boot(name, "cmp1", lab_lm_seconds="2", lab_hold=str(path))
        for name, path in zip(names, paths, strict=True)
    ]
    holds = dict(zip(servers, paths, strict=True))
    for path in paths:
        path.touch()
    drained = on_lab("drain", "cmp1", "--out", "solution.yaml")
    assert drained.code == 0, drained
    created = on_lab("create", "solution.yaml")
    assert created.code == 0, created
    assert f"openstack {lab.NAME}" in created.out
    with on_lab.start("apply", "last", "--yes") as applying:
        # Nova moves two at once; all others are held when these are completed.
        lab.until(lambda: len(moving(lab, servers)) == 2, "two moves that run")
        for server in moving(lab, servers):
            holds[server].unlink()
        lab.until(lambda: completed(lab, servers) == 2, "two moves that are completed")
        assert applying.poll() is None
        os.kill(applying.pid, signal.SIGKILL)
    for path in paths:
        path.unlink(missing_ok=True)
    for words in (("resume", "last"), ("apply", "last", "--yes")):
        ended = on_lab(*words)
        assert ended.code == 0, ended
    plan = on_lab.plan()
    assert plan.state is PlanState.SUCCEEDED
    assert {action.state for action in plan.actions} <= {
        ActionState.SUCCEEDED,
        ActionState.SKIPPED,
    }
    for server in servers:
        now = lab.server(server)
        assert now.compute_host in ("cmp2", "cmp3")
        assert lab.moves(server) == [("live-migration", now.compute_host, "completed")]
    (service,) = lab.nova.services(binary="nova-compute", host="cmp1")
    assert service.status == "disabled"


def test_a_move_is_aborted_and_one_is_completed_at_once_by_the_operator(
    lab: NovaLab, on_lab: CommandLine
) -> None:
    aborted, completed_at_once = (
        lab.boot(name, "cmp1", lab_lm_seconds="120") for name in ("web-1", "web-2")
    )
    assert on_lab("drain", "cmp1", "--out", "solution.yaml").code == 0
    with on_lab.start("apply", "solution.yaml", "--yes") as applying:
        for server in (aborted, completed_at_once):
            lab.until(lambda s=server: lab.is_moving(s), "a running move")
        for words in (
            ("stop", "last", "--abort", "move-web-1"),
            ("action", "force-complete", "last", "move-web-2"),
        ):
            ended = on_lab(*words)
            assert ended.code == 0, ended
        assert applying.wait() == 3
    assert [end for _, _, end in lab.moves(aborted)] == ["cancelled"]
    assert lab.server(aborted).compute_host == "cmp1"
    assert [end for _, _, end in lab.moves(completed_at_once)] == ["completed"]
    states = {action.name: action for action in on_lab.plan().actions}
    assert "Nova cancelled migration" in str(states["move-web-1"].status_message)
    assert states["move-web-2"].state is ActionState.SUCCEEDED


def test_what_is_moved_after_planning_needs_a_new_plan(lab: NovaLab, on_lab: CommandLine) -> None:
    server = lab.boot("web-1", "cmp1")
    assert on_lab("drain", "cmp1", "--out", "solution.yaml").code == 0
    assert on_lab("create", "solution.yaml").code == 0
    destination = "cmp3" if "destination_node: cmp2" in drained(on_lab) else "cmp2"
    lab.nova.live_migrate_server(server, host=destination, block_migration="auto")
    lab.until(lambda: lab.server(server).compute_host == destination, "the move")
    ended = on_lab("apply", "last", "--yes")
    assert ended.code == 4, ended
    assert "web-1" in ended.out + ended.err
    assert "--accept-drift" in ended.err


def drained(on_lab: CommandLine) -> str:
    return (on_lab.folder / "solution.yaml").read_text(encoding="utf-8")


def test_members_of_a_server_group_change_places_in_the_order_that_nova_demands(
    lab: NovaLab, on_lab: CommandLine, tmp_path: Path
) -> None:
    group = lab.nova.create_server_group(name="apart", policy="anti-affinity")
    servers = [lab.boot(f"db-{i}", f"cmp{i}", group.id) for i in (1, 2)]
    moves = [
        {
            "name": f"move-{i}",
            "action_type": "migrate",
            "resource_id": server,
            "input_parameters": {
                "migration_type": "live",
                "source_node": f"cmp{i}",
                "destination_node": f"cmp{i + 1}",
            },
        }
        for i, server in enumerate(servers, 1)
    ]
    (tmp_path / "moves.json").write_text(json.dumps({"actions": moves}))
    created = on_lab("create", "moves.json", "--facts-from", "openstack")
    assert created.code == 0, created
    [reason] = [action.reason for action in on_lab.plan().actions if action.name == "move-1"]
    rule = "server group apart has at most 1 of its instances on a host"
    assert reason == f"weight 30, set 2 of 2, after move-2: {rule}"
    ended = on_lab("apply", "last", "--yes")
    assert ended.code == 0, ended
    assert [lab.moves(server)[-1][1:] for server in servers] == [
        ("cmp2", "completed"),
        ("cmp3", "completed"),
    ]
    lab.nova.delete_server_group(group)
