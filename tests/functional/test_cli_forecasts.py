# SPDX-License-Identifier: Apache-2.0
"""What a plan would take, what other settings and faults would make of it; how plans differ."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
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


# Differences between stored plans, saved ones and documents


CLOSE = {"name": "close", "action_type": "nop"}
SLEEP = {"name": "first", "action_type": "sleep", "input_parameters": {"duration": 5}}
LOGIN = {"name": "login", "action_type": "shell"}


@pytest.fixture
def two(actionplan: CommandLine) -> CommandLine:
    """Return a home with two documents, old.yaml and new.yaml."""

    def login(secret: str) -> dict[str, Any]:
        return {**LOGIN, "input_parameters": {"command": "true", "env": {"P": secret}}}

    weights = {"nop": 90, "sleep": 50, "shell": 10}
    old = (CLOSE, SLEEP, {"name": "gone", "action_type": "nop"}, login("x1y"))
    changed = {**SLEEP, "input_parameters": {"duration": 9}, "retries": 1}
    come = {"name": "come", "action_type": "nop", "input_parameters": {"message": "hello"}}
    new = (CLOSE, login("x2y"), changed, come)
    options: dict[str, Any] = {"weights": weights, "parallelization": {"nop": 2}}
    limits: dict[str, Any] = {"node:*": 2}
    actionplan.document("old.yaml", *old, name="web", options=options, limits=limits)
    options = {**options, "weights": {**weights, "shell": 60}}
    limits = {"node:*": 3, "rack:*": 1}
    actionplan.document("new.yaml", *new, name="web", options=options, limits=limits)
    return actionplan


def test_what_differs_is_told_in_lines_and_in_json_without_secrets(two):
    ended = two("diff", "old.yaml", "new.yaml")
    check_golden("diff", ended.out)
    assert (ended.code, ended.err) == (1, "")
    assert max(map(len, ended.out.splitlines())) <= 100
    told = two("diff", "old.yaml", "new.yaml", "-f", "json")
    as_yaml = two("diff", "old.yaml", "new.yaml", "-f", "yaml")
    assert not re.search("x1y|x2y", ended.out + told.out + as_yaml.out)
    value = json.loads(told.out)
    assert (told.code, value["same"]) == (1, False)
    names = {key: [entry["name"] for entry in value[key]] for key in ("added", "removed", "moved")}
    assert names == {"added": ["come"], "removed": ["gone"], "moved": ["login", "first"]}
    assert value["makespan_s"]["old"] < value["makespan_s"]["new"]


def test_the_same_document_gives_the_same_plan_before_and_after_a_run(two):
    text = (two.folder / "old.yaml").read_text(encoding="utf-8")
    assert two("diff", "-", "old.yaml", stdin=text).code == 0
    assert two.plans() == []
    two.good("create", "old.yaml", "--out", "saved.json")
    for other in ("old.yaml", "saved.json", "web", "last"):
        ended = two("diff", other, "last")
        assert (ended.code, ended.err) == (0, "")
        assert "The plans are the same.\nExpected: 6s.\n" in ended.out
    two.good("apply", "last", "--yes")
    assert two("diff", "last", "old.yaml").code == 0


def test_a_refusal_is_no_difference(two):
    (two.folder / "bad.yaml").write_text("actions: [{}]\n", encoding="utf-8")
    two.good("create", "old.yaml", "--dry-run", "--out", "saved.json")
    text = (two.folder / "saved.json").read_text(encoding="utf-8")
    (two.folder / "saved.json").write_text(text.replace("x1y", "x2y"), encoding="utf-8")
    two.check_refusals(
        "diff_refused",
        "diff nosuch old.yaml",
        "diff old.yaml bad.yaml",
        "diff - -",
        "diff old.yaml",
        "diff old.yaml old.yaml x",
        "diff saved.json old.yaml",
    )
    (two.folder / "state").rename(two.folder / "before")
    (two.folder / "state").write_text("in the way", encoding="utf-8")
    assert two("diff", "last", "old.yaml").code == 2
