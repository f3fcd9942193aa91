# SPDX-License-Identifier: Apache-2.0
"""Windows on the command line: what waits says why, and a forecast says for how many nights."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime, timedelta

import pytest
from command_line import CommandLine

NOP = {"name": "a", "action_type": "nop"}


def later(hours: int = 48) -> str:
    """Return a window of an hour that opens in two days."""
    opens = datetime.now(UTC) + timedelta(hours=hours)
    hour, day = opens.hour, f"{opens:%a}".lower()
    return f"{day} {hour:02}:00-{(hour + 1) % 24:02}:00 UTC"


def test_what_waits_for_a_window_says_so(actionplan: CommandLine) -> None:
    window = later()
    file = actionplan.document("plan.yaml", NOP, guards={"windows": [window]})
    actionplan.good("create", file)
    assert f"Window: {window}; opens at " in actionplan.good("show", "last")
    with actionplan.start("apply", "last", "--yes") as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any(f"1 action waiting for the window {window}" in line for line in lines)
        assert f"for the window {window}, which opens at" in actionplan.good("why", "last", "a")
        assert "waits for the window" in actionplan.good("action", "list", "last", "-f", "json")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 5


def test_a_plan_runs_in_its_window(actionplan: CommandLine) -> None:
    always = "daily 00:00-00:00 UTC"
    actionplan.configure(watcher_applier={"windows": always})
    out = actionplan.good("apply", actionplan.document("plan.yaml", NOP), "--yes")
    assert "SUCCEEDED" in out
    assert "waiting for" not in out


def test_an_action_that_fits_into_no_window_is_refused(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_applier={"windows": "daily 01:00-02:00 UTC"})
    file = actionplan.document("plan.yaml", {**NOP, "estimate_s": 7200})
    for words in (("apply", file, "--yes"), ("start", "last")):
        ended = actionplan.inside(*words)
        assert ended.code == 4
        assert "is expected to take up to 2h00m, and the longest window lasts 1h00m" in ended.err


def test_a_forecast_says_how_many_nights(actionplan: CommandLine) -> None:
    steps = [{**NOP, "name": name, "estimate_s": 1900} for name in "abc"]
    file = actionplan.document("plan.yaml", *steps)
    ended = actionplan.inside("simulate", file, "--split-by-window")
    assert ended.code == 1
    assert "--split-by-window: neither the plan nor" in ended.err
    setting = "windows=daily 01:00-02:00 UTC"
    shown = actionplan.good("simulate", file, "--split-by-window", "--set", setting)
    assert "It takes 3 windows, if each action takes as long as 9 in 10 did:" in shown
    words = ("--split-by-window", "--set", setting, "-f", "json")
    found = json.loads(actionplan.good("simulate", file, *words))
    assert [len(night["actions"]) for night in found["nights"]] == [1, 1, 1]


@pytest.mark.parametrize("text", ["sat 22:00-04:00", "sat 22:00-04:00 Nowhere", "22:00-04:00 UTC"])
def test_a_wrong_window_is_refused_at_start_and_in_a_document(
    actionplan: CommandLine, text: str
) -> None:
    file = actionplan.document("plan.yaml", NOP, guards={"windows": [text]})
    ended = actionplan.inside("create", file)
    assert ended.code == 1
    assert "plan.yaml:" in ended.err
    assert "guards" in ended.err
    assert text in ended.err
    actionplan.configure(watcher_applier={"windows": text})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "[watcher_applier] windows: " in ended.err
