# SPDX-License-Identifier: Apache-2.0
"""apply --dry-run looks what each action would find now, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import yaml
from command_line import EXAMPLE, CommandLine, check_golden

from planner.states import PlanState

SIMULATED = "small-cloud.yaml"


def change(actionplan: CommandLine, **changes: object) -> None:
    """Replace the simulated cloud by the packaged one with changes: TABLE__KEY=fields."""
    from importlib import resources

    text = resources.files("applier.clouds").joinpath(SIMULATED).read_text(encoding="utf-8")
    world = yaml.safe_load(text)
    for name, fields in changes.items():
        table, key = name.split("__")
        for entry, values in world[table].items():
            if entry.replace("-", "_") == key or values.get("name", "").replace("-", "_") == key:
                values.update(fields)
    path = Path(actionplan.folder) / "cloud.yaml"
    path.write_text(yaml.safe_dump(world), encoding="utf-8")
    actionplan.good("simulator", "reset", "--from", str(path))


def test_what_is_to_do_and_nothing_is_kept_or_changed(actionplan: CommandLine) -> None:
    before = actionplan.good("simulator", "show")
    ended = actionplan("apply", str(EXAMPLE), "--dry-run")
    check_golden("dry_run", ended.out)
    assert ended.code == 0
    assert actionplan.plans() == []
    assert actionplan.good("simulator", "show") == before


def test_what_is_done_what_moved_and_what_is_refused(actionplan: CommandLine) -> None:
    change(
        actionplan,
        instances__web_1={"host": "compute-3"},
        instances__db_1={"host": "compute-1"},
        services__compute_1={"status": "disabled"},
        hosts__compute_2={"power": "off"},
    )
    ended = actionplan("apply", str(EXAMPLE), "--dry-run")
    check_golden("dry_run_moved", ended.out)
    assert ended.code == 4
    assert "db-1 is on compute-1, and was planned to leave compute-2" in ended.out
    assert actionplan.plans() == []


def test_a_stored_plan_keeps_its_state(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    actionplan.good("apply", "last", "--dry-run")
    (plan,) = actionplan.plans()
    assert plan.state is PlanState.RECOMMENDED


def test_an_action_without_a_precheck_is_not_checked(actionplan: CommandLine) -> None:
    document = {
        "actions": [{"name": "wait", "action_type": "sleep", "input_parameters": {"duration": 1}}]
    }
    path = Path(actionplan.folder) / "sleep.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "1 action: 1 not checked." in actionplan.good("apply", str(path), "--dry-run")


def test_a_plan_that_has_ended_is_refused(actionplan: CommandLine) -> None:
    actionplan.good("apply", str(EXAMPLE), "--yes")
    ended = actionplan("apply", "last", "--dry-run")
    assert ended.code == 1
    assert "nothing of it is left to do" in ended.err
