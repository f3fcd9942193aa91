# SPDX-License-Identifier: Apache-2.0
"""Prechecks of a whole plan: answers, silence, errors, and what earlier work may change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from test_verify import await_all_but_the_last

from applier.contracts import ActionPlugin
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, AlreadyDone
from applier.run.prechecks import Precheck, check_all
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState, Outcome


def plugin_of(look: Callable[[Any], None]) -> type[ActionPlugin]:
    """Make an action type whose precheck calls a function with the parameters."""

    class Looks(ActionPlugin):
        TYPE = "looks"
        SCHEMA = {"type": "object"}
        USES_MACHINES = False

        def precheck(self) -> None:
            look(self.parameters)

        def execute(self, stop: object) -> Outcome:
            raise AssertionError("nothing is run")

    return Looks


def checked(look: Callable[[Any], None], *actions: Action, patience_s: float = 30.0):
    """Return the finding and its reason by name."""
    environment = ActionEnvironment(plugins={"looks": plugin_of(look)}, cloud=pytest.fail)
    found = check_all(actions, environment, patience_s)
    return {one.action.uuid: (one.found, one.why) for one in found}


def act(uuid: str, **fields: Any) -> Action:
    return Action(uuid=uuid, action_type="looks", name=uuid, **fields)


def answer(parameters: Any) -> None:
    """Answer as the parameters say."""
    if "error" in parameters:
        raise parameters["error"]


def test_each_answer() -> None:
    found = checked(
        answer,
        act("do"),
        act("done", input_parameters={"error": AlreadyDone("it is off")}),
        act("refused", input_parameters={"error": ActionFailed("no such host")}),
        act("broken", input_parameters={"error": KeyError("x")}),
    )
    assert found == {
        "do": (Precheck.TO_DO, None),
        "done": (Precheck.NOT_NEEDED, "it is off"),
        "refused": (Precheck.REFUSED, "no such host"),
        "broken": (Precheck.NO_ANSWER, "KeyError: 'x'"),
    }


def test_what_a_dry_run_finds_is_told_where_commands_may_run() -> None:
    class Runs(plugin_of(answer)):  # type: ignore[misc]
        def dry_run(self) -> str:
            self.precheck()
            return "would change a"

    environment = ActionEnvironment(plugins={"looks": Runs}, cloud=pytest.fail)
    refused = act("refused", input_parameters={"error": ActionFailed("no such host")})
    for runs_commands, why in ((False, None), (True, "would change a")):
        found = check_all([act("do"), refused], environment, runs_commands=runs_commands)
        assert [(one.found, one.why) for one in found] == [
            (Precheck.TO_DO, why),
            (Precheck.REFUSED, "no such host"),
        ]


def test_joins_and_what_has_started_are_left_out() -> None:
    started = act("started", state=ActionState.SUCCEEDED)
    assert checked(answer, Action(uuid="j", action_type=JOIN), started) == {}


def test_one_that_never_answers_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await_all_but_the_last(1, monkeypatch)
    never = threading.Event()

    def look(parameters: Any) -> None:
        if parameters:
            never.wait()

    try:
        found = checked(look, act("a", input_parameters={"x": 1}), act("b"), patience_s=0.5)
    finally:
        never.set()
    assert found["b"] == (Precheck.TO_DO, None)
    assert found["a"] == (Precheck.NO_ANSWER, "no answer within 0.5 s")


def test_what_earlier_work_may_change_is_not_known_yet() -> None:
    refused = {"error": ActionFailed("it has instances")}
    found = checked(
        answer,
        act("move", tokens=("node:c1", "type:looks")),
        act("off", tokens=("node:c1",), input_parameters=refused),
        act("other", tokens=("node:c2", "type:looks"), input_parameters=refused),
    )
    assert found["off"][0] is Precheck.LATER
    assert found["off"][1].startswith("move works on node:c1")
    assert found["off"][1].endswith("it has instances")
    assert found["other"][0] is Precheck.REFUSED


def test_work_that_is_done_changes_nothing_for_the_next() -> None:
    done = {"error": AlreadyDone("gone")}
    found = checked(
        answer,
        act("a", tokens=("node:c1",), input_parameters=done),
        act("b", tokens=("node:c1",), input_parameters=done),
    )
    assert [state for state, _ in found.values()] == [Precheck.NOT_NEEDED, Precheck.NOT_NEEDED]
