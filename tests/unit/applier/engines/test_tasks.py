# SPDX-License-Identifier: Apache-2.0
"""Whatever an action does, its task gives one report of it."""

from __future__ import annotations

import logging
import os
import signal
import threading
import tracemalloc
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from trials import plugin

from applier import log_fields
from applier.actions.markers import Pause
from applier.actions.node_commands import Shell
from applier.contracts import Verified
from applier.engines.attempts_in_progress import Threads
from applier.engines.environment import ActionEnvironment, ActionOutput
from applier.engines.tasks import only_waiting, task_maker
from applier.errors import ActionFailed, AlreadyDone, JobLost
from applier.machines import following
from applier.machines.open_machines import OpenMachines
from applier.store.worker_jobs import StopReason
from planner.making.registry import ActionTypes
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState, Outcome

ACTION = Action(uuid="a1", action_type="nop", input_parameters={"size": 3})


def make_task(work, cut_off=(), **options):
    made = plugin(work)
    made.USES_CLOUD = True
    environment = ActionEnvironment(plugins={"nop": made}, cloud=lambda: None, **options)
    return task_maker([ACTION], environment, cut_off)("a1")


def run(work, **options):
    return make_task(work, **options).execute()


def raises(error):
    def work(parameters, context, stop):
        raise error

    return work


def returns(value):
    return lambda *_given: value


def test_what_runs_no_commands_may_begin_without_a_permit():
    task = make_task(returns(Outcome.OK))
    assert task.permit()
    assert task.machines is None


@pytest.mark.parametrize("outcome", [Outcome.CHANGED, Outcome.OK, Outcome.CREATED])
def test_an_outcome_is_success(outcome):
    report = run(returns(outcome))
    assert (report.uuid, report.old, report.state) == ("a1", "ONGOING", "SUCCEEDED")
    assert (report.outcome, report.message, report.output) == (outcome, None, None)


def test_what_a_plugin_logs_says_which_plan_and_action_it_is_about():
    said, aborted, goes_on = [], threading.Event(), threading.Event()

    def work(parameters, context, stop):
        said.append(log_fields.current())
        goes_on.set()
        assert aborted.wait(120)
        return Outcome.OK

    def abort(self):
        said.append(log_fields.current())
        aborted.set()

    made = plugin(work)
    made.abort = abort
    environment = ActionEnvironment(plugins={"nop": made}, cloud=lambda: None)
    task, reports = task_maker([ACTION], environment, ())("a1"), []
    with log_fields.about(plan="p1"), Threads(1, lambda report: reports.append(report)) as threads:
        threads.grow(1)
        threads.submit(task)
        assert goes_on.wait(120)
        threads.stop(task, StopReason.ABORT)
        assert aborted.wait(120)
    assert said == [{"plan": "p1", "action": "a1"}] * 2
    assert log_fields.current() == {}


def test_what_the_action_refuses_is_a_failure():
    report = run(raises(ActionFailed("no such instance")))
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.FAILED)
    assert report.message == "no such instance"


def test_what_is_already_done_is_skipped():
    report = run(raises(AlreadyDone("it is off")))
    assert (report.state, report.outcome) == (ActionState.SKIPPED, Outcome.OK)
    assert report.message == "it is off"


@pytest.mark.parametrize(
    "error", [OSError("gone"), SystemExit("gone"), KeyboardInterrupt("gone"), GeneratorExit("gone")]
)
def test_anything_else_that_is_raised_is_an_error_with_class_and_text(error, caplog):
    report = run(raises(error))
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)
    assert report.message == f"{type(error).__name__}: gone"
    assert "Traceback" in caplog.text
    assert "a1" in caplog.text


def test_an_error_that_cannot_be_told_is_an_error(caplog):
    class Untold(ActionFailed):
        def __str__(self):
            raise ValueError("no text")

    report = run(raises(Untold()))
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)


