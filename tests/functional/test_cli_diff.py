# SPDX-License-Identifier: Apache-2.0
"""``actionplan diff``: what differs between stored plans, saved ones and documents; exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import EXAMPLE, CommandLine, check_golden

OLD = (
    {"name": "close", "action_type": "nop"},
    {"name": "first", "action_type": "sleep", "input_parameters": {"duration": 5}},
    {"name": "gone", "action_type": "nop"},
    {
        "name": "login",
        "action_type": "shell",
        "input_parameters": {"command": "true", "env": {"P": "x1y"}},
    },
)
NEW = (
    {"name": "close", "action_type": "nop"},
    {
        "name": "login",
        "action_type": "shell",
        "input_parameters": {"command": "true", "env": {"P": "x2y"}},
    },
    {"name": "first", "action_type": "sleep", "input_parameters": {"duration": 9}, "retries": 1},
    {"name": "come", "action_type": "nop", "input_parameters": {"message": "hello"}},
)


@pytest.fixture
def two(actionplan: CommandLine) -> CommandLine:
    """Return a home with two documents, old.yaml and new.yaml."""
    weights = {"nop": 90, "sleep": 50, "shell": 10}
    options = {"weights": weights, "parallelization": {"nop": 2}}
    limits: dict[str, Any] = {"node:*": 2}
    actionplan.document("old.yaml", *OLD, name="web", options=options, limits=limits)
    changed = {"weights": {**weights, "shell": 60}, "parallelization": {"nop": 2}}
    limits = {"node:*": 3, "rack:*": 1}
    actionplan.document("new.yaml", *NEW, name="web", options=changed, limits=limits)
    return actionplan


def test_what_differs_is_told_in_lines(two: CommandLine) -> None:
    ended = two("diff", "old.yaml", "new.yaml")
    check_golden("diff", ended.out)
    assert (ended.code, ended.err) == (1, "")
    assert max(map(len, ended.out.splitlines())) <= 100


def test_the_same_document_gives_the_same_plan(two: CommandLine) -> None:
    two.good("create", "old.yaml", "--out", "saved.json")
    for other in ("old.yaml", "saved.json", "web", "last"):
        ended = two("diff", other, "last")
        assert (ended.code, ended.err) == (0, ""), ended
        assert "The plans are the same.\nExpected: 6s.\n" in ended.out


def test_a_run_does_not_change_a_plan(two: CommandLine) -> None:
    two.good("create", "old.yaml")
    two.good("apply", "last", "--yes")
    assert two("diff", "last", "old.yaml").code == 0


def test_json_has_everything(two: CommandLine) -> None:
    ended = two("diff", "old.yaml", "new.yaml", "-f", "json")
    value = json.loads(ended.out)
    assert (ended.code, value["same"]) == (1, False)
    names = {key: [entry["name"] for entry in value[key]] for key in ("added", "removed", "moved")}
    assert names == {"added": ["come"], "removed": ["gone"], "moved": ["login", "first"]}
    fields = {entry["new"]["name"]: entry["fields"] for entry in value["changed"]}
    hidden = {"secret": "hidden"}
    assert fields["login"] == [{"field": "input_parameters.env.P", "old": hidden, "new": hidden}]
    assert {"field": "retries", "old": 0, "new": 1} in fields["first"]
    assert value["fields"] == [
        {"field": "limits.node:*", "old": 2, "new": 3},
        {"field": "limits.rack:*", "new": 1},
    ]
    assert value["new_links"] == [
        {"kind": "parents", "before": ["close", "come"], "after": ["login"]},
        {"kind": "parents", "before": ["login"], "after": ["first"]},
    ]
    assert value["makespan_s"]["old"] < value["makespan_s"]["new"]


def test_a_secret_that_changed_is_told_and_not_shown(two: CommandLine) -> None:
    for form in ("table", "json", "yaml"):
        ended = two("diff", "old.yaml", "new.yaml", "-f", form)
        assert "x1y" not in ended.out + ended.err
        assert "x2y" not in ended.out + ended.err
    assert "parameter env.P: (hidden), changed" in two("diff", "old.yaml", "new.yaml").out


REFUSED = {
    ("nosuch", "old.yaml"): "Refused: there is no file 'nosuch', and no plan 'nosuch'; a plan is",
    ("old.yaml", "bad.yaml"): "Refused: bad.yaml:",
    ("-", "-"): "Refused: - -: standard input can be read only once\n",
    ("old.yaml",): "actionplan diff: the following arguments are required: NEW\n",
    ("old.yaml", "old.yaml", "x"): "actionplan diff: 'x' is one argument too many\n",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_refusal_is_no_difference(two: CommandLine, words: tuple[str, ...]) -> None:
    (two.folder / "bad.yaml").write_text("actions: [{}]\n", encoding="utf-8")
    ended = two("diff", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(REFUSED[words])


def test_a_record_that_cannot_be_used_is_no_difference(two: CommandLine) -> None:
    (two.folder / "state").write_text("in the way", encoding="utf-8")
    assert two("diff", "last", "old.yaml").code == 2


def test_a_saved_plan_that_was_changed_is_out_of_date(two: CommandLine) -> None:
    two.good("create", "old.yaml", "--dry-run", "--out", "saved.json")
    text = (two.folder / "saved.json").read_text(encoding="utf-8")
    (two.folder / "saved.json").write_text(text.replace("x1y", "x2y"), encoding="utf-8")
    assert two("diff", "saved.json", "old.yaml").code == 4


def test_a_document_may_come_from_standard_input(two: CommandLine) -> None:
    text = (two.folder / "old.yaml").read_text(encoding="utf-8")
    assert two("diff", "-", "old.yaml", stdin=text).code == 0
    assert two.plans() == []


def test_many_differences_are_a_screen_and_not_a_book(actionplan: CommandLine) -> None:
    for file, prefix in (("a.yaml", "a"), ("b.yaml", "b")):
        actions = ({"name": f"{prefix}{i}", "action_type": "nop"} for i in range(300))
        actionplan.document(file, *actions)
    lines = actionplan("diff", "a.yaml", "b.yaml").out.splitlines()
    assert lines[2] == "They differ: 300 added, 300 removed, 299 new links, 299 lost links."
    assert lines.count("  and 280 more; -f json lists all") == 2
    assert lines.count("  and 279 more; -f json lists all") == 2
    assert len(lines) < 100


# A new plan of the same name


def test_create_says_what_differs_from_the_last_plan_of_the_same_name(two: CommandLine) -> None:
    first = two.good("create", "old.yaml")
    assert "of the same name" not in first
    two.good("create", str(EXAMPLE))
    uuid = two.plans()[1].uuid[:8]
    assert f"\nSame as plan {uuid} of the same name.\n" in two.good("create", "old.yaml")
    uuid = two.plans()[0].uuid[:8]
    out = two.good("create", "new.yaml")
    new = two.plans()[0].uuid[:8]
    (line,) = [line for line in out.splitlines() if "of the same name" in line]
    assert line == (
        f"Differs from plan {uuid} of the same name: 1 added, 1 removed, 2 changed; "
        f"see: actionplan diff {uuid} {new}"
    )
    assert two("diff", uuid, new).code == 1


def test_what_is_not_stored_and_what_programs_read_has_no_such_line(two: CommandLine) -> None:
    two.good("create", "old.yaml")
    assert "same name" not in two.good("create", "new.yaml", "--dry-run")
    ended = two("create", "new.yaml", "-f", "json")
    assert (ended.code, ended.err, json.loads(ended.out)["name"]) == (0, "", "web")


def test_of_large_plans_only_the_digests_are_compared(actionplan: CommandLine) -> None:
    actions = [{"name": f"a{i}", "action_type": "nop"} for i in range(501)]
    actionplan.document("many.yaml", *actions, name="many")
    actionplan.good("create", "many.yaml")
    old = actionplan.plan().uuid[:8]
    assert f"Same as plan {old} of the same name.\n" in actionplan.good("create", "many.yaml")
    old = actionplan.plans()[0].uuid[:8]
    actionplan.document("many.yaml", *actions[1:], name="many")
    out = actionplan.good("create", "many.yaml")
    new = actionplan.plans()[0].uuid[:8]
    assert f"\nDiffers from plan {old} of the same name; see: actionplan diff {old} {new}\n" in out
