# SPDX-License-Identifier: Apache-2.0
"""What a plan would take, what other settings and faults would make of it, and why."""

from __future__ import annotations

import json
import re
from statistics import median
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest
from command_line import EXAMPLE, ROOT, CommandLine, check_golden

from applier.store.retention import NO_PLAN
from applier.wording import duration

TEN_HOSTS = str(ROOT / "doc" / "how-to" / "ten-hosts.yaml")
ONE_IN_TEN = ("--set", "on_failure=pause", "--inject", "fail:node:*=10%")


def nop(name: str, **fields: object) -> dict[str, object]:
    """Describe an action that does nothing, on a host of its own unless said otherwise."""
    return {"name": name, "action_type": "nop", "touches": [f"node:{name}"], **fields}


def command(name: str, text: str = "true", **fields: object) -> dict[str, object]:
    """Describe an action of which nobody knows how long it takes."""
    return {"name": name, "action_type": "shell", "input_parameters": {"command": text}, **fields}


def plan_file(actionplan: CommandLine, *actions: dict[str, object], **fields: object) -> str:
    """Write a plan as other programs write it; needs are names."""
    uuids = {str(a["name"]): str(uuid5(NAMESPACE_OID, str(a["name"]))) for a in actions}
    whole: list[dict[str, Any]] = [
        {"uuid": uuids[str(a["name"])], "action_type": "nop", **a} for a in actions
    ]
    for action in whole:
        action["needs"] = [uuids[name] for name in action.get("needs", ())]
    plan = {"version": "2.0", "uuid": str(uuid5(NAMESPACE_OID, "plan")), "planner": "weight"}
    text = json.dumps({**plan, "actions": whole, **fields})
    (actionplan.folder / "plan.json").write_text(text, encoding="utf-8")
    return "plan.json"


def as_json(actionplan: CommandLine, *words: str) -> Any:
    """Return what a command that succeeds writes as JSON."""
    return json.loads(actionplan.good(*words, "-f", "json"))


# Forecasts


def test_a_document_is_simulated_and_nothing_is_kept(actionplan: CommandLine) -> None:
    check_golden("simulate", actionplan("simulate", str(EXAMPLE)).out)
    words = ("simulate", str(EXAMPLE), "--set", "migrate.parallelization=1..3")
    words += ("--set", "max_workers=1,2")
    rows = as_json(actionplan, *words)["combinations"]
    assert (len(rows), [row["knee"] for row in rows].count(True)) == (6, 1)
    best = min(row["makespan_s"] for row in rows)
    first = next(i for i, row in enumerate(rows) if row["makespan_s"] <= 1.05 * best)
    assert rows[first]["knee"]
    assert actionplan.plans() == []


def test_the_forecast_is_written_as_the_format_says(actionplan: CommandLine) -> None:
    actions = ({"name": "a", "estimate_s": 30}, {"name": "b", "estimate_s": 10})
    file = plan_file(actionplan, *actions, {"name": "c", "estimate_s": 5, "needs": ["a"]})
    value = as_json(actionplan, "simulate", file)
    assert (value["makespan_s"], value["lower_bound_s"]) == (35, 35)
    rows = [
        (row["name"], row["start_s"], row["end_s"], row["slack_s"], row["critical"])
        for row in value["actions"]
    ]
    assert rows == [("a", 0, 30, 0, True), ("b", 0, 10, 25, False), ("c", 30, 35, 0, True)]


def test_durations_come_from_the_plan_then_from_the_record(actionplan: CommandLine) -> None:
    actionplan.document("new.yaml", nop("a", estimate_s=30), command("b"), nop("c"))
    *_, source = actionplan.good("simulate", "new.yaml").splitlines()
    assert re.findall(r"\d \w+", source) == ["2 actions", "1 action", "1 s"]
    actionplan.document("old.yaml", command("a"), command("b"))
    actionplan.good("apply", "old.yaml", "--yes")
    *_, cautious, source = actionplan.good("simulate", "new.yaml").splitlines()
    assert source.endswith(" 1 action from earlier runs (median).")
    (group,) = json.loads(actionplan.good("duration", "export"))["durations"]
    middle, longest = 30 + median(group["seconds"]), 30 + max(group["seconds"])
    assert cautious == f"If each takes as long as 9 in 10 did: {duration(longest)}."
    found = as_json(actionplan, "simulate", "new.yaml")
    assert (found["makespan_s"], found["cautious_makespan_s"]) == pytest.approx((middle, longest))