@pytest.mark.parametrize(
    "value", [None, True, "changed", Outcome.FAILED, Outcome.ERROR, ActionState.SUCCEEDED]
)
def test_a_wrong_value_is_an_error_that_names_the_plugin(value):
    report = run(returns(value))
    assert (report.state, report.outcome) == (ActionState.FAILED, Outcome.ERROR)
    assert "Scripted" in report.message
    assert repr(value) in report.message
    assert "changed, created, ok" in report.message


def test_a_plugin_that_cannot_be_made_is_an_error(caplog):
    class NoExecute(plugin(returns(Outcome.OK))):
        def __init__(self, parameters, context):
            raise TypeError("two more arguments")

    task = task_maker([ACTION], ActionEnvironment(plugins={"nop": NoExecute}, cloud=lambda: None))(
        "a1"
    )
    assert task.execute().message == "TypeError: two more arguments"


def test_a_failure_after_stop_was_asked_for_is_an_abort():
    task = make_task(raises(ActionFailed("half-way")))
    task.plugin.precheck = lambda _action: task.stop.set()
    report = task.execute()
    assert (report.state, report.outcome) == (ActionState.CANCELLED, None)
    assert report.message == "aborted: half-way"


def test_an_action_that_was_stopped_before_it_began_does_nothing():
    task = make_task(raises(AssertionError))
    task.stop.set()
    assert task.execute().state is ActionState.CANCELLED


def test_the_action_gets_parameters_options_and_cloud():
    seen = []

    def work(parameters, context, stop):
        seen.append((dict(parameters), dict(context.options), context.cloud()))
        return Outcome.OK

    run(work, options={"nop": {"speed": 2}})
    assert seen == [({"size": 3}, {"speed": 2}, None)]


def test_the_end_of_what_is_printed_is_kept():
    def work(parameters, context, stop):
        for i in range(40_000):
            context.output(f"line {i}\n")
        return Outcome.OK

    output = run(work).output
    assert len(output.encode()) == 64 * 1024
    assert output.endswith("line 39998\nline 39999\n")


def test_output_of_an_action_that_fails_is_kept_too():
    def work(parameters, context, stop):
        context.output("before it broke")
        raise ActionFailed("broken")

    assert run(work).output == "before it broke"


