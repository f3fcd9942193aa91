# SPDX-License-Identifier: Apache-2.0
"""What machines tell of the commands that interrupted actions have left, and what follows."""

from __future__ import annotations

import re
import threading

import pytest

from applier.actions.markers import Nop
from applier.contracts import Claimant, Verified
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed
from applier.machines.found_jobs import FoundJob, JobState
from applier.run.interrupted_actions import InterruptedActions
from planner.plan.model import Action
from planner.plan.states import ActionState, StateReason

PATIENCE_S = 120.0
RUNS = [FoundJob("p.a.2.1", JobState.RUNS, age_s=7.0)]
KILLED = [FoundJob("p.a.2.1", JobState.KILLED)]
LEFT = [FoundJob("p.a.2.1", JobState.KILLED, left=(11, 12))]
RESTARTED = [FoundJob("p.a.2.1", JobState.RESTARTED)]
BEFORE = Claimant(host="c1", pid=9, user="ann")


class Commands(Nop):
    """An action that may have left commands."""

    USES_MACHINES = True


class Machines:
    """The machines of a run: finds these jobs, or raises this error, and notes what is ended.

    If ``then`` is given, those are the jobs that it finds after they were ended.
    """

    def __init__(self, found=(), then=None):
        self.found, self.then, self.ended = found, then, []

    def of_attempt(self, plan, action, attempt):
        return OfAttempt(self, (plan, action, attempt))


class OfAttempt:
    def __init__(self, machines, attempt):
        self.machines, self.attempt = machines, attempt

    def withdraw_permit(self, *, is_here=False):
        return False

    def find(self, addresses):
        if isinstance(self.machines.found, Exception):
            raise self.machines.found
        return self.machines.found

    def end(self, addresses):
        self.machines.ended.append((*self.attempt, *addresses))
        self.find(addresses)
        if self.machines.then is not None:
            self.machines.found = self.machines.then


def action(uuid, state):
    return Action(uuid=uuid, action_type="nop", state=ActionState(state), attempts=2)


def left(machines, plugin=Commands, **known):
    environment = ActionEnvironment(
        plugins={"nop": plugin}, cloud=lambda: None, machines=machines, plan="p"
    )
    return InterruptedActions(environment=environment, **known)


def reports(found):
    return [one.report for one in found if one.report]


def test_the_commands_of_all_that_is_in_progress_are_ended_and_no_others():
    machines = Machines(RUNS)
    left(machines).end_commands([action(state, state) for state in ActionState])
    assert machines.ended == [("p", "ONGOING", 2, None)]


def test_an_action_stays_in_doubt_whose_command_cannot_be_ended():
    running = [action("a", "ONGOING")]
    (told,) = left(Machines(ActionFailed("no route to it"))).end_commands(running)
    assert told.state is ActionState.UNKNOWN
    assert "no route to it" in told.message
    (told,) = left(None).end_commands(running)
    assert told.state is ActionState.UNKNOWN
    assert "no command of it was found" in told.message


@pytest.mark.parametrize("found", [RUNS, LEFT])
def test_an_action_is_cancelled_if_its_command_ran_and_was_ended(found):
    machines = Machines(found, then=[FoundJob("p.a.2.1", JobState.ENDED, code=-15)])
    (told,) = left(machines).end_commands([action("a", "ONGOING")])
    assert (told.state, told.state_reason) == (ActionState.CANCELLED, StateReason.ABORTED)


@pytest.mark.parametrize(
    ("found", "then", "why"),
    [
        (RUNS, RUNS, "running for 7 s"),
        (RUNS, LEFT, "still run: 11, 12"),
        (KILLED, KILLED, "killed together with"),
        ([FoundJob("p.a.2.1", JobState.ENDED, code=0)], None, "exit code 0"),
        ((), None, "no command of it was found"),
    ],
)
def test_an_action_stays_in_doubt_if_no_command_of_it_was_ended(found, then, why):
    machines = Machines(found, then=then)
    (told,) = left(machines).end_commands([action("a", "ONGOING")])
    assert (told.state, told.state_reason) == (ActionState.UNKNOWN, None)
    assert why in told.message


@pytest.mark.parametrize(
    ("state", "before", "where"),
    [
        ("ONGOING", None, None),
        ("ONGOING", BEFORE._replace(host="here"), None),
        ("ONGOING", BEFORE, "on c1, where process 9 started it"),
        ("UNKNOWN", BEFORE._replace(host="here"), "none was found on here"),
    ],
)
def test_a_command_of_another_host_cannot_be_seen_from_here(state, before, where):
    class OnNode(Commands):
        runs_on = staticmethod(lambda _: ("10.0.0.3",))

    class Here(Commands):
        runs_on = staticmethod(lambda _: (None,))

    doubtful = action("a", state)
    assert left(None, OnNode, before=before, host="here").unseen(doubtful) is None
    told = left(None, Here, before=before, host="here").unseen(doubtful)
    assert told is None if where is None else where in told


def test_what_is_known_of_them_is_told():
    doubtful = [action("a", "UNKNOWN"), action("b", "SUCCEEDED")]
    assert left(Machines(RUNS)).described(doubtful) == {"a": "its command has been running for 7 s"}
    unreachable = Machines(ActionFailed("no route to it"))
    assert left(unreachable).described(doubtful) == {"a": "no route to it"}
    for machines in (None, Machines()):
        assert left(machines).described(doubtful) == {}


