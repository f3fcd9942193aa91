# SPDX-License-Identifier: Apache-2.0
"""What a plan would take, what other settings would make of it, and why an action starts when."""

from __future__ import annotations

import json
from statistics import median
from uuid import NAMESPACE_OID, uuid5

import pytest
from command_line import EXAMPLE, CommandLine, check_golden

from applier.wording import duration
from planner.states import PlanState

PLAN = "11111111-1111-4111-8111-111111111111"


def nop(name: str, **fields: object) -> dict[str, object]:
    """Describe an action that does nothing, on a host of its own unless said otherwise."""
    return {"name": name, "action_type": "nop", "touches": [f"node:{name}"], **fields}


def command(name: str) -> dict[str, object]:
    """Describe an action of which nobody knows how long it takes."""
    return {"name": name, "action_type": "shell", "input_parameters": {"command": "true"}}


def plan_file(actionplan: CommandLine, *actions: dict[str, object], **fields: object) -> str:
    """Write a plan as other programs write it; links are names."""
    uuids = {str(a["name"]): str(uuid5(NAMESPACE_OID, str(a["name"]))) for a in actions}
    whole = [{"uuid": uuids[str(a["name"])], "action_type": "nop", **a} for a in actions]
    plan = {"version": "2.0", "uuid": PLAN, "planner": "weight", "actions": whole, **fields}
    text = json.dumps(plan)
    for name, uuid in uuids.items():
        text = text.replace(f'["{name}"', f'["{uuid}"').replace(f', "{name}"]', f', "{uuid}"]')
    (actionplan.folder / "plan.json").write_text(text, encoding="utf-8")
    return "plan.json"


def test_a_document_is_simulated_and_nothing_is_kept(actionplan: CommandLine) -> None:
    check_golden("simulate", actionplan("simulate", str(EXAMPLE)).out)
    assert actionplan.plans() == []


def test_the_combination_from_which_more_brings_little_is_marked(actionplan: CommandLine) -> None:
    words = ("--set", "migrate.parallelization=1..3", "--set", "max_workers=1,2")
    out = actionplan.good("simulate", str(EXAMPLE), *words)
    check_golden("simulate_ranges", out)
    value = json.loads(actionplan.good("simulate", str(EXAMPLE), *words, "-f", "json"))
    rows = value["combinations"]
    assert len(rows) == 6
    assert [row["knee"] for row in rows].count(True) == 1
    first = next(i for i, row in enumerate(rows) if row["knee"])
    best = min(row["makespan_s"] for row in rows)
    assert rows[first]["makespan_s"] <= 1.05 * best
    assert all(row["makespan_s"] > 1.05 * best for row in rows[:first])


def test_the_forecast_is_written_as_the_format_says(actionplan: CommandLine) -> None:
    first, second = nop("a", estimate_s=30), nop("b", estimate_s=10)
    third = nop("c", estimate_s=5, needs=["a"])
    for each in (first, second, third):
        del each["touches"]
    file = plan_file(actionplan, first, second, third)
    value = json.loads(actionplan.good("simulate", file, "-f", "json"))
    assert (value["makespan_s"], value["lower_bound_s"]) == (35, 35)
    rows = [
        (row["name"], row["start_s"], row["end_s"], row["slack_s"], row["critical"])
        for row in value["actions"]
    ]
    assert rows == [("a", 0, 30, 0, True), ("b", 0, 10, 25, False), ("c", 30, 35, 0, True)]


def test_durations_come_from_the_plan_then_from_the_record(actionplan: CommandLine) -> None:
    actionplan.document("new.yaml", nop("a", estimate_s=30), command("b"))
    out = actionplan.good("simulate", "new.yaml")
    line = "Durations: 1 action estimated, 1 action taken for 1 s each."
    assert out.splitlines()[-1] == line
    actionplan.document("old.yaml", command("a"), command("b"))
    actionplan.good("apply", "old.yaml", "--yes")
    out = actionplan.good("simulate", "new.yaml")
    line = "Durations: 1 action estimated, 1 action from earlier runs (median)."
    assert out.splitlines()[-1] == line
    (group,) = json.loads(actionplan.good("duration", "export"))["durations"]
    middle, longest = 30 + median(group["seconds"]), 30 + max(group["seconds"])
    line = f"If each takes as long as 9 in 10 did: {duration(longest)}."
    assert out.splitlines()[-2] == line
    found = json.loads(actionplan.good("simulate", "new.yaml", "-f", "json"))
    assert (found["makespan_s"], found["cautious_makespan_s"]) == pytest.approx((middle, longest))


def test_what_does_nothing_takes_no_time(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", nop("a"), nop("b"), nop("c", estimate_s=5))
    out = actionplan.good("simulate", "plan.yaml")
    assert "Expected 5s; one by one 5s; no order beats 5s.\n" in out
    assert out.splitlines()[-1] == "Durations: 3 actions estimated."


def test_create_compares_both_orderings_once_every_duration_is_known(
    actionplan: CommandLine,
) -> None:
    node = {"action_type": "nop", "estimate_s": 10}
    actions = [{**node, "name": "a"}, {**node, "name": "b", "estimate_s": 70}]
    actionplan.document("plan.yaml", *actions, options={"parallelization": {"nop": 2}})
    out = actionplan.good("create", "plan.yaml")
    assert "Expected: chunks 1m10s, slots 1m10s\n" in out
    actionplan.document("less.yaml", *actions, command("c"))
    assert "Expected" not in actionplan.good("create", "less.yaml")
    assert "Expected" not in actionplan.good("create", "plan.yaml", "--dry-run", "-f", "json")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("max_workers=8..1", "is not a range from low to high"),
        ("max_workers=1..999", "--set: more than 200 combinations: at most 200 are accepted"),
    ],
)
def test_a_range_that_cannot_be_tried_is_refused(
    actionplan: CommandLine, setting: str, sentence: str
) -> None:
    ended = actionplan("simulate", str(EXAMPLE), "--set", setting)
    assert (ended.code, ended.out) == (1, "")
    assert sentence in ended.err


def test_why_names_what_decides_the_start_before_the_plan_runs(actionplan: CommandLine) -> None:
    a = {"name": "a", "estimate_s": 30, "tokens": ["node:n"]}
    b = {"name": "b", "estimate_s": 10, "tokens": ["node:n"]}
    c = {"name": "c", "estimate_s": 5, "needs": ["a"]}
    d = {"name": "d", "estimate_s": 1}
    limits = {"node:*": 1}
    actionplan.good("create", plan_file(actionplan, a, b, c, d, limits=limits))

    def why(action: str, *words: str) -> str:
        return actionplan.good("why", "last", action, *words)

    assert "It starts at once" in why("a")
    assert "b is expected to start at 30s and to end at 40s" in why("b")
    assert "Token node:n (at most 1 at once) is held until then by a." in why("b")
    assert "It needs a: nothing else before it ends as late." in why("c")
    assert "All 1 workers are busy until then" in why("d", "--set", "max_workers=1")


def test_why_says_how_an_action_ended(actionplan: CommandLine) -> None:
    fails = {"name": "bad", "action_type": "shell", "input_parameters": {"argv": ["false"]}}
    options = {"weights": {"shell": 90}}
    actionplan.document("plan.yaml", fails, nop("after"), options=options)
    actionplan("apply", "plan.yaml", "--yes")
    assert actionplan.plan().state is PlanState.FAILED
    assert "bad ran: it is FAILED (failed): " in actionplan.good("why", "last", "bad")
