# SPDX-License-Identifier: Apache-2.0
"""How long actions took, here and elsewhere, and what forecasts make of it."""

from __future__ import annotations

import json
import re

from command_line import CommandLine

from applier.store.retention import NO_PLAN

#: What a laboratory has measured.
LAB = {
    "durations": [
        {"action_type": "shell", "node": "old", "seconds": [60.0] * 20},
        {"action_type": "shell", "node": "new", "seconds": [10.0] * 60},
    ]
}


def command(name: str, node: str) -> dict[str, object]:
    parameters = {"command": "true"}
    touches = [f"node:{node}"]
    return {
        "name": name,
        "action_type": "shell",
        "input_parameters": parameters,
        "touches": touches,
    }


def test_what_a_laboratory_measured_tells_production_how_long_a_plan_takes(
    actionplan: CommandLine,
) -> None:
    assert actionplan.good("duration", "list").startswith("No action is on record")
    (actionplan.folder / "lab.json").write_text(json.dumps(LAB), encoding="utf-8")
    said = actionplan.good("duration", "import", "lab.json")
    assert said.startswith("Imported 80 durations of 1 action type.")
    listed = json.loads(actionplan.good("duration", "list", "-f", "json"))
    assert [(r["node"], r["samples"], r["imported"], r["median_s"]) for r in listed] == [
        ("new", 60, 60, 10.0),
        ("old", 20, 20, 60.0),
    ]
    for node, makespan in (("old", 60.0), ("new", 10.0), ("other", 10.0)):
        document = actionplan.document(f"{node}.yaml", command("a", node))
        found = json.loads(actionplan.good("simulate", str(document), "-f", "json"))
        assert found["makespan_s"] == makespan
    (told,) = json.loads(actionplan.good("history", "-f", "json"))
    assert (told["verb"], told["plan"]) == ("import", NO_PLAN)
    assert told["why"] == "80 durations of 1 action type from lab.json: shell"
    assert json.loads(actionplan.good("duration", "export")) == {"durations": []}


def test_what_was_measured_here_is_exported_and_the_run_tells_what_it_expected(
    actionplan: CommandLine,
) -> None:
    document = str(actionplan.document("plan.yaml", command("a", "c1")))
    assert "Planned" not in actionplan.good("apply", document, "--yes")
    assert "\nPlanned " in actionplan.good("apply", document, "--yes")
    (group,) = json.loads(actionplan.good("duration", "export"))["durations"]
    assert (group["action_type"], group["size"], group["node"]) == ("shell", None, "c1")
    assert len(group["seconds"]) == 2
    actionplan.good("duration", "export", "--out", "here.json")
    actionplan.good("duration", "import", "here.json")
    (row,) = json.loads(actionplan.good("duration", "list", "-f", "json"))
    assert (row["samples"], row["imported"]) == (4, 2)


def recap_and_plan(out: str) -> list[str]:
    """Return how long a run took, and what was planned, as a recap tells it."""
    lines = [line.partition("  took ") for line in out.splitlines() if line.startswith("RECAP")]
    return [took for _, _, took in lines] + re.findall("^Planned .*", out, re.MULTILINE)


def test_whoever_looks_later_reads_the_same_times_as_whoever_ran_the_plan(
    actionplan: CommandLine,
) -> None:
    document = str(actionplan.document("plan.yaml", command("a", "c1")))
    for known in (0, 1):
        told = recap_and_plan(actionplan.good("apply", document, "--yes"))
        assert len(told) == 1 + known
        assert recap_and_plan(actionplan.good("watch", "last")) == told


def test_the_run_itself_does_not_count_as_known_before(actionplan: CommandLine) -> None:
    slow = {"durations": [{"action_type": "shell", "seconds": [100.0] * 500}]}
    (actionplan.folder / "slow.json").write_text(json.dumps(slow), encoding="utf-8")
    document = str(actionplan.document("plan.yaml", command("a", "c1")))
    actionplan.good("apply", document, "--yes")
    first = actionplan.good("report", "last")
    assert "nothing was known of how long some action takes" in first
    assert "Planned against taken" not in first
    actionplan.good("duration", "import", "slow.json")
    for _ in range(3):
        actionplan.good("apply", document, "--yes")
    assert "Planned 1m40s" in actionplan.good("report", "last")


def test_a_resumed_plan_is_told_of_by_its_last_run(actionplan: CommandLine) -> None:
    """Neither the time between two runs counts, nor what ended before."""
    flag = actionplan.folder / "flag"
    check = {**command("check", "c1"), "input_parameters": {"command": f"test -e {flag}"}}
    waits = {"name": "wait", "action_type": "sleep", "input_parameters": {"duration": 60}}
    document = str(actionplan.document("plan.yaml", waits, check))
    assert actionplan("apply", document, "--yes").code == 3
    flag.touch()
    actionplan.good("resume", "last")
    (took,) = recap_and_plan(actionplan.good("apply", "last", "--yes"))
    assert recap_and_plan(actionplan.good("watch", "last")) == [took]


def test_every_mistake_in_a_file_is_told_and_nothing_is_imported(actionplan: CommandLine) -> None:
    wrong = """durations:
- action_type: shell
  seconds: [1, -2]
- node: c1
  seconds: []
"""
    (actionplan.folder / "wrong.yaml").write_text(wrong, encoding="utf-8")
    refused = actionplan("duration", "import", "wrong.yaml")
    assert refused.code == 1
    assert "wrong.yaml:3" in refused.err
    assert "wrong.yaml:4" in refused.err
    many = {"durations": [{"action_type": "shell", "seconds": [1] * 501}]}
    (actionplan.folder / "many.json").write_text(json.dumps(many), encoding="utf-8")
    assert "more than 500 durations of shell" in actionplan("duration", "import", "many.json").err
    assert actionplan.good("duration", "list").startswith("No action is on record")
