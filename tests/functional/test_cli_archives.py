# SPDX-License-Identifier: Apache-2.0
"""A plan goes from one record to another with its attempts, output, requests and history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import EXAMPLE, CommandLine, Gate

from planner.states import PlanState


@pytest.fixture
def exported(actionplan: CommandLine) -> dict[str, Any]:
    """Return an exported plan that was run, with an action that printed something."""
    shell = {"argv": ["printf", "%s", "hello"]}
    actionplan.document(
        "p.yaml",
        {"name": "say", "action_type": "shell", "input_parameters": shell},
        {"name": "fail", "action_type": "shell", "input_parameters": {"argv": ["false"]}},
    )
    actionplan("apply", "p.yaml", "--yes")
    return json.loads(actionplan.good("export", "last"))


@pytest.fixture
def other(actionplan: CommandLine, entry_point_cache: Path, tmp_path: Path) -> CommandLine:
    """Return a command line with another record."""
    del actionplan
    return CommandLine(tmp_path / "other", entry_point_cache)


def take_in(other: CommandLine, document: Any) -> Any:
    """Import a document."""
    other.folder.mkdir(exist_ok=True)
    (other.folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    return other("import", "plan.json")


def test_all_that_is_known_of_a_plan_is_there_after_an_import(
    actionplan: CommandLine, other: CommandLine, exported: dict[str, Any]
) -> None:
    ended = take_in(other, exported)
    assert ended.code == 0, ended.err
    assert "FAILED, with 2 attempts and 3 lines of history." in ended.out
    for words in (
        ("show", "last"),
        ("action", "show", "last", "say"),
        ("action", "list", "last", "-f", "json"),
        ("list", "-f", "json"),
    ):
        assert other.good(*words) == actionplan.good(*words)
    assert "hello" in other.good("action", "show", "last", "say")
    history = json.loads(other.good("history", "last", "-f", "json"))
    before = json.loads(actionplan.good("history", "last", "-f", "json"))
    assert [row["verb"] for row in history] == [*(row["verb"] for row in before), "import"]
    again = json.loads(other.good("export", "last"))
    again["history"].pop()
    assert again == exported


def test_an_imported_plan_can_be_resumed(other: CommandLine, exported: dict[str, Any]) -> None:
    assert take_in(other, exported).code == 0
    other.good("resume", "last")
    assert other("apply", "last", "--yes").code == 3
    assert json.loads(other.good("export", "last"))["attempts"][-1]["number"] == 2


def test_a_plan_is_taken_in_once(other: CommandLine, exported: dict[str, Any]) -> None:
    assert take_in(other, exported).code == 0
    ended = take_in(other, exported)
    assert ended.code == 1
    assert "is already in the record, FAILED" in ended.err


def test_a_plan_that_runs_is_not_exported(
    actionplan: CommandLine, running: Any, gate: Gate
) -> None:
    ended = actionplan("export", "last")
    gate.let_go()
    running.wait()
    assert ended.code == 1
    assert "is ONGOING: only one that nobody runs can be exported" in ended.err


def test_every_mistake_is_named_and_nothing_is_kept(
    other: CommandLine, exported: dict[str, Any]
) -> None:
    exported["plan"]["actions"][0]["state"] = "ONGOING"
    exported["plan"]["state"] = "PENDING"
    exported["attempts"][0]["action"] = "00000000-0000-4000-8000-00000000000f"
    ended = take_in(other, exported)
    assert ended.code == 1
    assert "Refused, 3 mistakes" in ended.err
    for text in ("plan.state: the plan is PENDING", "is ONGOING: only its", "no action 00000000"):
        assert text in ended.err
    assert other.plans() == []


def test_an_attempt_that_is_there_twice_is_refused(
    other: CommandLine, exported: dict[str, Any]
) -> None:
    exported["attempts"].append(exported["attempts"][0])
    ended = take_in(other, exported)
    last = len(exported["attempts"]) - 1
    assert f"attempts[{last}].number: attempt 1 of action " in ended.err
    assert (ended.code, other.plans()) == (1, [])


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("version",), "2", "version: '2' is not"),
        (("plan", "actions"), 3, "plan.actions"),
        (("attempts", 0, "started_at"), "2026-02-30T00:00:00+00:00", "attempts[0].started_at"),
        (("attempts", 0, "number"), 0, "attempts[0].number"),
        (("history", 0, "who"), 7, "history[0].who"),
        (("plan", "actions", 0, "retries"), 9, "plan.digest: does not fit the plan"),
    ],
)
def test_a_document_that_was_changed_is_refused(
    other: CommandLine, exported: dict[str, Any], path: Any, value: Any, why: str
) -> None:
    place = exported
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    ended = take_in(other, exported)
    assert ended.code == 1
    assert why in ended.err


def test_a_plan_that_was_never_run(actionplan: CommandLine, other: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    assert take_in(other, json.loads(actionplan.good("export", "last"))).code == 0
    (plan,) = other.plans()
    assert plan.state is PlanState.RECOMMENDED
