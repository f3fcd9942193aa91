# SPDX-License-Identifier: Apache-2.0
"""``watch -f json``: the events of a plan that another process runs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import EXAMPLE, CommandLine, Gate, Started, wait_until
from test_cli_record import AS_ANYBODY, restricted

from applier.notifications.schema import SCHEMA
from applier.operations.events import READERS
from applier.storage.sql import SqlStore
from planner.states import PlanState

CHECKED = jsonschema.Draft202012Validator(SCHEMA)
FOLLOW = ("watch", "last", "-f", "json")


def read(text: str) -> list[dict[str, Any]]:
    """Return the events of lines, which keep the schema and the order of their numbers."""
    assert text.isascii()
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        CHECKED.validate(event)
    numbers = [event["number"] for event in events]
    assert numbers == sorted(numbers)
    return events


def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what the events of a run tell, apart from the history."""
    return [
        (e["plan"], e.get("action"), e["type"], e["data"])
        for e in events
        if e["type"] != "plan.history"
    ]


def states(events: list[dict[str, Any]]) -> list[str]:
    """Return the states of a plan in their order."""
    return [e["data"]["state"] for e in events if e["type"] == "plan.state"]


def subscribed(line: CommandLine, name: str) -> bool:
    with closing(SqlStore(f"sqlite:///{line.record}")) as store:
        return name in {s.name for s in store.subscriptions()}


@pytest.fixture
def recorded(actionplan: CommandLine) -> CommandLine:
    """Return a command line for whose record a receiver subscribes."""
    actionplan.good("list")
    with closing(SqlStore(f"sqlite:///{actionplan.record}")) as store:
        store.subscribe("ops", now=datetime.now(UTC))
    return actionplan


