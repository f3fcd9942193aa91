# SPDX-License-Identifier: Apache-2.0
"""Shell: real programs, their exit codes, and how they are ended."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

from applier.actions import node_action
from applier.actions.node_commands import Shell
from applier.contracts import ActionContext, Ended, Verified
from applier.errors import ActionFailed, JobLost
from applier.machines import following
from planner.plan.states import Outcome

pytestmark = pytest.mark.slow
#: Seconds that a slow machine may take, and less than the programs of these tests would.
PATIENCE_S = 120.0


def run(context, stop, **parameters) -> Outcome:
    work = Shell(parameters, context)
    work.precheck()
    return work.execute(stop)


def test_an_argument_is_never_read_by_a_shell(context, printed, stop):
    assert run(context, stop, argv=["echo", "$HOME; echo no"]) is Outcome.CHANGED
    assert "".join(printed) == "$HOME; echo no\n"


def test_a_command_is_a_line_for_the_shell(context, printed, stop):
    run(context, stop, command="echo one; echo two >&2; echo three")
    assert "".join(printed) == "one\ntwo\nthree\n"


def test_its_environment_is_ours_and_what_is_added(context, printed, stop, monkeypatch):
    monkeypatch.setenv("FROM_OUTSIDE", "kept")
    run(context, stop, command="echo $FROM_OUTSIDE $ADDED", env={"ADDED": "too"})
    assert "".join(printed) == "kept too\n"


def test_it_runs_where_it_is_told_and_has_no_input(context, printed, stop, tmp_path):
    run(context, stop, command="pwd; cat", cwd=str(tmp_path))
    assert "".join(printed) == f"{tmp_path}\n"


#: The exit code, the lists of codes, and the outcome, None for a failure.
EXITS = [
    (0, {}, "changed"),
    (0, {"ok_exit_codes": [0], "changed_exit_codes": [2]}, "ok"),
    (2, {"ok_exit_codes": [0], "changed_exit_codes": [2]}, "changed"),
    (0, {"ok_exit_codes": [3]}, "changed"),
    (1, {"changed_exit_codes": [0, 1]}, "changed"),
    (143, {"ok_exit_codes": [143]}, "ok"),
    (255, {"changed_exit_codes": [255]}, "changed"),
    (1, {}, None),
    (0, {"changed_exit_codes": [2]}, None),
    (0, {"changed_exit_codes": []}, None),
]


def test_exit_codes_mean_what_the_lists_say(context, stop):
    for code, lists, outcome in EXITS:
        if outcome:
            assert run(context, stop, command=f"exit {code}", **lists) == outcome, (code, lists)
        else:
            with pytest.raises(ActionFailed, match=f": exit code {code}$"):
                run(context, stop, command=f"exit {code}", **lists)


def test_a_failure_repeats_the_last_line_of_the_output(context, stop):
    with pytest.raises(ActionFailed) as failure:
        run(context, stop, command="echo first; echo '  no space left  ' >&2; echo; exit 5")
    assert str(failure.value).endswith(": exit code 5: no space left")


def test_an_exit_code_in_both_lists_is_refused_before_it_runs(context, printed, stop):
    both = {"ok_exit_codes": [0, 2], "changed_exit_codes": [2]}
    with pytest.raises(ActionFailed, match="exit code 2 is in ok_exit_codes"):
        Shell({"command": "echo ran", **both}, context).precheck()
    with pytest.raises(ActionFailed, match="exit code 2 is in ok_exit_codes"):
        Shell({"command": "echo ran", **both}, context).execute(stop)
    assert printed == []


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"argv": ["/no/such/program"]}, "No such file or directory"),
        ({"argv": ["true"], "cwd": "/no/folder"}, "No such file or directory: /no/folder"),
        ({"argv": ["/"]}, "cannot be started: Permission denied"),
        ({"argv": ["echo", "a\0b"]}, "cannot be started: embedded null byte"),
    ],
)
def test_what_cannot_be_started_fails_with_the_reason(context, stop, parameters, sentence):
    with pytest.raises(ActionFailed, match=sentence):
        run(context, stop, **parameters)


def test_a_signal_that_ended_it_is_named(context, stop):
    with pytest.raises(ActionFailed, match=r"ended by signal 9 \(Killed\)"):
        run(context, stop, command="kill -9 $$")


def test_a_stop_that_is_set_lets_nothing_begin(context, stop, tmp_path):
    stop.set()
    with pytest.raises(ActionFailed, match="stopped before it began"):
        run(context, stop, argv=["touch", str(tmp_path / "ran")])
    assert not (tmp_path / "ran").exists()


def test_a_stop_ends_it_and_it_says_when(cloud, stop):
    context = ActionContext(cloud=lambda: cloud, output=lambda _: stop.set())
    began = time.monotonic()
    with pytest.raises(ActionFailed, match=r"stopped after \d+\.\d s: at work"):
        run(context, stop, command="echo at work; sleep 600; true")
    assert time.monotonic() - began < PATIENCE_S


def test_an_exit_code_does_not_excuse_a_stop(cloud, stop):
    context = ActionContext(cloud=lambda: cloud, output=lambda _: stop.set())
    with pytest.raises(ActionFailed, match="stopped after"):
        run(context, stop, command="trap 'exit 0' TERM; echo; while :; do sleep 0.05; done")


def test_a_time_out_ends_it_and_it_says_so(context, stop):
    began = time.monotonic()
    with pytest.raises(ActionFailed, match=r"sleep 600: had not ended after 0\.1 s"):
        run(context, stop, argv=["sleep", "600"], timeout_s=0.1)
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("timeout", "it: had not ended after 5 s"),
        ("stop", "it: stopped after 7.0 s"),
    ],
)
def test_a_command_that_could_not_be_ended_may_still_run(why, text):
    machine = SimpleNamespace(run=lambda *_, **__: Ended(None, why, 7.0, "at work"))
    with pytest.raises(JobLost) as lost:
        node_action.run(machine, ["it"], "it", output=print, timeout_s=5.0)
    assert not lost.value.is_over
    assert str(lost.value).startswith(text)


def test_its_words_are_the_command_cut_short_and_no_values_of_the_environment(context, stop):
    assert Shell.describe({"command": "systemctl\n restart x"}) == "run: systemctl restart x"
    assert Shell.describe({"argv": ["echo", "a b"]}) == "run: echo 'a b'"
    words = Shell.describe({"command": "x" * 500, "env": {"PASSWORD": "hunter2"}})
    assert words == f"run: {'x' * 59}…"
    with pytest.raises(ActionFailed) as failure:
        run(context, stop, argv=["false"], env={"PASSWORD": "hunter2"})
    assert "hunter2" not in str(failure.value)


def test_what_is_broken_outside_of_it_is_not_taken_for_its_failure(cloud, stop, monkeypatch):
    def broken(text: str) -> None:
        raise RuntimeError("the record is gone")

    monkeypatch.setattr(following, "GRACE_S", 0.2)
    context = ActionContext(cloud=lambda: cloud, output=broken)
    with pytest.raises(RuntimeError, match="the record is gone"):
        run(context, stop, argv=[sys.executable, "-c", "print(1, flush=True); input()"])


LINES = {"created": "created .*", "changed": "changed=[1-9].*", "ok": "nothing to do"}


@pytest.mark.parametrize(
    ("output", "lists", "outcome"),
    [
        ("nothing to do", {}, "ok"),
        ("there is nothing to do", {}, "changed"),
        ("changed=0", {"ok_exit_codes": [0]}, "ok"),
        ("one\\nchanged=2\\nnothing to do\\n", {}, "changed"),
        ("nothing to do\\ncreated a\\nchanged=2", {}, "created"),
        ("nothing to do\\r\\n", {}, "ok"),
        ("", {}, "changed"),
    ],
)
def test_a_whole_line_of_the_output_may_tell_the_outcome(context, stop, output, lists, outcome):
    command = f"printf '{output}'"
    assert run(context, stop, command=command, outcome_lines=LINES, **lists) == outcome


def test_a_line_does_not_make_good_what_failed(context, stop):
    with pytest.raises(ActionFailed, match="exit code 1: created a"):
        run(context, stop, command="echo created a; exit 1", outcome_lines=LINES)


def test_a_line_that_comes_in_pieces_is_one(context, stop):
    command = "printf 'nothing '; sleep 0.1; echo to do"
    assert run(context, stop, command=command, outcome_lines=LINES) == "ok"


def test_an_expression_that_is_none_is_refused_before_it_runs(context):
    with pytest.raises(ActionFailed, match=r"outcome_lines: ok: '\('"):
        Shell({"command": "true", "outcome_lines": {"ok": "("}}, context).precheck()


def test_one_that_was_ended_is_not_done(context, stop):
    work = Shell({"command": "sleep 100", "timeout_s": 0.01}, context)
    assert work.verify() is Verified.IN_DOUBT
    with pytest.raises(ActionFailed, match="was stopped"):
        work.execute(stop)
    assert work.verify() is Verified.NOT_DONE
