# SPDX-License-Identifier: Apache-2.0
"""How much of the cloud a plan touches is shown, and bounded by the configuration."""

from __future__ import annotations

import json

from command_line import CommandLine, Gate

from planner.states import ActionState


def drained(actionplan: CommandLine, *words: str) -> str:
    """Make the plan that empties a host of the simulated cloud; return what is shown."""
    document = actionplan.good("drain", "compute-1")
    return actionplan.good("create", "-", *words, stdin=document)


def test_a_plan_says_of_how_many_hosts_it_touches_some(actionplan: CommandLine) -> None:
    shown = drained(actionplan)
    [line] = [line for line in shown.splitlines() if line.startswith("Touches")]
    assert " of 4 hosts, " in line
    ended = actionplan.inside("apply", "last", stdin="n\n")
    assert ended.code == 1


def test_a_plan_that_touches_too_much_is_refused(actionplan: CommandLine) -> None:
    drained(actionplan)
    for bound in ("hosts=0", "instances=1%"):
        actionplan.configure(watcher_applier={"blast_radius": bound})
        for words in (("apply", "last", "--yes"), ("start", "last")):
            ended = actionplan.inside(*words)
            assert ended.code == 4
            assert " touches " in ended.err
            assert " and at most " in ended.err
    assert json.loads(actionplan.good("list", "-f", "json"))[0]["state"] == "RECOMMENDED"


def test_what_is_touched_at_once_is_limited(actionplan: CommandLine) -> None:
    shown = drained(actionplan, "--set", "blast_radius_at_once=instances=1")
    assert "at-once:instances 1" in shown
    assert "SUCCEEDED" in actionplan.good("apply", "last", "--yes")
    drained(actionplan)
    options = {"blast_radius_at_once": "instances=1"}
    actionplan.configure(watcher_applier=options)
    ended = actionplan.inside("start", "last")
    assert ended.code == 4
    assert "was made before it was bounded what may be touched at once" in ended.err


def test_a_drain_knows_what_its_hosts_and_instances_belong_to(actionplan: CommandLine) -> None:
    drained(actionplan)
    cloud = json.loads(actionplan.simulator.read_text())
    for name, host in cloud["hosts"].items():
        host["labels"] = {"rack": "r1" if name < "compute-3" else "r2"}
    actionplan.simulator.write_text(json.dumps(cloud))
    drained(actionplan)
    extent = json.loads(actionplan.good("show", "last", "-f", "json"))["guards"]["extent"]
    assert extent["rack/r1"][1] == 2
    actionplan.configure(watcher_applier={"blast_radius": "rack=0"})
    ended = actionplan.inside("apply", "last", "--yes")
    assert ended.code == 4
    assert " of rack r" in ended.err
    actionplan.configure(watcher_applier={"blast_radius": "row=1"})
    ended = actionplan.inside("apply", "last", "--yes")
    assert ended.code == 4
    assert "it is not known which row" in ended.err


def test_a_running_plan_does_not_touch_more_at_once_than_it_is_bound_to(
    actionplan: CommandLine, gate: Gate
) -> None:
    steps = [gate.action("a"), {"name": "b", "action_type": "nop"}]
    touching = [{**step, "touches": [f"node:{step['name']}"]} for step in steps]
    file = actionplan.document(
        "plan.yaml", *touching, guards={"blast_radius_at_once": {"hosts": 1}}
    )
    with actionplan.start("apply", file, "--yes") as process:
        gate.wait()
        ended = actionplan.inside("set", "last", "--limit", "at-once:hosts=9")
        assert ended.code == 4
        assert "blast_radius_at_once bounds it: it may be lowered, not raised to 9" in ended.err
        actionplan.good("set", "last", "--limit", "at-once:hosts=1")
        assert {a.name: a.state for a in actionplan.plan().actions}["b"] != ActionState.ONGOING
        gate.let_go()
        process.communicate()
    assert process.returncode == 0


def test_a_wrong_bound_is_refused_at_start(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"blast_radius": "hosts=many"})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "[watcher_applier] blast_radius: hosts=many is not hosts=N" in ended.err
