# SPDX-License-Identifier: Apache-2.0
"""How much of the cloud a plan touches is shown, and bounded by the configuration."""

from __future__ import annotations

import json

from command_line import CommandLine


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
    assert ended.code in (1, 4)


def test_a_wrong_bound_is_refused_at_start(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"blast_radius": "hosts=many"})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "[watcher_applier] blast_radius: hosts=many is not hosts=N" in ended.err
