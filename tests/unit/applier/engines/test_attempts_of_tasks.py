# SPDX-License-Identifier: Apache-2.0
"""What a new attempt and one that goes on do differently, and what both leave to the next."""

from __future__ import annotations

import pytest
from trials import plugin

from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import task_maker
from applier.errors import ActionFailed
from applier.machines.open_machines import OpenMachines
from planner.plan.model import Action
from planner.plan.states import Outcome


def execute(work, machines=None, going_on=None, precheck=None, **parameters):
    made = plugin(work)
    if precheck is not None:
        made.precheck = precheck
    action = Action(uuid="a1", action_type="nop", input_parameters=parameters)
    environment = ActionEnvironment(
        plugins={"nop": made}, cloud=lambda: None, machines=machines, plan="p"
    )
    return task_maker([action], environment, (), going_on or {})("a1").execute()


@pytest.mark.parametrize(
    ("going_on", "state", "outcome"), [({}, "FAILED", "failed"), ({"a1": 5.0}, "UNKNOWN", None)]
)
def test_without_a_secret_nothing_is_done_and_what_goes_on_is_in_doubt(
    monkeypatch, going_on, state, outcome
):
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    begun = []
    report = execute(begun.append, going_on=going_on, password={"secret": "env DB_PASSWORD"})
    assert (begun, report.state, report.outcome) == ([], state, outcome)
    assert "'env DB_PASSWORD' cannot be used" in report.message
    assert ("its command goes on" in report.message) is bool(going_on)


def test_a_secret_is_neither_in_the_output_nor_in_the_message(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "correct horse")

    def work(parameters, context, _stop):
        context.output(f"login with {parameters['password']}\n")
        raise ActionFailed(f"{parameters['password']} was refused")

    report = execute(work, password={"secret": "env DB_PASSWORD"})
    assert report.output.startswith("login with ")
    assert report.message.endswith(" was refused")
    assert "correct horse" not in report.output + report.message


def test_only_commands_of_the_work_itself_can_be_found_again(tmp_path):
    """The commands of a precheck are told by the machines that it is one."""
    seen = []

    def work(_parameters, context, _stop):
        seen.append(context.machines.is_prechecking)
        return Outcome.CHANGED

    def precheck(self):
        seen.append(self.context.machines.is_prechecking)

    execute(work, OpenMachines(place=tmp_path), precheck=precheck)
    assert seen == [True, False]