@pytest.fixture
def following(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> Iterator[tuple[Started, subprocess.Popen[str]]]:
    """Follow a plan that another process runs, and wait until the first event has come."""
    with actionplan.start(*FOLLOW) as process:
        wait_until(lambda: subscribed(actionplan, READERS))
        yield process, running
        process.kill()


def test_a_finished_run_is_told_as_it_was_told_to_the_file(recorded: CommandLine) -> None:
    recorded.good("apply", str(EXAMPLE), "--yes", "--events", "events.jsonl")
    ended = recorded(*FOLLOW)
    assert ended.code == 0
    events = read(ended.out)
    of_file = read((recorded.folder / "events.jsonl").read_text(encoding="ascii"))
    assert states(events) == ["RECOMMENDED", "PENDING", "ONGOING", "SUCCEEDED"]
    assert told(events)[2:] == told(of_file)
    assert [e["data"]["verb"] for e in events if e["type"] == "plan.history"] == [
        *("create", "start", "apply")
    ]
    assert "11 succeeded" in ended.err


def test_failures_and_retries_are_told_as_to_the_file(recorded: CommandLine) -> None:
    recorded.configure(actionplan={"simulator_speed": 1000}, watcher_actions__shell={"retries": 1})
    fails = {"argv": ["sh", "-c", "echo no; exit 3"]}
    recorded.document(
        "plan.yaml",
        {"name": "fails", "action_type": "shell", "input_parameters": fails},
        {"name": "beside", "action_type": "nop"},
    )
    ended = recorded("apply", "plan.yaml", "--yes", "--events", "events.jsonl")
    assert ended.code == 3, ended
    follows = recorded(*FOLLOW)
    assert follows.code == 3
    of_file = read((recorded.folder / "events.jsonl").read_text(encoding="ascii"))
    assert told(read(follows.out))[2:] == told(of_file)


def test_without_kept_events_the_state_is_told(actionplan: CommandLine) -> None:
    actionplan.good("apply", str(EXAMPLE), "--yes")
    ended = actionplan(*FOLLOW)
    assert ended.code == 0
    [event] = read(ended.out)
    assert (event["number"], event["data"]) == (
        0,
        {"state": "SUCCEEDED", "message": "11 succeeded"},
    )
    assert event["plan"] == actionplan.plan().uuid


def test_a_run_of_another_process_is_told_to_its_end(
    actionplan: CommandLine, gate: Gate, following: tuple[Started, subprocess.Popen[str]]
) -> None:
    reader, run = following
    assert reader.stdout is not None
    first = reader.stdout.readline()
    assert states(read(first)) == ["ONGOING"]
    gate.let_go()
    out, err = reader.communicate()
    assert run.wait() == 0
    assert reader.returncode == 0, err
    events = read(first + out)
    assert states(events) == ["ONGOING", "SUCCEEDED"]
    assert events[-1]["data"]["state"] == "SUCCEEDED"
    last = {e["data"]["name"]: e["data"]["state"] for e in events[1:-1]}
    assert last == dict.fromkeys(("first", "second", "third", "fourth"), "SUCCEEDED")
    assert events[1]["data"]["old"] == "ONGOING"
    assert "4 succeeded" in err


def test_a_plan_whose_applier_was_killed_ends_the_events(
    actionplan: CommandLine, following: tuple[Started, subprocess.Popen[str]]
) -> None:
    reader, run = following
    run.kill()
    run.wait()
    out, err = reader.communicate()
    assert (reader.returncode, states(read(out))) == (5, ["ONGOING"])
    assert "that process is gone: it crashed or was killed" in err
    assert f"Continue it: actionplan resume {actionplan.plan().uuid[:8]}" in err


def test_ctrl_c_ends_the_events_and_not_the_plan(
    actionplan: CommandLine, following: tuple[Started, subprocess.Popen[str]]
) -> None:
    reader, run = following
    assert reader.stdout is not None
    assert reader.stdout.readline()
    reader.send_signal(signal.SIGINT)
    out, err = reader.communicate()
    assert (reader.returncode, out) == (130, "")
    cloud, stopped = err.splitlines()
    assert cloud == "Cloud: simulated: nothing real is touched, except by shell"
    assert stopped == f"Stopped watching; Plan {actionplan.plan().uuid[:8]} continues."
    assert run.poll() is None


def test_what_an_operator_does_is_told_with_who_and_why(
    actionplan: CommandLine, following: tuple[Started, subprocess.Popen[str]]
) -> None:
    reader, run = following
    actionplan.good("cancel", "last", "--reason", "wrong\x1b hosts")
    out, _ = reader.communicate()
    assert run.wait() == reader.returncode == 5
    events = read(out)
    [asked] = [e["data"] for e in events if e["type"] == "plan.history"]
    assert (asked["verb"], asked["who"]) == ("cancel", "operator")
    assert asked["why"] == "wrong\x1b hosts"
    assert "\x1b" not in out
    assert events[-1]["data"]["state"] == PlanState.CANCELLED


def test_a_reader_that_goes_away_gets_no_complaint(recorded: CommandLine) -> None:
    recorded.good("apply", str(EXAMPLE), "--yes")
    with recorded.start(*FOLLOW) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == ""


def test_a_plan_that_nobody_runs_is_refused(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    ended = actionplan(*FOLLOW)
    assert (ended.code, ended.out) == (1, "")
    assert "is RECOMMENDED: nobody runs it." in ended.err


@pytest.mark.parametrize("words", [FOLLOW, ("event", "subscription", "remove", "ops")])
def test_a_record_that_cannot_be_written_is_told_in_a_sentence(
    recorded: CommandLine, words: tuple[str, ...]
) -> None:
    recorded.good("apply", str(EXAMPLE), "--yes")
    files: list[Path] = [*recorded.record.parent.iterdir()]
    for path in files:
        path.chmod(0o400)
    recorded.record.parent.chmod(0o500)
    try:
        listed = restricted(recorded, "event", "list")
        assert (listed.returncode, listed.stderr) == (0, ""), AS_ANYBODY
        ended = restricted(recorded, *words)
    finally:
        recorded.record.parent.chmod(0o700)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "check the rights on the file and on its folder" in ended.stderr
    assert ended.stderr.count("\n") == 1
