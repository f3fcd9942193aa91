# SPDX-License-Identifier: Apache-2.0
"""``actionplan history``: who changed a plan, when and why."""

from __future__ import annotations

import json

from command_line import EXAMPLE, CommandLine


def test_each_change_is_listed_with_who_and_why(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    actionplan.good("action", "skip", "last", "move-db-1", "--reason", "by hand\u202e")
    actionplan.good("start", "last")
    actionplan.good("cancel", "last", "--reason", "wrong hosts")
    found = json.loads(actionplan.good("history", "last", "-f", "json"))
    assert [entry["verb"] for entry in found] == ["create", "skip", "start", "cancel"]
    assert {entry["who"] for entry in found} == {"operator"}
    assert [entry["why"] for entry in found] == [None, "by hand\u202e", None, "wrong hosts"]
    shown = actionplan.good("history", "last")
    assert "move-db-1" in shown
    assert "\u202e" not in shown


def test_a_run_is_an_apply_by_its_user(actionplan: CommandLine) -> None:
    actionplan.good("apply", str(EXAMPLE), "--yes")
    actionplan.good("rollback", "last")
    found = json.loads(actionplan.good("history", "-f", "json"))
    assert [entry["verb"] for entry in found] == ["create", "start", "apply", "rollback"]
    latest = json.loads(actionplan.good("history", "--limit", "1", "-f", "json"))
    assert latest == found[3:]


def test_without_plans_there_is_a_sentence(actionplan: CommandLine) -> None:
    assert actionplan.good("history").startswith("No changes are on record.")
