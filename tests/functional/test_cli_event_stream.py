# SPDX-License-Identifier: Apache-2.0
"""Events for programs: of a run (``apply --events``), and of another one (``watch -f json``)."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from command_line import EXAMPLE, CommandLine, Started, wait_until

from applier.notifications.schema import SCHEMA
from applier.store.entries import READERS

CHECKED = jsonschema.Draft202012Validator(SCHEMA)
FOLLOW = ("watch", "last", "-f", "json")
Following = tuple[Started, subprocess.Popen[str]]


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


# The run of this process


def test_the_events_of_a_run_go_to_a_file_or_alone_to_standard_output(actionplan):
    actionplan.good("apply", str(EXAMPLE), "--yes", "--events", "events.jsonl")
    events = read((actionplan.folder / "events.jsonl").read_text(encoding="ascii"))
    plan = actionplan.plan()
    last = {e["action"]: e["data"]["state"] for e in events if e["type"] == "action.state"}
    assert last == {a.uuid: a.state for a in plan.actions}
    assert states(events) == ["ONGOING", "SUCCEEDED"]
    assert {e["plan"] for e in events} == {plan.uuid}
    ended = actionplan("apply", str(EXAMPLE), "--yes", "--events", "-")
    assert (ended.code, states(read(ended.out))[-1]) == (0, "SUCCEEDED")
    assert "SUCCEEDED" in ended.err


def test_events_that_cannot_be_written_are_refused_before_anything_runs_or_told_once(actionplan):
    actionplan.document("plan.yaml", {"action_type": "nop"})
    words = ("apply", "plan.yaml", "--yes", "--events")
    ended = actionplan(*words, "no/events.jsonl")
    assert (ended.code, "cannot be written: No such file" in ended.err) == (1, True)
    assert actionplan.good("history").startswith("No changes are on record.")
    no_room = "No more events are written: No space left on device\n"
    ended = actionplan.copied(*words, "/dev/full")
    assert (ended.code, ended.err) == (0, no_room)
    with open("/dev/full", "wb") as full:
        ended = actionplan.copied(*words, "-", stdout=full)
    assert (ended.code, ended.out, ended.err.count(no_room)) == (0, None, 1)
    assert "RECAP" in ended.err


# The run of another process


@pytest.fixture
def recorded(actionplan: CommandLine) -> CommandLine:
    """Return a command line for whose record a receiver subscribes."""
    actionplan.good("list")
    with actionplan.store() as store:
        store.subscribe("ops", now=datetime.now(UTC))
    return actionplan


@pytest.fixture
def following(actionplan: CommandLine, running: subprocess.Popen[str]) -> Iterator[Following]:
    """Follow a plan that another process runs, and wait until the first event has come."""

    def subscribed() -> bool:
        with actionplan.store() as store:
            return READERS in {s.name for s in store.subscriptions()}

    with actionplan.start(*FOLLOW) as process:
        wait_until(subscribed)
        yield process, running
        process.kill()


def test_a_finished_run_is_told_as_it_was_told_to_the_file(recorded):
    recorded.configure(watcher_actions__shell={"retries": 1})
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
    events = read(follows.out)
    of_file = read((recorded.folder / "events.jsonl").read_text(encoding="ascii"))
    assert states(events) == ["RECOMMENDED", "PENDING", "ONGOING", "FAILED"]
    assert told(events)[2:] == told(of_file)
    assert [e["data"]["verb"] for e in events if e["type"] == "plan.history"] == [
        *("create", "start", "apply")
    ]
    with recorded.start(*FOLLOW) as process:
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == ""


def test_a_plan_whose_applier_was_killed_ends_the_events(actionplan, following):
    reader, run = following
    run.kill()
    run.wait()
    out, err = reader.communicate()
    assert (reader.returncode, states(read(out))) == (5, ["ONGOING"])
    assert "that process is gone" in err
    assert f"Continue it: actionplan apply {actionplan.plan().uuid[:8]}" in err


def test_a_run_of_another_process_is_told_to_its_end_and_ctrl_c_ends_the_events_alone(
    actionplan, following
):
    reader, run = following
    with actionplan.start(*FOLLOW) as other:
        assert other.stdout.readline()
        other.send_signal(signal.SIGINT)
        out, err = other.communicate()
    assert (other.returncode, out) == (130, "")
    assert err.endswith(f"Stopped watching; Plan {actionplan.plan().uuid[:8]} continues.\n")
    assert run.poll() is None
    actionplan.good("stop", "last", "--cancel", "--reason", "wrong\x1b hosts")
    out, err = reader.communicate()
    assert run.wait() == reader.returncode == 5
    assert "4 cancelled" in err
    events = read(out)
    assert states(events) == ["ONGOING", "CANCELLING", "CANCELLED"]
    ended = [e["data"] for e in events if e["type"] == "action.state"]
    assert {one["name"]: (one["old"], one["state"]) for one in ended} == {
        "first": ("ONGOING", "CANCELLED"),
        **dict.fromkeys(("second", "third", "fourth"), ("PENDING", "CANCELLED")),
    }
    [asked] = [e["data"] for e in events if e["type"] == "plan.history"]
    assert (asked["verb"], asked["who"], asked["why"]) == ("cancel", "operator", "wrong\x1b hosts")
    assert "\x1b" not in out