def test_an_action_whose_command_is_found_goes_on():
    found = left(Machines(RUNS)).verify([action("a", "ONGOING"), action("b", "UNKNOWN")])
    assert [(one.uuid, one.age_s) for one in found] == [("a", 7.0), ("b", 7.0)]
    assert [(r.uuid, str(r.state)) for r in reports(found)] == [("b", "ONGOING")]


@pytest.mark.parametrize("missing", [None, RESTARTED])
def test_one_whose_command_was_lost_is_verified_and_why_is_told(missing):
    class NotDone(Commands):
        def verify(self):
            return Verified.NOT_DONE

    machines = Machines(missing or ())
    (report,) = reports(left(machines, NotDone).verify([action("a", "ONGOING")]))
    assert report.state is ActionState.PENDING
    assert ("machine was restarted" in report.message) is (missing is not None)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (ActionFailed("no route to it"), "no route to it"),
        (TimeoutError("no answer"), "no answer"),
    ],
)
def test_one_of_which_processes_may_run_does_not_run_again(found, why):
    class Safe(Commands):
        RERUN_SAFE = True

        def verify(self):
            return Verified.NOT_DONE

    made = left(Machines(found), Safe).verify([action("a", "ONGOING"), action("b", "UNKNOWN")])
    (report,) = reports(made)
    assert report.state is ActionState.UNKNOWN
    assert why in report.message
    assert all(one.given_up for one in made), "what they hold stays held"


@pytest.mark.parametrize("found", [KILLED, RESTARTED, ()])
def test_one_that_no_longer_runs_holds_nothing(found):
    class Once(Commands):
        RERUN_SAFE = False

        def verify(self):
            return Verified.IN_DOUBT

    made = left(Machines(found), Once).verify([action("a", "ONGOING"), action("b", "UNKNOWN")])
    assert [(r.uuid, str(r.state)) for r in reports(made)] == [("a", "UNKNOWN")]
    assert not any(one.given_up for one in made)


def test_one_whose_work_is_done_holds_nothing():
    class Done(Commands):
        def verify(self):
            return Verified.DONE

    unreachable = Machines(ActionFailed("no route to it"))
    made = left(unreachable, Done).verify([action("a", "UNKNOWN")])
    assert [str(report.state) for report in reports(made)] == ["SUCCEEDED"]
    assert not any(one.given_up for one in made)


@pytest.mark.parametrize("found", [LEFT, RUNS, (*KILLED, *RUNS), (*KILLED, *LEFT)])
def test_one_of_which_a_process_runs_goes_on(found):
    """Also if another command of it was killed."""
    made = left(Machines(found), Commands).verify([action("a", "ONGOING")])
    assert [(one.report, one.age_s is not None) for one in made] == [(None, True)]


def test_one_that_another_host_has_run_does_not_run_again_and_goes_on_if_its_command_runs_here():
    """Hosts may share the folder of jobs: a process of another host is not seen, or has died."""

    class Here(Commands):
        RERUN_SAFE = True
        runs_on = staticmethod(lambda _: (None,))

        def verify(self):
            return Verified.NOT_DONE

    states = {}
    for found in ((), tuple(KILLED), tuple(RUNS)):
        made = left(Machines(found), Here, before=BEFORE, host="here").verify(
            [action("a", "ONGOING")]
        )
        states[found] = [str(report.state) for report in reports(made)]
    assert list(states.values()) == [["UNKNOWN"], ["UNKNOWN"], []]


@pytest.mark.parametrize(
    ("left_in", "state"), [("/a/jobs", "PENDING"), ("/b/jobs", "UNKNOWN"), (None, "PENDING")]
)
def test_one_whose_jobs_another_user_of_the_host_has_does_not_run_again(left_in, state):
    """The claim of an applier of Watcher does not name the folder."""

    class Here(Commands):
        RERUN_SAFE = True
        runs_on = staticmethod(lambda _: (None,))

    before = BEFORE._replace(host="here", jobs=left_in)
    known = {"before": before, "host": "here", "folder": "/a/jobs"}
    (report,) = reports(left(Machines(()), Here, **known).verify([action("a", "ONGOING")]))
    assert report.state == state
    if state == "UNKNOWN":
        assert re.findall(r"/\w/jobs", report.message) == ["/b/jobs", "/a/jobs"]


def test_an_action_may_not_run_again_while_its_machine_is_not_heard_of():
    go = threading.Event()

    class Silent(Commands):
        RERUN_SAFE = True

        def verify(self):
            go.wait(PATIENCE_S)

    class SilentNode(Silent):
        runs_on = staticmethod(lambda _: ("10.0.0.3",))

    try:
        here, there = (
            left(None, plugin).verify([action("a", "ONGOING")], 0.01)[0].report
            for plugin in (Silent, SilentNode)
        )
    finally:
        go.set()
    assert [str(report.state) for report in (here, there)] == ["PENDING", "UNKNOWN"]
    assert "nothing was heard of its machine in time" in there.message
