# SPDX-License-Identifier: Apache-2.0
"""``apply --events``: the events of a run for programs."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import termios

import pytest
from command_line import EXAMPLE, PATIENCE_S, PROGRAM, CommandLine, wait_until


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


def test_standard_output_that_is_full_is_told_and_does_not_change_how_a_run_ended(
    actionplan: CommandLine,
) -> None:
    actionplan.document("plan.yaml", {"action_type": "nop"})
    with open("/dev/full", "wb") as full:
        ended = _applied(actionplan, full.fileno(), "--events", "-")
    out, err = ended.communicate(timeout=PATIENCE_S)
    assert (ended.returncode, out) == (0, None)
    assert err.count("No more events are written: No space left on device\n") == 1
    assert "RECAP" in err


@pytest.mark.parametrize("words", [(), ("--events", "-")])
def test_a_slow_reader_of_a_pipe_that_does_not_block_gets_everything(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    names = [f"the action with the number {i}" for i in range(100)]
    actionplan.document("plan.yaml", *({"name": name, "action_type": "nop"} for name in names))
    reading, writing = os.pipe()
    # Smaller than what is written before anything runs.
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    ended = _applied(actionplan, writing, *words)
    # No event is longer than the rest.
    wait_until(lambda: _unread(writing) > 4096 - 400)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        out = pipe.read()
    _, err = ended.communicate(timeout=PATIENCE_S)
    assert (ended.returncode, "No more events" in err) == (0, False)
    if words:
        events = [json.loads(line) for line in out.splitlines()]
        assert len(events) == 2 * len(names) + 2
    else:
        assert out.count("SUCCEEDED (changed)") == len(names)
        assert "RECAP" in out


def _unread(pipe: int) -> int:
    """Return how many bytes are in a pipe."""
    (number,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
    return int(number)


def _applied(line: CommandLine, out: int, *words: str) -> subprocess.Popen[str]:
    """Start to apply ``plan.yaml`` with standard output on a descriptor."""
    return subprocess.Popen(
        [PROGRAM, "apply", "plan.yaml", "--yes", *words],
        cwd=line.folder,
        env=line.environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
    )
