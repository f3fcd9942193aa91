# SPDX-License-Identifier: Apache-2.0
"""A plan goes from one record to another with its attempts, output, requests and history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Ended


@pytest.fixture
def exported(actionplan: CommandLine) -> dict[str, Any]:
    """Return an exported plan that was run, with an action that printed something."""
    shells = {"say": ["printf", "%s", "hello"], "fail": ["false"]}
    actionplan.document(
        "p.yaml",
        *(
            {"name": name, "action_type": "shell", "input_parameters": {"argv": argv}}
            for name, argv in shells.items()
        ),
    )
    actionplan("apply", "p.yaml", "--yes")
    return json.loads(actionplan.good("export", "last"))


@pytest.fixture
def other(entry_point_cache: Path, tmp_path: Path) -> CommandLine:
    """Return a command line with another record."""
    return CommandLine(tmp_path / "other", entry_point_cache)


def take_in(other: CommandLine, document: Any) -> Ended:
    """Import a document."""
    (other.folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    return other("import", "plan.json")


def test_all_that_is_known_of_a_plan_is_there_after_an_import_and_it_goes_on(
    actionplan, other, exported
):
    ended = take_in(other, exported)
    assert ended.code == 0, ended.err
    assert "2 attempts and 3 lines of history" in ended.out
    for words in (
        ("show", "last"),
        ("action", "show", "last", "say"),
        ("action", "list", "last", "-f", "json"),
        ("list", "-f", "json"),
    ):
        assert other.good(*words) == actionplan.good(*words)
    assert "hello" in other.good("action", "show", "last", "say")
    again = json.loads(other.good("export", "last"))
    assert again["history"].pop()["verb"] == "import"
    assert again == exported
    twice = take_in(other, exported)
    assert (twice.code, "is already in the record, FAILED" in twice.err) == (1, True)
    other.good("resume", "last")
    assert other("apply", "last", "--yes").code == 3
    assert json.loads(other.good("export", "last"))["attempts"][-1]["number"] == 2


def test_a_document_that_was_changed_is_refused_with_every_mistake(other, exported):
    text = json.dumps(exported)
    for path, value, why in (
        (("version",), "2", "version: '2' is not"),
        (("plan", "actions"), 3, "plan.actions"),
        (("attempts", 0, "started_at"), "2026-02-30T00:00:00+00:00", "attempts[0].started_at"),
        (("attempts", 0, "number"), 0, "attempts[0].number"),
        (("attempts", 1), exported["attempts"][0], "attempts[1].number: attempt 1 of action "),
        (("history", 0, "who"), 7, "history[0].who"),
        (("plan", "actions", 0, "retries"), 9, "plan.digest: does not fit the plan"),
    ):
        place = changed = json.loads(text)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        ended = take_in(other, changed)
        assert (ended.code, why in ended.err) == (1, True), ended
    exported["plan"]["actions"][0]["state"] = "ONGOING"
    exported["plan"]["state"] = "PENDING"
    exported["attempts"][0]["action"] = "00000000-0000-4000-8000-00000000000f"
    ended = take_in(other, exported)
    assert (ended.code, "Refused, 3 mistakes" in ended.err) == (1, True)
    for told in ("plan.state: the plan is PENDING", "is ONGOING: only its", "no action 00000000"):
        assert told in ended.err
    assert other.plans() == []
