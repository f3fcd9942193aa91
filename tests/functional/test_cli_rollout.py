# SPDX-License-Identifier: Apache-2.0
"""Two nodes at a time, also over a kill; and the pause after a canary."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
import yaml
from command_line import CommandLine, wait_until

from planner.plan.states import ActionState, PlanState

NODES = [f"web-{n}" for n in range(1, 7)]
SERIAL = 2


def written(actionplan: CommandLine, **fields: Any) -> str:
    rest = {"node": "{node}", "duration_s": 0.2, "command": "true"}
    value = {
        "kind": "rollout",
        "name": "patch",
        "nodes": NODES,
        "serial": SERIAL,
        "steps": [{"name": "upgrade", "shell": rest}, {"name": "check", "shell": rest}],
        **fields,
    }
    (actionplan.folder / "patch.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    return "patch.yaml"


def deployed(actionplan: CommandLine) -> str:
    """Write a deployment of the same steps after one of another block, on the same nodes."""
    chain, before = [], ""
    for name in ("prepare", "upgrade", "check"):
        task = {"id": name, "type": "shell", "version": 2, "role": "web", "requires": before or []}
        chain.append({**task, "parameters": {"cmd": "true"}})
        before = name
    value = {
        "kind": "deployment",
        "name": "patch",
        "serial": [{"name": "patch", "tasks": ["upgrade", "check"], "nodes": SERIAL}],
        "nodes": [{"uid": node, "roles": "web"} for node in NODES],
        "durations": dict.fromkeys(("prepare", "upgrade", "check"), 0.2),
        "tasks": chain,
    }
    (actionplan.folder / "deployment.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    return "deployment.yaml"


def most_under_way(actionplan: CommandLine) -> int:
    """Return how many nodes were between their first begin and their last end at most."""
    times: dict[str, list[datetime]] = {}
    for action in actionplan.plans()[0].actions:
        if not action.places:
            continue
        shown = actionplan.good("action", "show", "last", str(action.name), "-f", "json")
        for attempt in json.loads(shown)["attempts_made"]:
            node = times.setdefault(action.places[0].member, [])
            node += [datetime.fromisoformat(attempt[key]) for key in ("started_at", "ended_at")]
    # An end makes room for a begin at the same moment.
    changes = sorted([(min(t), 1) for t in times.values()] + [(max(t), -1) for t in times.values()])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def test_the_plan_pauses_after_the_canary_and_goes_on_when_somebody_looked(actionplan):
    file = written(actionplan, canary={}, steps=[{"nop": "x"}, {"name": "y", "nop": "y"}])
    out = actionplan("apply", file, "--yes").out
    assert "the plan pauses after 1" in out
    plan = actionplan.plan()
    assert plan.state is PlanState.PAUSED
    assert {a.name for a in plan.actions if a.state is ActionState.SUCCEEDED} == {
        "web-1/nop",
        "web-1/y",
    }
    assert "the canary" in actionplan.good("history", "last")
    actionplan.good("apply", "last", "--yes")
    assert actionplan.plan().state is PlanState.SUCCEEDED


@pytest.mark.long
@pytest.mark.parametrize("write", [written, deployed])
def test_after_a_kill_half_done_nodes_are_finished_first_and_the_number_is_kept(actionplan, write):
    actionplan.configure(actionplan={"simulator_speed": 1})
    actionplan.good("create", write(actionplan))

    def done() -> int:
        held = [a for a in actionplan.plan().actions if a.places]
        return sum(a.state is ActionState.SUCCEEDED for a in held)

    for _ in range(2):
        before = done()
        with actionplan.start("apply", "last", "--yes") as process:
            wait_until(lambda before=before: done() > before)
            process.kill()
        assert actionplan.plan().state is PlanState.ONGOING
        actionplan.good("resume", "last")
    actionplan.good("apply", "last", "--yes")
    assert actionplan.plan().state is PlanState.SUCCEEDED
    assert most_under_way(actionplan) <= SERIAL
