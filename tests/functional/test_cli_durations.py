# SPDX-License-Identifier: Apache-2.0
"""How long actions took, here and elsewhere, and what forecasts make of it."""

from __future__ import annotations

import json

from command_line import CommandLine

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
    assert (told["verb"], told["plan"]) == ("import", "")
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
