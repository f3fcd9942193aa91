# SPDX-License-Identifier: Apache-2.0
"""``actionplan diff``: what differs between stored plans, saved ones and documents; exit codes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from command_line import EXAMPLE, CommandLine, check_golden

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


def test_many_differences_are_a_screen_and_not_a_book(actionplan):
    for name in "ab":
        actions = ({"name": f"{name}{i}", "action_type": "nop"} for i in range(300))
        actionplan.document(f"{name}.yaml", *actions)
    lines = actionplan("diff", "a.yaml", "b.yaml").out.splitlines()
    assert lines.count("  and 280 more; -f json lists all") == 2
    assert len(lines) < 100


def test_create_says_what_differs_from_the_last_plan_of_the_same_name(two):
    assert "of the same name" not in two.good("create", "old.yaml")
    assert "same name" not in two.good("create", "new.yaml", "--dry-run")
    two.good("create", str(EXAMPLE))
    uuid = two.plans()[1].uuid[:8]
    assert f"\nSame as plan {uuid} of the same name.\n" in two.good("create", "old.yaml")
    uuid = two.plans()[0].uuid[:8]
    out = two.good("create", "new.yaml")
    new = two.plans()[0].uuid[:8]
    (line,) = [line for line in out.splitlines() if "of the same name" in line]
    assert "1 added, 1 removed, 2 changed" in line
    assert line.endswith(f"actionplan diff {uuid} {new}")
    ended = two("create", "new.yaml", "-f", "json")
    assert (ended.code, ended.err, json.loads(ended.out)["name"]) == (0, "", "web")
