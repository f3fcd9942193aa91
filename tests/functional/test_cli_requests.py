# SPDX-License-Identifier: Apache-2.0
"""A plan that somebody runs, seen and stepped into from another terminal; and all other states."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from uuid import NAMESPACE_OID, uuid5

from command_line import PATIENCE_S, CommandLine, Gate, wait_until

from planner.states import ActionState, PlanState


def nop(name: str) -> dict[str, object]:
    """Describe an action that does nothing."""
    return {"name": name, "action_type": "nop", "touches": [f"node:{name}"]}


def short(actionplan: CommandLine) -> str:
    """Return the beginning of the plan's uuid."""
    return actionplan.plan().uuid[:8]


def runner(process: subprocess.Popen[str]) -> str:
    """Name the process as the program does, whatever this host is called."""
    return rf"operator on \S+, process {process.pid}"


def test_show_is_headed_by_who_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    actionplan.good("action", "skip", "last", "third", "--reason", "moved by hand")
    lines = actionplan.good("show", "last").splitlines()
    assert "ONGOING" in lines[0]
    assert re.fullmatch(f"Run by {runner(running)}", lines[2])
    assert re.fullmatch(rf"Heard of \d+s ago, in the record .*{actionplan.record.name}", lines[3])
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.fullmatch(f"Requested: skip third, by operator at {time}: moved by hand", lines[4])


def test_the_second_apply_is_told_who_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    ended = actionplan("apply", "last", "--yes")
    uuid = short(actionplan)
    assert (ended.code, ended.out) == (1, "")
    assert re.fullmatch(
        f"Refused: plan {uuid} is ONGOING: {runner(running)} runs it. "
        f"Look: actionplan show {uuid}. Stop it: actionplan cancel {uuid}\n",
        ended.err,
    )
    gate.let_go()
    assert running.wait() == 0


def test_of_two_that_start_at_once_one_runs_the_plan(actionplan: CommandLine, gate: Gate) -> None:
    actionplan.document("plan.yaml", gate.action("first"))
    actionplan.good("create", "plan.yaml")
    started = (actionplan.start("apply", "last", "--yes") for _ in range(2))
    with next(started) as one, next(started) as other:
        gate.wait()
        pid = actionplan.claimant().pid
        first, second = (one, other) if one.pid == pid else (other, one)
        assert first.pid == pid
        _, told = second.communicate()
        assert second.returncode == 1
        assert re.search(f"{runner(first)} runs it", told)
        gate.let_go()
        assert first.wait() == 0


def test_cancel_reaches_whoever_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    out = actionplan.good("cancel", "last", "--reason", "wrong night")
    uuid = short(actionplan)
    line = f"Plan {uuid} is ONGOING: {runner(running)} runs it, and has been asked to cancel it.\n"
    assert re.fullmatch(line, out)
    assert running.wait() == 5
    cancelled = ActionState.CANCELLED
    actionplan.wait_for(PlanState.CANCELLED, first=cancelled, second=cancelled, fourth=cancelled)