def test_create_compares_both_orderings_once_every_duration_is_known(
    actionplan: CommandLine,
) -> None:
    actions = [nop("a", estimate_s=10, touches=[]), nop("b", estimate_s=70, touches=[])]
    actionplan.document("plan.yaml", *actions, options={"parallelization": {"nop": 2}})
    assert "Expected: chunks 1m10s, slots 1m10s\n" in actionplan.good("create", "plan.yaml")
    actionplan.document("less.yaml", *actions, command("c"))
    assert "Expected" not in actionplan.good("create", "less.yaml")
    assert "Expected" not in actionplan.good("create", "plan.yaml", "--dry-run", "-f", "json")


def test_why_names_what_decides_the_start_and_what_a_failure_costs(actionplan: CommandLine) -> None:
    a = {"name": "a", "estimate_s": 30, "tokens": ["node:n"]}
    b = {"name": "b", "estimate_s": 10, "tokens": ["node:n"]}
    c = {"name": "c", "estimate_s": 5, "needs": ["a"]}
    d = {"name": "d", "estimate_s": 1}
    actionplan.good("create", plan_file(actionplan, a, b, c, d, limits={"node:*": 1}))

    def why(action: str, *words: str) -> str:
        return actionplan.good("why", "last", action, *words)

    assert "It starts at once" in why("a")
    assert "start at 30s and to end at 40s" in why("b")
    assert "is held until then by a." in why("b")
    assert "It needs a:" in why("c")
    assert "All 1 workers are busy until then" in why("d", "--set", "max_workers=1")
    assert "if it fails 1 action would not run: c" in actionplan.good("action", "show", "last", "a")
    assert as_json(actionplan, "action", "show", "last", "a")["not_run_if_it_fails"] == ["c"]


# Rehearsals


def test_one_failing_host_in_ten_advises_a_lower_limit_and_that_helps(
    actionplan: CommandLine,
) -> None:
    words = ("simulate", TEN_HOSTS, *ONE_IN_TEN)
    planned = as_json(actionplan, *words, "--set", "max_workers=8")
    (advice,) = [tried for tried in planned["lower_limits"] if tried["advised"]]
    assert (advice["limit"], advice["planned"]) == ("max_workers", 8)
    changed = as_json(actionplan, *words, "--set", f"max_workers={advice['tried']}")
    assert changed["went_wrong"]["mean"] < 0.7 * planned["went_wrong"]["mean"]
    assert changed["went_wrong"]["worst"] < planned["went_wrong"]["worst"]
    assert changed["states"]["SUCCEEDED"] == planned["states"]["SUCCEEDED"]
    assert planned["stopped_by"]["on_failure=pause"] == planned["states"]["PAUSED"]
    words += ("--set", "max_workers=1,2,8", "--times", "40")
    found = as_json(actionplan, *words)["combinations"]
    assert [(row["set"], row["runs"]) for row in found] == [
        ({"max_workers": n}, 40) for n in ("1", "2", "8")
    ]


def test_guards_stop_rehearsed_runs_and_what_is_not_rehearsed_is_said(
    actionplan: CommandLine,
) -> None:
    words = ("simulate", TEN_HOSTS, "--inject", "fail:node:host-1", "--times", "3")
    for settings, states, stopped_by in (
        ({}, {"FAILED": 3}, {}),
        ({"failure_budget": "nop=1 in 1s"}, {"PAUSED": 3}, {"failure_budget": 3}),
        ({"failure_budget": "4"}, {"FAILED": 3}, {}),
    ):
        actionplan.configure(watcher_applier=settings)
        found = as_json(actionplan, *words)
        assert (found["states"], found["stopped_by"]) == (states, stopped_by)
        assert found["not_rehearsed"] == []
    bound = actionplan.good(*words, "--set", "failure_budget=1")
    assert "failure_budget stops the run 3 of 3" in bound
    actionplan.configure(watcher_applier={"windows": "sat 22:00-04:00 UTC", "health_probe": "true"})
    assert as_json(actionplan, *words)["not_rehearsed"] == ["windows", "health_probe"]
    for more in ((), ("--set", "max_workers=1..2")):
        assert "The health probe is not rehearsed" in actionplan.good(*words, *more)


def test_runs_that_do_not_end_advise_a_time_out_and_no_limit(actionplan: CommandLine) -> None:
    words = ("simulate", TEN_HOSTS, "--inject", "hang:agent-1=50%,fail:nop=5%", "--times", "20")
    out = actionplan.good(*words)
    assert "set a time-out (timeout_s) of nop" in out
    assert "lower" not in out
    actionplan.configure(watcher_actions__nop={"timeout_s": "120"})
    assert "do not end" not in actionplan.good(*words)


