# SPDX-License-Identifier: Apache-2.0
"""Plugins are asked in parallel, and whatever they do, an answer comes of it."""

from __future__ import annotations

import os
import queue
import threading
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from applier.actions.node_commands import Puppet, Shell
from applier.contracts import ActionPlugin, Claimant, Verified
from applier.engines import attempts_in_progress
from applier.engines.environment import ActionEnvironment
from applier.machines.job_names import AttemptName
from applier.machines.open_machines import OpenMachines
from applier.run.interrupted_actions import InterruptedActions
from applier.run.this_process import this_host
from planner.plan.model import Action
from planner.plan.states import ActionState

PATIENCE_S = 120.0


class Answering(ActionPlugin):
    """Answers what its parameters say."""

    TYPE = "answering"
    SCHEMA: ClassVar[dict[str, Any]] = {"type": "object"}
    go = threading.Event()

    def execute(self, stop):
        raise AssertionError("nothing runs while it is verified")

    def verify(self):
        answer = self.parameters["answer"]
        if answer == "hang":
            self.go.wait()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def cut_off(uuid, answer, state="ONGOING"):
    return Action(
        uuid=uuid,
        action_type="answering",
        input_parameters={"answer": answer},
        state=ActionState(state),
    )


def verify(*actions, patience_s=PATIENCE_S, plugin=Answering, **given):
    environment = ActionEnvironment(plugins={"answering": plugin}, cloud=lambda: None)
    found = InterruptedActions(environment=environment, **given).verify(actions, patience_s)
    return {one.uuid: str(one.report.state) for one in found if one.report}


def test_only_what_is_ongoing_or_unknown_is_verified():
    states = [str(state) for state in ActionState]
    found = verify(*(cut_off(state, Verified.DONE, state) for state in states))
    assert found == {"ONGOING": "SUCCEEDED", "UNKNOWN": "SUCCEEDED"}


def test_nothing_to_verify_asks_nobody():
    assert verify() == {}


@pytest.mark.parametrize("answer", [ValueError("no"), SystemExit(1), True, None, "done"])
def test_whatever_is_no_answer_leaves_it_in_doubt(answer, caplog):
    assert verify(cut_off("a", answer)) == {"a": "UNKNOWN"}


def test_a_plugin_that_cannot_be_made_leaves_it_in_doubt(caplog):
    class Unmade(Answering):
        def __init__(self, parameters, context):
            raise TypeError("two more arguments")

    assert verify(cut_off("a", None), plugin=Unmade) == {"a": "UNKNOWN"}


class AllButTheLast:
    """Answers, of which only that after ``number`` has to come within the patience."""

    def __init__(self, number: int) -> None:
        self._answers, self._left = queue.SimpleQueue(), number
        self.put = self._answers.put

    def get(self, timeout):
        self._left -= 1
        return self._answers.get(timeout=timeout if self._left < 0 else PATIENCE_S)


def await_all_but_the_last(number, monkeypatch):
    queues = iter([AllButTheLast(number), queue.SimpleQueue()])
    made = SimpleNamespace(SimpleQueue=lambda: next(queues), Empty=queue.Empty)
    monkeypatch.setattr(attempts_in_progress, "queue", made)


@pytest.mark.parametrize("state", ["ONGOING", "UNKNOWN"])
@pytest.mark.parametrize("rerun_safe", [False, True])
def test_what_may_be_at_work_is_not_begun_a_second_time(ended_pid, state, rerun_safe):
    """A process elsewhere may be frozen, and one here is alive; only one that ended is over."""

    class Kind(Answering):
        RERUN_SAFE = rerun_safe

    class Joining(Kind):
        JOINS_WORK = True

    here = this_host()
    held = "UNKNOWN" if state == "ONGOING" else None
    for host, pid, plugin, expected in [
        (here, ended_pid, Kind, "PENDING"),
        (here, os.getppid(), Kind, held),
        ("elsewhere", ended_pid, Kind, held),
        ("elsewhere", ended_pid, Joining, "PENDING"),
        (here, os.getpid(), Kind, "PENDING"),
    ]:
        given = {"before": Claimant(host=host, pid=pid, user="ann"), "plugin": plugin}
        if state == "UNKNOWN":
            given = {"left_in": {"a": f"{host}:{pid}"}, "plugin": plugin}
        assert verify(cut_off("a", Verified.NOT_DONE, state), **given).get("a") == expected
        assert verify(cut_off("a", Verified.DONE, state), **given) == {"a": "SUCCEEDED"}


def test_an_attempt_in_doubt_that_has_ended_is_verified_wherever_it_ran():
    assert verify(cut_off("a", Verified.NOT_DONE, "UNKNOWN"), left_in={"a": None}) == {
        "a": "PENDING"
    }


def test_one_that_hangs_leaves_itself_in_doubt_and_nobody_else(monkeypatch, caplog, ended_pid):
    await_all_but_the_last(20, monkeypatch)
    Answering.go.clear()
    actions = [cut_off(f"a{i}", Verified.NOT_DONE) for i in range(20)]
    try:
        before = Claimant(host=this_host(), pid=ended_pid, user="ann")
        found = verify(cut_off("b", "hang"), *actions, patience_s=0.05, before=before)
    finally:
        Answering.go.set()
    assert found == {"b": "UNKNOWN", **{f"a{i}": "PENDING" for i in range(20)}}


def test_many_are_asked_at_once():
    together = threading.Barrier(8)

    class Meeting(Answering):
        def verify(self):
            together.wait(PATIENCE_S)
            return Verified.DONE

    found = verify(*(cut_off(f"a{i}", None) for i in range(8)), plugin=Meeting)
    assert set(found.values()) == {"SUCCEEDED"}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["ONGOING", "UNKNOWN"])
@pytest.mark.parametrize(
    ("kind", "given"), [(Puppet, {"manifest": "/x.pp"}), (Shell, {"command": "true"})]
)
def test_a_job_of_another_host_in_a_folder_that_both_see_may_still_run(
    tmp_path, kind, given, state
):
    """Its boot id is not that of this host, which does not mean that its own was restarted."""
    place = tmp_path / "jobs"
    folder = place / AttemptName("plan", "a", 1).job(1).folder
    folder.mkdir(parents=True)
    (folder / "pid").write_text("4711 12345 boot-id-of-the-other-host 77.3\n")
    (folder / "out").touch()
    there = OpenMachines(place=place)
    environment = ActionEnvironment(
        plugins={kind.TYPE: kind}, cloud=lambda: None, machines=there, plan="plan"
    )
    action = Action(
        uuid="a",
        action_type=kind.TYPE,
        state=ActionState(state),
        attempts=1,
        input_parameters=given,
    )
    before = Claimant(host="other", pid=9, user="ann", jobs=str(place))
    left = InterruptedActions(
        environment=environment, before=before, host="here", folder=str(place)
    )
    found = left.verify([action])
    assert [one.uuid for one in found if one.given_up] == ["a"]
    reports = [one.report for one in found if one.report]
    assert [str(report.state) for report in reports] == ["UNKNOWN"] * (state == "ONGOING")
    assert all("may still run on other" in report.message for report in reports)