def test_skip_reaches_whoever_runs_the_plan(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    out = actionplan.good("action", "skip", "last", "third", "--reason", "moved by hand")
    assert "has been asked to skip third." in out
    assert "It is skipped once everything before it has ended" in out
    # Nobody can tell when the request is read; paused and gone on with, it has been for certain.
    running.send_signal(signal.SIGINT)
    gate.let_go()
    assert running.wait() == 5
    actionplan.good("apply", "last", "--yes")
    done = ActionState.SUCCEEDED
    actionplan.wait_for(PlanState.SUCCEEDED, second=done, third=ActionState.SKIPPED, fourth=done)
    row = json.loads(actionplan.good("action", "show", "last", "third", "-f", "json"))
    assert "moved by hand" in row["status_message"]


def test_what_has_started_cannot_be_skipped(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    ended = actionplan("action", "skip", "last", "first", "--reason", "late")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "Refused: first is ONGOING: only PENDING actions can be skipped\n"


def test_a_plan_under_way_is_not_deleted(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    ended = actionplan("delete", "last")
    uuid = short(actionplan)
    assert (ended.code, ended.out) == (1, "")
    assert re.fullmatch(
        rf"Refused: plan {uuid} is ONGOING: cancel it first \(actionplan cancel {uuid}\)\. "
        f"Run by {runner(running)}\n",
        ended.err,
    )
    assert actionplan.plan().state is PlanState.ONGOING


def test_a_process_that_was_killed_is_told_from_one_that_runs(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    assert "nobody runs it" not in actionplan.good("list")
    running.kill()
    running.wait()
    assert "that process is gone: it crashed or was killed" in actionplan.good("show", "last")
    listed = actionplan.good("list").splitlines()
    assert "ONGOING, nobody runs it" in listed[2]
    assert listed[4:] == [f"Continue it: actionplan resume {short(actionplan)}"]
    assert actionplan.good("list", "-f", "value", "-c", "state") == "ONGOING\n"
    ended = actionplan("apply", "last", "--yes")
    assert ended.code == 1
    assert "that process is gone" in ended.err
    uuid = short(actionplan)
    assert actionplan.good("cancel", "last").splitlines() == [
        f"Plan {uuid} is CANCELLED: the process that ran it is gone.",
        "  first is CANCELLED: aborted: its command was ended",
    ]
    assert actionplan.plan().state is PlanState.CANCELLED


def test_skip_names_what_needs_the_action_and_counts_the_rest(actionplan: CommandLine) -> None:
    uuids = "abcdef"
    needs = {"b": "a", "c": "a", "d": "b", "e": "d"}
    actions = [
        {
            "uuid": str(uuid5(NAMESPACE_OID, u)),
            "name": u,
            "action_type": "nop",
            "needs": [str(uuid5(NAMESPACE_OID, n)) for n in needs.get(u, "")],
        }
        for u in uuids
    ]
    uuid = str(uuid5(NAMESPACE_OID, "plan"))
    plan = {"version": "2.0", "uuid": uuid, "planner": "weight", "actions": actions}
    actionplan.good("create", "-", stdin=json.dumps(plan))
    out = actionplan.good("action", "skip", "last", "a", "--reason", "x")
    assert out.splitlines() == [
        "a will count as done for the actions that need it:",
        "  b, c",
        "  and, through these, 2 more",
        f"Plan {uuid[:8]}: a is SKIPPED.",
    ]
    assert "No action needs f." in actionplan.good("action", "skip", "last", "f", "--reason", "x")


def test_start_leaves_the_plan_for_an_applier_and_apply_takes_it(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"), name="web")
    actionplan.good("create", "plan.yaml")
    uuid = short(actionplan)
    assert actionplan.good("start", "web").splitlines() == [
        "Cloud: simulated: nothing real is touched",
        f"Plan {uuid} (web) is PENDING. No applier service reports on this record:",
        f"run it here with: actionplan apply {uuid}",
    ]
    actionplan.good("apply", uuid, "--yes")
    assert actionplan.plan().state is PlanState.SUCCEEDED


def test_a_plan_is_removed_softly(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"))
    actionplan.good("create", "plan.yaml")
    uuid = actionplan.plan().uuid
    asked = actionplan("delete", "last", stdin="n\n")
    assert (asked.code, actionplan.plan().state) == (1, PlanState.RECOMMENDED)
    question, answer = asked.out.split("[y/N]")
    assert question.strip() == f"Delete plan {uuid[:8]}, RECOMMENDED?"
    assert answer.strip() == "Not deleted. To delete it without a question, add --yes."
    assert actionplan.good("delete", "last", "--yes").splitlines() == [
        f"Plan {uuid[:8]} is DELETED.",
        f"To bring it back: actionplan undelete {uuid}",
    ]
    assert actionplan.good("list") == "No plans. To make one: actionplan create FILE\n"
    assert uuid[:8] in actionplan.good("list", "--state", "DELETED")
    assert "DELETED" in actionplan.good("show", uuid)
    back = actionplan.good("undelete", uuid, "--reason", "too early")
    assert back == f"Plan {uuid[:8]} is RECOMMENDED again.\n"
    assert uuid[:8] in actionplan.good("list")
    again = actionplan("undelete", uuid)
    assert (again.code, again.out) == (1, "")
    assert again.err == f"Refused: plan {uuid[:8]} is RECOMMENDED: it is not deleted\n"
    verbs = [row["verb"] for row in json.loads(actionplan.good("history", uuid, "-f", "json"))]
    assert verbs == ["create", "delete", "undelete"]


def test_a_report_of_each_purged_plan_is_kept(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"))
    for _ in range(2):
        actionplan.good("apply", "plan.yaml", "--yes")
    uuids = {plan.uuid for plan in actionplan.plans()}
    refused = actionplan("purge", "--older-than", "0m", "--yes", "--keep-reports", "plan.yaml")
    assert refused.code == 1
    assert "--keep-reports plan.yaml cannot be made: File exists" in refused.err
    assert len(actionplan.plans()) == 2
    folder = actionplan.folder / "kept" / "reports"
    words = ("purge", "--older-than", "0m", "--yes", "--keep-reports", str(folder))
    assert actionplan.good(*words) == "2 plans deleted for good.\n"
    assert {path.name for path in folder.iterdir()} == {f"{uuid}.html" for uuid in uuids}
    for uuid in uuids:
        assert uuid in (folder / f"{uuid}.html").read_text(encoding="utf-8")
    assert actionplan.plans() == []


def test_no_report_is_lost_when_two_purge_at_once_and_one_was_killed(
    actionplan: CommandLine,
) -> None:
    actionplan.document("plan.yaml", nop("a"))
    for _ in range(3):
        actionplan.good("apply", "plan.yaml", "--yes")
    uuids = {plan.uuid for plan in actionplan.plans()}
    folder = actionplan.folder / "reports"
    words = ("purge", "--older-than", "0m", "--yes", "--keep-reports", str(folder))

    def kept() -> set[str]:
        return {path.stem for path in folder.glob("*.html")}

    with actionplan.start(*words) as killed:
        wait_until(kept)
        killed.kill()
    assert uuids - {plan.uuid for plan in actionplan.plans()} <= kept()
    left = len(actionplan.plans())
    both = [actionplan.start(*words) for _ in range(2)]
    told = [one.communicate(timeout=PATIENCE_S)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    deleted = [re.fullmatch(r"(\d) plans? deleted for good\.\n", text) for text in told]
    assert sum(int(found[1]) for found in deleted if found) == left
    assert (actionplan.plans(), kept()) == ([], uuids)
    for uuid in uuids:
        assert "<td>apply</td>" in (folder / f"{uuid}.html").read_text(encoding="utf-8")


def test_old_plans_are_deleted_for_good(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"))
    actionplan.good("apply", "plan.yaml", "--yes")
    actionplan.good("create", "plan.yaml")
    nothing = actionplan.good("purge", "--older-than", "1d")
    assert re.fullmatch(r"No plan ended or was deleted before .* UTC\.\n", nothing)
    asked = actionplan("purge", "--older-than", "0m", stdin="\n")
    assert asked.code == 1
    assert asked.out.startswith("Delete 1 plan for good that ended or were deleted before ")
    assert len(actionplan.plans()) == 2
    done = actionplan.good("purge", "--older-than", "0m", "--yes")
    assert done == "1 plan deleted for good.\n"
    (left,) = actionplan.plans()
    assert left.state is PlanState.RECOMMENDED
    told = json.loads(actionplan.good("history", "-f", "json"))
    assert [row["verb"] for row in told] == ["create", "purge"]
    assert re.search(r" - +purge ", actionplan.good("history"))
    assert actionplan("db", "check").code == 0
    for wrong in ("90", "-1d", "٣d", "2026-03-01", "999999999w"):
        ended = actionplan("purge", f"--older-than={wrong}", "--yes")
        assert ended.code == 2
        assert "is not an age such as 12h, 90d or 8w" in ended.err


def test_the_user_of_the_record_is_the_one_at_the_terminal(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"))
    actionplan.good("create", "plan.yaml")
    assert actionplan("cancel", "last", "--reason", "not tonight", LOGNAME="ada").code == 0
    assert actionplan.plan().status_message == "cancelled by operator: not tonight"
