# SPDX-License-Identifier: Apache-2.0
"""What the planner and the action promise. Nothing has to be installed but ActionPlan and this."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from rackplan.announce import Announce
from rackplan.inspect_rack import InspectRack
from rackplan.rack_by_rack import RackByRackPlanner

from applier.contracts import ActionContext
from applier.errors import ActionFailed, AlreadyDone
from applier.machines.open_machines import OpenMachines
from applier.testing.action_suite import ActionContract, default_options
from planner.documents import read
from planner.errors import PlannerError
from planner.plan.states import Outcome
from planner.testing import check_planner, edges, plan

DOCUMENT = read(Path(__file__).parents[1] / "racks.yaml").value
R2_FIRST = {**DOCUMENT, "options": {"racks": ["r2"]}}


def test_it_does_what_every_planner_has_to_do():
    check_planner(RackByRackPlanner, [DOCUMENT, R2_FIRST], Announce)


def test_a_rack_starts_when_the_one_before_is_finished():
    parents = edges(plan(RackByRackPlanner, DOCUMENT, Announce))
    assert parents["close-1"] == parents["close-2"] == []
    assert parents["join-1"] == ["note-1", "note-2"]
    assert parents["close-3"] == parents["close-4"] == ["join-1"]
    assert parents["join-2"] == ["note-3", "note-4"]
    assert parents["note-all"] == ["join-2"]


def test_actions_of_one_host_follow_each_other_as_the_document_lists_them():
    parents = edges(plan(RackByRackPlanner, DOCUMENT, Announce))
    assert parents["update-1"] == ["close-1"]
    assert parents["open-1"] == ["update-1"]
    assert parents["note-1"] == ["open-1"]


def test_the_option_racks_says_which_goes_first():
    parents = edges(plan(RackByRackPlanner, R2_FIRST, Announce))
    assert parents["close-3"] == []
    assert parents["join-1"] == ["note-3", "note-4"]
    assert parents["close-1"] == ["join-1"]


def test_a_host_without_a_rack_is_refused_by_name():
    with pytest.raises(PlannerError, match=r"actions\[0\]: facts\.hosts\.compute-1\.rack"):
        plan(RackByRackPlanner, {**DOCUMENT, "facts": {}}, Announce)


def test_a_rack_in_which_nothing_is_done_is_a_warning():
    made = plan(RackByRackPlanner, {**DOCUMENT, "options": {"racks": ["r9"]}}, Announce)
    assert made.warnings == ("option racks: nothing is done in 'r9'",)


@pytest.fixture(params=[Announce, InspectRack])
def action(request):
    return request.param


class TestActions(ActionContract):
    """They do what every action has to do."""


def make_announcement(path: Path, message: str, **options: str) -> Announce:
    """Make the action as the applier does, with these options in its section."""
    context = ActionContext(
        cloud=lambda: pytest.fail("no cloud is needed"),
        output=print,
        options={**default_options(Announce), **options},
    )
    return Announce({"path": str(path), "message": message}, context)


def test_an_announcement_becomes_the_last_line(tmp_path):
    path = tmp_path / "log-book.txt"
    path.write_text("earlier\n", encoding="utf-8")
    announcement = make_announcement(path, "rack r1 is new")
    announcement.precheck()
    assert announcement.execute(threading.Event()) is Outcome.CHANGED
    assert path.read_text(encoding="utf-8") == "earlier\nrack r1 is new\n"


def test_the_option_site_stands_before_the_message(tmp_path):
    path = tmp_path / "log-book.txt"
    announcement = make_announcement(path, "rack r1 is new", site="Berlin")
    assert announcement.execute(threading.Event()) is Outcome.CHANGED
    assert path.read_text(encoding="utf-8") == "Berlin: rack r1 is new\n"
    with pytest.raises(AlreadyDone):
        announcement.precheck()


def test_an_announcement_that_was_made_is_not_made_again(tmp_path):
    path = tmp_path / "log-book.txt"
    path.write_text("rack r1 is new\n", encoding="utf-8")
    with pytest.raises(AlreadyDone):
        make_announcement(path, "rack r1 is new").precheck()


def test_a_file_that_cannot_be_written_fails_with_its_name(tmp_path):
    with pytest.raises(ActionFailed, match="no-folder"):
        make_announcement(tmp_path / "no-folder" / "x", "hello").execute(threading.Event())


def inspect(folder: Path, program: Path) -> list[str]:
    """Run the same attempt as one applier after another does; give what each has recorded."""
    recorded = []
    for _ in range(2):
        printed: list[str] = []
        machines = OpenMachines(place=folder / "jobs").of_attempt("plan", "action", 1)
        context = ActionContext(
            cloud=lambda: pytest.fail("no cloud is needed"),
            output=printed.append,
            machines=machines,
        )
        parameters = {"program": str(program), "rack": "r1"}
        assert InspectRack(parameters, context).execute(threading.Event()) is Outcome.CHANGED
        recorded.append("".join(printed))
    return recorded


def test_an_inspection_that_was_started_is_not_started_again(tmp_path):
    program, runs = tmp_path / "inspect-rack", tmp_path / "runs"
    program.write_text(f"#!/bin/sh\necho $1 >> {runs}\necho rack $1 is well\n")
    program.chmod(0o755)
    assert inspect(tmp_path, program) == ["rack r1 is well\n"] * 2
    assert runs.read_text() == "r1\n"
