# SPDX-License-Identifier: Apache-2.0
"""``delete``, ``undelete`` and ``purge``: no plan goes without a question or without its report."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from contextlib import closing

import pytest
from command_line import CommandLine

from planner.plan.states import PlanState

PURGE = ("purge", "--older-than", "0m", "--yes")
KEEP = (*PURGE, "--keep-reports")


@pytest.fixture
def ended(actionplan: CommandLine) -> CommandLine:
    """Return a command line with two plans that have ended."""
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    for _ in range(2):
        actionplan.good("apply", "plan.yaml", "--yes")
    return actionplan


def uuids(line: CommandLine) -> set[str]:
    """Return the plans on record."""
    return {plan.uuid for plan in line.plans()}


def verbs(line: CommandLine, *words: str) -> list[str]:
    """Return the verbs of a history."""
    return [row["verb"] for row in json.loads(line.good("history", *words, "-f", "json"))]


def test_a_plan_is_removed_softly_and_brought_back(actionplan):
    actionplan.good("create", actionplan.document("p.yaml", {"name": "a", "action_type": "nop"}))
    uuid = actionplan.plan().uuid
    asked = actionplan("delete", "last", stdin="n\n")
    assert (asked.code, actionplan.plan().state) == (1, PlanState.RECOMMENDED)
    question, answer = asked.out.split("[y/N]")
    assert question.strip() == f"Delete plan {uuid[:8]}, RECOMMENDED?"
    assert "--yes" in answer
    assert f"actionplan undelete {uuid}" in actionplan.good("delete", "last", "--yes")
    assert actionplan.good("list").startswith("No plans.")
    assert uuid[:8] in actionplan.good("list", "--state", "deleted")
    assert "DELETED" in actionplan.good("show", uuid)
    actionplan.good("undelete", uuid, "--reason", "too early")
    assert uuid[:8] in actionplan.good("list")
    assert verbs(actionplan, uuid) == ["create", "delete", "undelete"]


def test_old_plans_are_deleted_for_good_after_a_question(ended):
    ended.good("create", "plan.yaml")
    assert ended.good("purge", "--older-than", "1d").startswith("No plan ")
    asked = ended("purge", "--older-than", "0m", stdin="\n")
    assert (asked.code, asked.out.startswith("Delete 2 plans for good")) == (1, True)
    assert len(ended.plans()) == 3
    assert ended.good(*PURGE) == "2 plans deleted for good.\n"
    assert ended.plan().state is PlanState.RECOMMENDED
    assert verbs(ended) == ["create", "purge"]
    assert re.search(r" - +purge ", ended.good("history"))
    assert ended("db", "check").code == 0
    for wrong in ("90", "-1d", "٣d", "2026-03-01", "999999999w"):
        refused = ended("purge", f"--older-than={wrong}", "--yes")
        assert (refused.code, "is not an age such as 12h, 90d or 8w" in refused.err) == (2, True)


# Reports that a purge keeps


def kill_where_a_report_is_about_to_be_whole() -> None:
    """Let the process be killed when it gives a report its name; stevedore renames a file, too."""
    replace = os.replace

    def killed(source: str, target: str) -> None:
        if str(target).endswith(".html"):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = killed


def test_a_purge_that_was_killed_has_deleted_no_plan_without_its_report(ended):
    before, folder = uuids(ended), ended.folder / "kept" / "reports"
    with ended.start(*KEEP, "kept/reports", before=kill_where_a_report_is_about_to_be_whole) as one:
        assert one.wait() == -signal.SIGKILL
    assert [*folder.glob("*.html")] == []
    assert uuids(ended) == before
    ended.good(*KEEP, "kept/reports")
    assert {path.name for path in folder.glob("*.html")} == {f"{uuid}.html" for uuid in before}
    for uuid in before:
        assert uuid in (folder / f"{uuid}.html").read_text(encoding="utf-8")


def test_a_damaged_plan_stays_and_is_told_and_the_others_go(ended):
    with closing(sqlite3.connect(ended.record)) as database, database:
        database.execute("UPDATE actionplan_plan SET limits = '{\"x\": 7}' WHERE number = 1")
    good, bad = ended.good("list", "-f", "value", "-c", "uuid").split()
    purged = ended(*KEEP, "kept")
    assert (purged.code, purged.out) == (1, "1 plan deleted for good.\n")
    (told,) = purged.err.splitlines()
    assert told.startswith(f"Not deleted: plan {bad[:8]} is damaged: ")
    assert told.endswith(f"actionplan delete {bad[:8]}")
    assert [path.name for path in (ended.folder / "kept").iterdir()] == [f"{good}.html"]
    assert ended.good("list", "-f", "value", "-c", "uuid").split() == [bad]


def test_a_folder_that_cannot_be_made_is_told_before_any_plan_goes(ended):
    before = uuids(ended)
    for folder, why in (("plan.yaml", "File exists"), ("plan.yaml/kept", "Not a directory")):
        purged = ended(*KEEP, folder)
        assert (purged.code, purged.out) == (1, "")
        (told,) = purged.err.splitlines()
        assert told.endswith(f"--keep-reports {folder} cannot be made: {why}")
    assert uuids(ended) == before
