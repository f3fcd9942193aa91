# SPDX-License-Identifier: Apache-2.0
"""What holds a plan back: approvals, blast radius, windows, a failure budget, a health probe."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime, timedelta

import pytest
from command_line import CommandLine, check_golden

from planner.states import PlanState

NOP = {"name": "a", "action_type": "nop"}
FAST = {"simulator_speed": 1000}


def made(site: CommandLine, *words: str, **fields: object) -> str:
    """Store a plan of one no-op; return its uuid."""
    file = site.document("plan.yaml", NOP, **fields)
    return str(json.loads(site.good("create", file, "-f", "json", *words))["uuid"])


def verbs(site: CommandLine, uuid: str) -> list[str]:
    """Return the verbs in the history of a plan."""
    return [entry["verb"] for entry in json.loads(site.good("history", uuid, "-f", "json"))]


# Approvals


def test_nothing_of_a_plan_runs_before_its_approval_which_a_skip_makes_void(
    actionplan: CommandLine,
) -> None:
    actionplan.configure(actionplan=FAST, watcher_applier={"approvals": 1})
    shown = actionplan.good("create", actionplan.document("plan.yaml", NOP))
    uuid = actionplan.plan().uuid
    missing = f"plan {uuid[:8]} needs 1 approval"
    assert missing in shown
    for words in (("apply", uuid, "--yes"), ("start", uuid)):
        ended = actionplan(*words)
        assert (ended.code, missing in ended.err) == (4, True)
    actionplan.good("approve", uuid, "--reason", "looked at")
    assert " UTC: looked at\n" in actionplan.good("show", uuid)
    ended = actionplan("apply", uuid, "--yes", "--set", "on_failure=continue")
    assert (ended.code, "on_failure=skip_descendants" in ended.err) == (4, True)
    actionplan.good("action", "skip", uuid, "a", "--reason", "by hand")
    ended = actionplan("apply", uuid, "--yes")
    assert (ended.code, "1 approval was" in ended.err) == (4, True)
    assert "(does not count)" in actionplan.good("show", uuid)
    assert "without a." in actionplan.good("approve", uuid, "--reason", "seen")
    actionplan.good("apply", uuid, "--yes")
    assert verbs(actionplan, uuid) == ["create", "approve", "skip", "approve", "start", "apply"]


def test_who_made_a_plan_does_not_approve_it_whatever_the_environment_says(
    actionplan: CommandLine,
) -> None:
    uuid = made(actionplan, "--set", "approvals=1", "--set", "approval_by_another=true")
    assert actionplan.plan().guards.to_dict() == {"approvals": 1, "approval_by_another": True}
    ended = actionplan("apply", uuid, "--yes", "--set", "approvals=0")
    assert (ended.code, "set approvals=0: has no effect" in ended.err) == (1, True)
    ended = actionplan("approve", uuid, "--reason", "mine", LOGNAME="bo", USER="bo")
    assert (ended.code, f"operator made plan {uuid[:8]}" in ended.err) == (4, True)
    actionplan.environment["TEST_USER"] = "bo"
    actionplan.good("approve", uuid, "--reason", "yours")
    actionplan.good("apply", uuid, "--yes")
    actionplan("rollback", uuid)
    back = json.loads(actionplan.good("show", "last", "-f", "json"))
    assert back["guards"] == {"approvals": 1, "approval_by_another": True}


def test_a_saved_plan_cannot_lose_its_guards(actionplan: CommandLine) -> None:
    made(actionplan, "--dry-run", "--out", "plan.json", guards={"approvals": 1})
    saved = actionplan.folder / "plan.json"
    plan = json.loads(saved.read_text())
    del plan["guards"]
    saved.write_text(json.dumps(plan))
    ended = actionplan("apply", "plan.json", "--yes")
    assert (ended.code, "plan.json" in ended.err, actionplan.plans()) == (4, True, [])


def test_a_guard_that_is_none_is_refused_at_start(actionplan: CommandLine) -> None:
    told = []
    for option, value in (
        ("approvals_for", "events=1"),
        ("approvals", "-1"),
        ("approval_max_age_s", "0"),
        ("blast_radius", "hosts=many"),
        ("failure_budget", "10%"),
        ("windows", "sat 22:00-04:00"),
    ):
        actionplan.configure(watcher_applier={option: value})
        told.append(actionplan.transcript("list"))
    check_golden("wrong_guards", "\n".join(told))
    assert all(text.endswith("[1]\n") for text in told)


# Blast radius


def drained(actionplan: CommandLine, *words: str) -> str:
    """Make the plan that empties a host of the simulated cloud; return what is shown."""
    document = actionplan.good("drain", "compute-1")
    return actionplan.good("create", "-", *words, stdin=document)


def test_a_plan_that_touches_too_much_is_refused(actionplan: CommandLine) -> None:
    actionplan.good("simulator", "reset")
    cloud = json.loads(actionplan.simulator.read_text())
    for name, host in cloud["hosts"].items():
        host["labels"] = {"rack": "r1" if name < "compute-3" else "r2"}
    actionplan.simulator.write_text(json.dumps(cloud))
    shown = drained(actionplan)
    [line] = [line for line in shown.splitlines() if line.startswith("Touches")]
    assert " of 4 hosts, " in line
    extent = json.loads(actionplan.good("show", "last", "-f", "json"))["guards"]["extent"]
    assert extent["rack/r1"][1] == 2
    for bound, why in (
        ("hosts=0", " and at most "),
        ("instances=1%", " and at most "),
        ("rack=0", " of rack r"),
        ("row=1", "it is not known which row"),
    ):
        actionplan.configure(watcher_applier={"blast_radius": bound})
        for words in (("apply", "last", "--yes"), ("start", "last")):
            ended = actionplan(*words)
            assert (ended.code, why in ended.err) == (4, True), (bound, ended)
    assert actionplan.plan().state is PlanState.RECOMMENDED


# Windows


def later(hours: int = 48) -> str:
    """Return a window of an hour that opens in two days."""
    opens = datetime.now(UTC) + timedelta(hours=hours)
    hour, day = opens.hour, f"{opens:%a}".lower()
    return f"{day} {hour:02}:00-{(hour + 1) % 24:02}:00 UTC"


def test_what_waits_for_a_window_says_so(actionplan: CommandLine) -> None:
    window = later()
    made(actionplan, guards={"windows": [window]})
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


def test_a_forecast_says_how_many_nights(actionplan: CommandLine) -> None:
    steps = [{**NOP, "name": name, "estimate_s": 1900} for name in "abc"]
    file = actionplan.document("plan.yaml", *steps)
    ended = actionplan("simulate", file, "--split-by-window")
    assert (ended.code, "--split-by-window: neither the plan nor" in ended.err) == (1, True)
    words = ("simulate", file, "--split-by-window", "--set", "windows=daily 01:00-02:00 UTC")
    assert "It takes 3 windows" in actionplan.good(*words)
    found = json.loads(actionplan.good(*words, "-f", "json"))
    assert [len(night["actions"]) for night in found["nights"]] == [1, 1, 1]


# What pauses a plan that runs


@pytest.mark.parametrize(
    ("settings", "who", "why"),
    [
        ({"failure_budget": "0"}, "the failure budget", "1 action failed, the last one b, and "),
        ({"on_failure": "pause"}, "on_failure = pause", "b ended FAILED"),
        ({"health_probe": "test ! -e b"}, "the health probe", "test ended with 1"),
    ],
)
def test_recap_history_timeline_and_report_say_what_paused_a_plan(
    actionplan: CommandLine, settings: dict[str, str], who: str, why: str
) -> None:
    actionplan.configure(watcher_applier=settings)
    commands = {"b": "touch b; exit 1", "c": "true"}
    shell = (
        {"name": name, "action_type": "shell", "input_parameters": {"command": command}}
        for name, command in commands.items()
    )
    ended = actionplan("apply", actionplan.document("plan.yaml", *shell), "--yes")
    assert (ended.code, why in ended.out) == (5, True)
    *_, last = json.loads(actionplan.good("history", "last", "-f", "json"))
    assert (last["verb"], last["who"]) == ("pause", who)
    assert last["why"].startswith(why)
    assert ", and stands still." in actionplan.good("report", "last")
    assert ", and stands still</text>" in actionplan.good("graph", "last", "-f", "timeline")
    actionplan.configure()
    actionplan("apply", "last", "--yes")
    for verb in (("graph", "last", "-f", "timeline"), ("report", "last")):
        page = " ".join(actionplan.good(*verb).split())
        assert f"the end of the pause by {who}: {why}" in page