def test_a_stored_plan_is_rehearsed_with_faults_of_its_actions_or_with_none(
    actionplan: CommandLine,
) -> None:
    actionplan.good("create", str(EXAMPLE))
    words = ("simulate", "last", "--inject", "hang:move-db-1,slow:node:compute-1=3x")
    out = actionplan.good(*words, "--inject", "fail:migrate=20%", "--times", "20")
    assert "does not end     20  100 %" in out
    out = actionplan.good("simulate", "last", "--times", "5")
    assert "with no faults" in out
    assert "SUCCEEDED      5  100 %" in out


def test_what_cannot_be_simulated_is_refused(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("agent"))
    actionplan.check_refusals(
        "simulate_refused",
        "simulate plan.yaml --set max_workers=8..1",
        "simulate plan.yaml --set max_workers=1..999",
        "simulate plan.yaml --inject fali:nop",
        "simulate plan.yaml --inject fail:nopp",
        "simulate plan.yaml --inject fail:nop --times 0",
        "simulate plan.yaml --inject fail:nop --times 1000000",
        "simulate plan.yaml --inject fail:nop=",
        "simulate plan.yaml --inject ''",
        "simulate plan.yaml --seed x",
    )


# Durations that were measured


def test_what_a_laboratory_measured_tells_production_how_long_a_plan_takes(
    actionplan: CommandLine,
) -> None:
    lab = [
        {"action_type": "shell", "node": "old", "seconds": [60.0] * 20},
        {"action_type": "shell", "node": "new", "seconds": [10.0] * 60},
    ]
    assert actionplan.good("duration", "list").startswith("No action is on record")
    (actionplan.folder / "lab.json").write_text(json.dumps({"durations": lab}), encoding="utf-8")
    said = actionplan.good("duration", "import", "lab.json")
    assert said.startswith("Imported 80 durations of 1 action type.")
    listed = as_json(actionplan, "duration", "list")
    assert [(r["node"], r["samples"], r["imported"], r["median_s"]) for r in listed] == [
        ("new", 60, 60, 10.0),
        ("old", 20, 20, 60.0),
    ]
    for node, makespan in (("old", 60.0), ("new", 10.0), ("other", 10.0)):
        file = actionplan.document("plan.yaml", command("a", touches=[f"node:{node}"]))
        assert as_json(actionplan, "simulate", file)["makespan_s"] == makespan
    (told,) = as_json(actionplan, "history")
    assert (told["verb"], told["plan"]) == ("import", NO_PLAN)
    assert all(fact in told["why"] for fact in ("80 durations", "lab.json", "shell"))
    assert json.loads(actionplan.good("duration", "export")) == {"durations": []}


def recap_and_plan(out: str) -> list[str]:
    """Return how long a run took, and what was planned, as a recap tells it."""
    lines = [line.partition("  took ") for line in out.splitlines() if line.startswith("RECAP")]
    return [took for _, _, took in lines] + re.findall("^Planned .*", out, re.MULTILINE)


def test_a_run_tells_what_it_expected_and_is_measured_for_the_next(actionplan: CommandLine) -> None:
    file = actionplan.document("plan.yaml", command("a", touches=["node:c1"]))
    for known in (0, 1):
        told = recap_and_plan(actionplan.good("apply", file, "--yes"))
        assert len(told) == 1 + known
        assert recap_and_plan(actionplan.good("watch", "last")) == told
        text = actionplan.good("report", "last")
        assert ("nothing was known of how long" in text) == (not known)
    actionplan.good("duration", "export", "--out", "here.json")
    (group,) = json.loads((actionplan.folder / "here.json").read_text())["durations"]
    assert (group["action_type"], group["size"], group["node"]) == ("shell", None, "c1")
    actionplan.good("duration", "import", "here.json")
    (row,) = as_json(actionplan, "duration", "list")
    assert (row["samples"], row["imported"]) == (4, 2)


def test_every_mistake_in_a_file_is_told_and_nothing_is_imported(actionplan: CommandLine) -> None:
    wrong = "durations:\n- action_type: shell\n  seconds: [1, -2]\n- node: c1\n  seconds: []\n"
    (actionplan.folder / "wrong.yaml").write_text(wrong, encoding="utf-8")
    refused = actionplan("duration", "import", "wrong.yaml")
    assert (refused.code, "wrong.yaml:3" in refused.err, "wrong.yaml:4" in refused.err) == (
        *(1, True, True),
    )
    many = {"durations": [{"action_type": "shell", "seconds": [1] * 501}]}
    (actionplan.folder / "many.json").write_text(json.dumps(many), encoding="utf-8")
    assert "more than 500 durations of shell" in actionplan("duration", "import", "many.json").err
    assert actionplan.good("duration", "list").startswith("No action is on record")
