# SPDX-License-Identifier: Apache-2.0
"""``apply --events``: the events of a run for programs."""

from __future__ import annotations

import json

from command_line import EXAMPLE, CommandLine


def test_the_file_has_the_final_state_of_each_action(actionplan: CommandLine) -> None:
    actionplan.good("apply", str(EXAMPLE), "--yes", "--events", "events.jsonl")
    text = (actionplan.folder / "events.jsonl").read_text(encoding="ascii")
    events = [json.loads(line) for line in text.splitlines()]
    plan = actionplan.plan()
    last = {e["action"]: e["data"]["state"] for e in events if e["type"] == "action.state"}
    assert last == {a.uuid: a.state for a in plan.actions}
    assert events[0]["data"]["state"] == "ONGOING"
    assert events[-1]["data"]["state"] == plan.state == "SUCCEEDED"
    assert {e["plan"] for e in events} == {plan.uuid}


def test_standard_output_has_nothing_but_events(actionplan: CommandLine) -> None:
    ended = actionplan("apply", str(EXAMPLE), "--yes", "--events", "-")
    assert ended.code == 0
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert events[-1]["data"]["state"] == "SUCCEEDED"
    assert "SUCCEEDED" in ended.err


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    actionplan: CommandLine,
) -> None:
    ended = actionplan("apply", str(EXAMPLE), "--yes", "--events", "no/events.jsonl")
    assert ended.code == 1
    assert "--events no/events.jsonl cannot be written: No such file" in ended.err
    assert actionplan.good("history").startswith("No changes are on record.")