@pytest.mark.parametrize("chunk", [1, 1000, 1_000_000, 20_000_000])
@pytest.mark.slow
def test_twenty_megabytes_need_little_memory(chunk):
    text = "x" * chunk
    tracemalloc.start()
    try:
        output = ActionOutput()
        for _ in range(min(20_000_000 // chunk, 200_000)):
            output.write(text)
        assert len(output.text()) == min(64 * 1024, chunk * 200_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_what_is_cut_in_the_middle_of_a_character_loses_that_character():
    output = ActionOutput(kept=4)
    output.write("aäöü")
    assert output.text() == "öü"
    output.write("x\ud800")
    assert output.text() == "üx?"


def test_writing_nothing_keeps_nothing():
    output = ActionOutput()
    output.write("")
    assert output.text() is None


def test_threads_may_share_an_output():
    output = ActionOutput(kept=100)
    threads = [
        threading.Thread(target=lambda: [output.write("ab") for _ in range(2000)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert output.text() == "ab" * 50


def test_a_long_message_is_cut():
    assert len(run(raises(ActionFailed("x" * 10_000))).message) == 2000


def test_a_name_that_is_no_action_with_a_plugin_gets_a_join():
    join = Action(uuid="j1", action_type=JOIN)
    make = task_maker(
        [ACTION, join],
        ActionEnvironment(plugins={"nop": plugin(returns(None))}, cloud=lambda: None),
    )
    assert [make(name).execute() for name in ("j1", "join 0")] == [None, None]


def test_tasks_share_nothing_that_changes():
    make = task_maker(
        [ACTION],
        ActionEnvironment(plugins={"nop": plugin(returns(Outcome.OK))}, cloud=lambda: None),
    )
    first, second = make("a1"), make("a1")
    first.stop.set()
    assert not second.stop.is_set()
    assert first.notifier is not second.notifier


def test_nothing_is_logged_about_an_action_that_fails_by_itself(caplog):
    caplog.set_level(logging.DEBUG)
    run(raises(ActionFailed("no such instance")))
    assert caplog.records == []


def test_waiting_goes_as_fast_as_the_cloud():
    waits = Action(uuid="a1", action_type="pause", input_parameters={"seconds": 30})
    for pace, seconds in ((1.0, 30), (60.0, 0.5)):
        make = task_maker(
            [waits], ActionEnvironment(plugins={"pause": Pause}, cloud=lambda: None, pace=pace)
        )
        assert make("a1").waits_s == seconds


@pytest.mark.parametrize(
    ("is_over", "rerun_safe", "found", "state", "outcome"),
    [
        (True, False, Verified.IN_DOUBT, "UNKNOWN", None),
        (True, True, Verified.IN_DOUBT, "FAILED", "error"),
        (True, False, Verified.NOT_DONE, "FAILED", "error"),
        (True, False, Verified.DONE, "SUCCEEDED", "changed"),
        (False, False, Verified.IN_DOUBT, "UNKNOWN", None),
        (False, True, Verified.IN_DOUBT, "UNKNOWN", None),
        (False, True, Verified.NOT_DONE, "UNKNOWN", None),
        (False, False, Verified.DONE, "SUCCEEDED", "changed"),
    ],
)
def test_a_command_whose_end_is_not_known_is_not_repeated_while_it_may_run(
    is_over, rerun_safe, found, state, outcome
):
    made = plugin(raises(JobLost("the node was restarted", is_over=is_over)))
    made.RERUN_SAFE, made.verify = rerun_safe, lambda _: found
    environment = ActionEnvironment(plugins={"nop": made}, cloud=lambda: None)
    report = task_maker([ACTION], environment)("a1").execute()
    assert (report.state, report.outcome) == (state, outcome)
    assert report.message.startswith("the node was restarted")
    assert report.given_up is (state == "UNKNOWN" and not is_over), "its tokens stay held"


@pytest.mark.slow
def test_commands_of_a_precheck_are_not_counted_among_those_of_the_work(tmp_path):
    """The next applier leaves the precheck out, and has to find the first command of the work."""

    def work(_parameters, context, stop):
        context.run(["true"], stop)
        return Outcome.CHANGED

    made = plugin(work)
    made.precheck = lambda self: self.context.run(["true"], threading.Event())
    machines = OpenMachines(place=tmp_path)
    environment = ActionEnvironment(
        plugins={"nop": made}, cloud=lambda: None, machines=machines, plan="p"
    )
    assert task_maker([ACTION], environment)("a1").execute().state is ActionState.SUCCEEDED
    assert [path.name for path in tmp_path.iterdir()] == ["p.a1.1.1"]


def test_an_attempt_that_goes_on_is_not_prechecked():
    made = plugin(returns(Outcome.CHANGED))
    made.precheck = lambda _: raises(AlreadyDone("its files are there already"))(None, None, None)
    environment = ActionEnvironment(plugins={"nop": made}, cloud=lambda: None)
    states = [
        str(task_maker([ACTION], environment, (), going_on)("a1").execute().state)
        for going_on in ({}, {"a1": 5.0})
    ]
    assert states == ["SKIPPED", "SUCCEEDED"]


class Elsewhere:
    """Machines of which one cannot be reached."""

    def find(self, addresses):
        raise ConnectionError("node-1: no route to host")

    end = find


class OnlyElsewhere(OpenMachines):
    def of_attempt(self, plan, action, attempt):
        return Elsewhere()


def stopped_at_once(machines):
    """The result of an attempt that goes on, and that is stopped before it is followed."""
    work = plugin(returns(Outcome.OK))
    environment = ActionEnvironment(plugins={"nop": work}, cloud=lambda: None, machines=machines)
    made = task_maker([ONGOING], environment, continued={"a1": 3.0})("a1")
    made.stop.set()
    return made.execute()


ONGOING = replace(ACTION, state=ActionState.ONGOING, attempts=1)


@pytest.mark.slow
def test_a_stop_reaches_a_command_of_another_applier_before_it_is_followed(tmp_path):
    machines, begun = OpenMachines(place=tmp_path / "jobs"), threading.Event()
    codes = []

    def follow():
        machine = machines.of_attempt("", "a1", 1).machine(None, threading.Event())
        command = ["/bin/sh", "-c", "echo begun; exec sleep 1000"]
        codes.append(machine.run(command, output=lambda _: begun.set()).code)

    before = threading.Thread(target=follow)
    before.start()
    assert begun.wait(120)
    report = stopped_at_once(machines)
    assert (report.state, report.message) == ("CANCELLED", "aborted: its command was ended")
    before.join(120)
    assert codes == [-signal.SIGTERM]


#: A command that cannot be ended: its wrapper is stopped, and so never tells its exit code.
ENDLESS = "kill -STOP $PPID; echo begun{}; exec sleep 1000"


@contextmanager
def killed_at_the_end(place):
    """Kill the wrappers of all jobs at the end of the block."""
    try:
        yield
    finally:
        for file in place.glob("*/pid"):
            os.kill(int(file.read_text().split()[0]), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "time-out"])
def test_a_command_that_could_not_be_ended_is_in_doubt_and_is_given_up(tmp_path, monkeypatch, how):
    monkeypatch.setattr(following, "GRACE_S", 0.1)
    told, place = tmp_path / "told", tmp_path / "jobs"
    os.mkfifo(told)
    given = {"command": ENDLESS.format(f" >{told}")}
    environment = ActionEnvironment(
        plugins={"shell": Shell}, cloud=lambda: None, machines=OpenMachines(place=place)
    )
    action = Action(uuid="a1", action_type="shell", input_parameters=given, timeout_s=900.0)
    made, reports = task_maker([action], environment)("a1"), []
    with killed_at_the_end(place):
        attempt = threading.Thread(target=lambda: reports.append(made.execute()))
        attempt.start()
        assert told.read_text() == "begun\n"
        made.stop_for(StopReason.TIMEOUT if how == "time-out" else StopReason.ABORT)
        attempt.join(120)
    (report,) = reports
    assert (report.state, report.outcome, report.given_up) == (ActionState.UNKNOWN, None, True)
    assert "could not be ended" in report.message


@pytest.mark.slow
def test_a_command_of_another_applier_that_a_stop_did_not_end_is_in_doubt(tmp_path):
    machines, begun = OpenMachines(place=tmp_path / "jobs"), threading.Event()

    def follow():
        machine = machines.of_attempt("", "a1", 1).machine(None, threading.Event())
        with suppress(JobLost):
            machine.run(["/bin/sh", "-c", ENDLESS.format("")], output=lambda _: begun.set())

    before = threading.Thread(target=follow)
    with killed_at_the_end(tmp_path / "jobs"):
        before.start()
        assert begun.wait(120)
        report = stopped_at_once(machines)
    before.join(120)
    assert (report.state, report.given_up) == (ActionState.UNKNOWN, True)
    assert report.message.startswith("a stop did not end it: ")


def test_a_command_of_another_applier_that_a_stop_cannot_reach_is_in_doubt():
    report = stopped_at_once(OnlyElsewhere())
    assert report.state is ActionState.UNKNOWN
    assert report.message.startswith("node-1: no route to host; ")


def test_a_join_is_no_action_type_that_may_only_wait():
    waits = Action(uuid="p", action_type="pause", input_parameters={"seconds": 1})
    join, works = Action(uuid="j", action_type=JOIN), ACTION
    assert only_waiting([waits, join, works], ActionTypes()) == {"p"}
