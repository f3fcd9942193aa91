# SPDX-License-Identifier: Apache-2.0
"""What a plan would take, what other settings and faults would make of it, and why."""

from __future__ import annotations

import json
from typing import Any

from command_line import EXAMPLE, ROOT, CommandLine, check_golden

WEB = "6a1f0001-0000-4000-8000-000000000001"
TEN_HOSTS = str(ROOT / "doc" / "how-to" / "ten-hosts.yaml")


def as_json(actionplan: CommandLine, *words: str) -> Any:
    """Return what a command that succeeds writes as JSON."""
    return json.loads(actionplan.good(*words, "-f", "json"))


def test_a_forecast_is_told_in_lines_and_in_json_and_nothing_is_kept(actionplan):
    check_golden("simulate", actionplan("simulate", str(EXAMPLE)).out)
    actions = ({"name": "a", "estimate_s": 30}, {"name": "b", "estimate_s": 10}, {"name": "c"})
    file = actionplan.document(
        "plan.yaml",
        *({"action_type": "nop", "estimate_s": 5, **action} for action in actions),
        options={"parallelization": {"nop": 2}},
    )
    value = as_json(actionplan, "simulate", file)
    assert (value["makespan_s"], value["lower_bound_s"]) == (35, 35)
    keys = ("name", "start_s", "end_s", "slack_s", "critical")
    assert [tuple(row[key] for key in keys) for row in value["actions"]] == [
        *(("a", 0, 30, 0, True), ("b", 0, 10, 20, False), ("c", 30, 35, 0, True)),
    ]
    assert actionplan.plans() == []


def test_why_and_show_name_what_decides_the_start_and_what_a_failure_costs(actionplan):
    actions = ({"name": n, "action_type": "stop", "resource_id": WEB} for n in "ab")
    actionplan.good("create", actionplan.document("plan.yaml", *actions))
    assert "It starts at once" in actionplan.good("why", "last", "a")
    assert "It needs a:" in actionplan.good("why", "last", "b")
    assert "if it fails 1 action would not run: b" in actionplan.good("action", "show", "last", "a")
    assert as_json(actionplan, "action", "show", "last", "a")["not_run_if_it_fails"] == ["b"]
    actions = ({"name": n, "action_type": "nop", "estimate_s": 9} for n in "ab")
    options = {"parallelization": {"nop": 2}}
    actionplan.good("create", actionplan.document("plan.yaml", *actions, options=options))
    busy = actionplan.good("why", "last", "b", "--set", "max_workers=1")
    assert "All 1 workers are busy until then" in busy


def test_a_rehearsal_heeds_guards_and_says_what_it_does_not_rehearse(actionplan):
    words = ("simulate", TEN_HOSTS, "--inject", "fail:node:host-1", "--times", "3")
    for settings, states, stopped_by in (
        ({}, {"FAILED": 3}, {}),
        ({"failure_budget": "nop=1 in 1s"}, {"PAUSED": 3}, {"failure_budget": 3}),
    ):
        actionplan.configure(watcher_applier=settings)
        found = as_json(actionplan, *words)
        assert (found["states"], found["stopped_by"]) == (states, stopped_by)
        assert found["not_rehearsed"] == []
    actionplan.configure(
        watcher_applier={"windows": "sat 22:00-04:00 UTC", "health_probe": "true"},
        watcher_actions__nop={"timeout_s": "120"},
    )
    assert as_json(actionplan, *words)["not_rehearsed"] == ["windows", "health_probe"]
    for more in ((), ("--set", "max_workers=1..2")):
        assert "The health probe is not rehearsed" in actionplan.good(*words, *more)
    hangs = ("simulate", TEN_HOSTS, "--inject", "hang:agent-1=50%,fail:nop=5%", "--times", "20")
    assert "do not end" not in actionplan.good(*hangs)
    actionplan.configure()
    assert "set a time-out (timeout_s) of nop" in actionplan.good(*hangs)
    actionplan.good("create", TEN_HOSTS)
    assert "with no faults" in actionplan.good("simulate", "last", "--times", "5")


def test_what_cannot_be_simulated_is_refused(actionplan):
    agent = {"name": "agent", "action_type": "nop", "touches": ["node:agent"]}
    actionplan.document("plan.yaml", agent)
    actionplan.check_refusals(
        "simulate_refused",
        "simulate plan.yaml --set max_workers=8..1",
        "simulate plan.yaml --set max_workers=1..999",
        "simulate plan.yaml --inject fali:nop",
        "simulate plan.yaml --inject fail:nopp",
        "simulate plan.yaml --inject fail:nop --times 0",
        "simulate plan.yaml --inject fail:nop --times 1000000",
        "simulate plan.yaml --inject fail:nop=",
        "simulate plan.yaml --inject ''",
        "simulate plan.yaml --seed x",
    )


def test_every_mistake_in_a_file_is_told_and_nothing_is_imported(actionplan):
    wrong = "durations:\n- action_type: shell\n  seconds: [1, -2]\n- node: c1\n  seconds: []\n"
    (actionplan.folder / "wrong.yaml").write_text(wrong, encoding="utf-8")
    many = {"durations": [{"action_type": "shell", "seconds": [1] * 501}]}
    (actionplan.folder / "many.json").write_text(json.dumps(many), encoding="utf-8")
    for file, told in (
        ("wrong.yaml", ("wrong.yaml:3", "wrong.yaml:4")),
        ("many.json", ("more than 500 durations of shell",)),
    ):
        refused = actionplan("duration", "import", file)
        assert (refused.code, all(text in refused.err for text in told)) == (1, True)
    assert actionplan.good("duration", "list").startswith("No action is on record")
