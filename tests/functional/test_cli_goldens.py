# SPDX-License-Identifier: Apache-2.0
"""What the verbs print, whole: the files in tests/cases/cli. ACTIONPLAN_REWRITE=1 writes them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import jsonschema
import yaml
from command_line import EXAMPLE, ROOT, check_golden
from console_blocks import Command, steps

from applier.cli.help import GROUPS
from planner.plan.states import PlanState


def test_create_shows_the_plan(actionplan):
    ended = actionplan("create", str(EXAMPLE), "--set", "max_workers=4")
    check_golden("create", ended.out)
    check_golden("create_note", ended.err)
    assert actionplan.plan().state is PlanState.RECOMMENDED
    shown = json.loads(actionplan.good("action", "show", "last", "close-compute-1", "-f", "json"))
    assert "move-web-1" in shown["not_run_if_it_fails"]


def test_apply_shows_the_plan_the_steps_and_the_recap(actionplan):
    words = ("apply", str(EXAMPLE), "--yes", "--set", "max_workers=1")
    check_golden("apply", actionplan(*words).out)
    check_golden("show", actionplan.good("show", "last"))
    check_golden("action_list", actionplan.good("action", "list", "last"))
    check_golden("action_show", actionplan.good("action", "show", "last", "move-db-1"))
    check_golden("simulator_show", actionplan.good("simulator", "show"))
    check_golden("list", actionplan.good("list"))


def test_a_failure_is_followed_to_what_was_not_run(actionplan):
    text = EXAMPLE.read_text(encoding="utf-8")
    wrong = text.replace("source_node: compute-1, destination_node: compute-3}", "WRONG", 1)
    wrong = wrong.replace("WRONG", "source_node: compute-1, destination_node: compute-4}")
    (actionplan.folder / "wrong.yaml").write_text(wrong, encoding="utf-8")
    ended = actionplan("apply", "wrong.yaml", "--yes", "--set", "max_workers=1")
    check_golden("apply_failed", ended.out)
    assert (ended.code, ended.err) == (3, "")


def test_a_plan_of_many_waves_is_shown_in_few_lines(actionplan):
    actions = ({"name": f"a{i}", "action_type": "nop"} for i in range(100))
    actionplan.document("many.yaml", *actions, name="many")
    check_golden("create_many", actionplan.good("create", "many.yaml"))


def test_the_program_explains_itself(actionplan):
    for words in (("--help",), ("help",), ()):
        check_golden("help", actionplan(*words).out)
    check_golden("help_all", actionplan("help", "--all").out)


def test_no_line_is_wider_than_100_columns():
    for name in ("create", "apply", "show", "action_list", "action_show", "help", "help_all"):
        lines = (ROOT / "tests/cases/cli" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert 0 < max(map(len, lines)) <= 100


def stories() -> set[tuple[str, ...]]:
    """Return the words with which calls in the tests of this folder begin, and lines of words.

    A story that a page runs is one as well.
    """
    pages = [path.read_text("utf-8").splitlines() for path in (ROOT / "doc").rglob("*.rst")]
    texts = [step.text for page in pages for step in steps(page) if isinstance(step, Command)]
    found = {tuple(text.split()[1:4]) for text in texts if text.startswith("actionplan ")}
    # In the one file nothing is expected but no hidden characters, in the other one only imports.
    without = {"test_hostile_text.py", "test_startup_imports.py"}
    for path in Path(__file__).parent.glob("test_*.py"):
        text = "" if path.name in without else path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            given = getattr(node, "args" if isinstance(node, ast.Call) else "elts", ())
            values = [v.value for v in given if isinstance(v, ast.Constant)]
            found.add(tuple(v for v in values if isinstance(v, str))[:3])
            found.update(tuple(v.split()[:3]) for v in values if isinstance(v, str))
    return found


def test_each_verb_has_a_story():
    told = {words[:n] for words in stories() for n in (1, 2, 3)}
    verbs = [name for names in GROUPS.values() for name in names]
    assert [verb for verb in verbs if tuple(verb.split()) not in told] == []


def test_every_format_gives_the_same_plan(actionplan):
    actionplan.good("create", str(EXAMPLE), "--out", "plan.json")
    as_json = json.loads(actionplan.good("show", "last", "-f", "json"))
    as_yaml = yaml.safe_load(actionplan.good("show", "last", "-f", "yaml"))
    written = json.loads((actionplan.folder / "plan.json").read_text(encoding="utf-8"))
    as_yaml["created_at"] = as_json["created_at"]
    assert as_json == as_yaml
    assert as_json["cloud"] == "simulated"
    assert {**as_json, "updated_at": None} == {**written, "updated_at": None}


def test_the_schema_of_a_kind_is_one_that_an_example_fits(actionplan):
    schema = json.loads(actionplan.good("schema", "solution"))
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(example)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**example, "actoins": []})
