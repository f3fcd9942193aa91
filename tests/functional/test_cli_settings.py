# SPDX-License-Identifier: Apache-2.0
"""``--set`` and watcher.conf: what each bounds, where it goes, and that nothing is ignored."""

from __future__ import annotations

import json
import os
import re

import pytest
from command_line import CommandLine

from applier import configuration
from applier.configuration.option_types import CheckedText, Webhooks
from applier.run.health_probe import asked
from planner.states import ActionState, PlanState


def most_at_once(output: str) -> int:
    """Count in the lines of apply how many actions were under way at once, at most."""
    under_way = most = 0
    for line in output.splitlines():
        under_way += "  start      " in line
        under_way -= "SUCCEEDED (changed) [" in line
        most = max(most, under_way)
    return most


@pytest.fixture
def wide(actionplan: CommandLine) -> str:
    """Return a document with six actions that nothing orders."""
    sleep = {"action_type": "sleep", "input_parameters": {"duration": 0.05}}
    actions = ({"name": f"a{i}", **sleep} for i in range(6))
    return actionplan.document("wide.yaml", *actions, planner="workload_stabilization")


def test_max_workers_bounds_what_runs_at_once(actionplan: CommandLine, wide: str) -> None:
    out = actionplan.good("apply", wide, "--yes", "--set", "max_workers=2")
    assert ("at most 2 at once" in out, most_at_once(out)) == (True, 2)
    actionplan.configure(watcher_workflow_engines__taskflow={"max_workers": 3})
    assert most_at_once(actionplan.good("apply", wide, "--yes")) == 3


def test_create_says_that_max_workers_is_not_kept(actionplan: CommandLine, wide: str) -> None:
    ended = actionplan("create", wide, "--set", "max_workers=5", "-f", "json")
    assert ended.err.startswith("Note: max_workers=5 ")
    assert "[watcher_workflow_engines.taskflow]" in ended.err
    assert json.loads(ended.out)["actions"]


def test_on_failure_is_kept_in_the_plan_and_cannot_be_turned_round(
    actionplan: CommandLine,
) -> None:
    bad = {"action_type": "shell", "input_parameters": {"argv": ["false"]}}
    actions = {"options": {"weights": {"shell": 90}, "parallelization": {"shell": 1}}}
    after = {"name": "after", "action_type": "nop"}
    actionplan.document("plan.yaml", {"name": "bad", **bad}, after, **actions)
    actionplan.good("create", "plan.yaml", "--set", "on_failure=continue")
    assert actionplan.plan().on_failure == "continue"
    ended = actionplan("apply", "last", "--yes", "--set", "on_failure=skip_descendants")
    assert ended.code == 1
    assert "--set on_failure=skip_descendants: plan" in ended.err
    assert "was made with on_failure=continue" in ended.err
    assert actionplan("apply", "last", "--yes").code == 3
    actionplan.wait_for(PlanState.FAILED, after=ActionState.SUCCEEDED)


def test_what_only_planning_heeds_is_refused_for_a_plan_that_is_made(
    actionplan: CommandLine, wide: str
) -> None:
    actionplan.good("create", wide)
    for words in (("--set", "ordering=slots"), ("--planner", "weight")):
        ended = actionplan("apply", "last", "--yes", *words)
        refused = f"Refused: {' '.join(words)[2:]}: has no effect: this plan is already made"
        assert (ended.code, ended.err.startswith(refused)) == (1, True)
    assert actionplan.plan().state is PlanState.RECOMMENDED


def test_a_setting_wins_over_document_and_configuration(actionplan: CommandLine) -> None:
    actionplan.configure(watcher_planners__weight={"parallelization": "nop:2"})
    actions = ({"name": f"a{i}", "action_type": "nop"} for i in range(6))
    actionplan.document("plan.yaml", *actions)
    assert "in 3 waves" in actionplan.good("create", "plan.yaml", "--dry-run")
    words = ("create", "plan.yaml", "--dry-run", "--set", "nop.parallelization=3")
    assert "in 2 waves" in actionplan.good(*words)
    assert actionplan.plans() == []


def test_a_saved_plan_is_applied_once_and_only_as_it_was_made(
    actionplan: CommandLine, wide: str
) -> None:
    actionplan.good("create", wide, "--dry-run", "--out", "plan.json")
    saved = (actionplan.folder / "plan.json").read_text(encoding="utf-8")
    changed = saved.replace('"duration": 0.05', '"duration": 0.5', 1)
    (actionplan.folder / "changed.json").write_text(changed, encoding="utf-8")
    ended = actionplan("apply", "changed.json", "--yes")
    assert (ended.code, actionplan.plans()) == (4, [])
    assert "it was changed after it was made" in ended.err
    assert "RECAP" in actionplan.good("apply", "plan.json", "--yes")
    again = actionplan("apply", "plan.json", "--yes")
    assert again.code == 1
    assert "nothing of it is left to do" in again.err


def test_a_plan_that_the_record_knows_with_another_content_is_out_of_date(
    actionplan: CommandLine, wide: str
) -> None:
    actionplan.good("create", wide, "--out", "plan.json")
    other = json.loads((actionplan.folder / "plan.json").read_text(encoding="utf-8"))
    del other["digest"]
    other["actions"][0]["input_parameters"]["duration"] = 1
    (actionplan.folder / "other.json").write_text(json.dumps(other), encoding="utf-8")
    ended = actionplan("apply", "other.json", "--yes")
    assert ended.code == 4
    assert "is stored with other content" in ended.err


def origins(actionplan: CommandLine, *words: str) -> dict[str, tuple[str, str]]:
    """Map each option to its value and where that comes from."""
    rows = json.loads(actionplan.good(*words, "config", "show", "-f", "json"))
    return {f"{r['section']}.{r['option']}": (r["value"], r["from"]) for r in rows}


def test_config_show_names_file_and_environment_of_each_option(actionplan: CommandLine) -> None:
    one, two = actionplan.folder / "one.conf", actionplan.folder / "two.conf"
    one.write_text("[actionplan]\nsimulator_speed = 5\nsynchronous = NORMAL\n", encoding="utf-8")
    two.write_text("[actionplan]\nsimulator_speed = 6\n", encoding="utf-8")
    found = origins(actionplan, "--config-file", str(one), "--config-file", str(two))
    assert found["actionplan.simulator_speed"] == ("6.0", str(two))
    assert found["actionplan.synchronous"] == ("NORMAL", str(one))
    assert found["watcher_planner.planner"] == ("weight", "default")
    actionplan.environment["OS_ACTIONPLAN__SYNCHRONOUS"] = "NORMAL"
    found = origins(actionplan)
    assert found["actionplan.simulator_speed"] == ("1000.0", str(actionplan.configuration))
    assert found["actionplan.synchronous"] == ("NORMAL", "OS_ACTIONPLAN__SYNCHRONOUS")
    assert found["actionplan.connection"] == (f"sqlite:///{actionplan.record}", "default")


def test_config_show_hides_secrets_in_every_format(actionplan: CommandLine) -> None:
    actionplan.configure(actionplan={"connection": "postgresql://me:hunter2@db/plans"})
    for form in ("table", "json", "yaml", "csv", "value"):
        out = actionplan.good("config", "show", "-f", form)
        assert ("postgresql" in out, "hunter2" in out) == (True, False)
        assert form == "table" or "postgresql://me:***@db/plans" in out
        assert form != "table" or max(map(len, out.splitlines())) <= 100


def test_what_may_hold_a_secret_is_shown_nowhere(actionplan: CommandLine) -> None:
    """Addresses and command lines have passwords and tokens in them."""
    planted = {
        ("actionplan", "connection"): "postgresql://me:pl4nted@db/plans",
        ("workers", "broker"): "amqp://me:pl4nted@broker//",
        ("events", "webhooks"): "ops:https://me:pl4nted@ops.example/?key=pl4nted",
        ("watcher_applier", "health_probe"): "https://me:pl4nted@probe.example/?token=pl4nted",
    }
    conf = configuration.load([])
    groups = {group: conf[group] for group in {group for group, _ in planted}}
    may_hold = {
        (group, name)
        for group, of in groups.items()
        for name, known in of._group._opts.items()
        if isinstance(known["opt"].type, CheckedText | Webhooks)
    }
    assert may_hold == planted.keys(), "an address or a command line: plant a secret in it"
    for (group, name), value in planted.items():
        actionplan.configure(**{group: {name: value}})
        for form in ("table", "json"):
            ended = actionplan("config", "show", "-f", form)
            assert name in ended.out
            assert "pl4nted" not in ended.out + ended.err
    assert "pl4nted" not in asked("http://me:pl4nted@127.0.0.1:9/?token=pl4nted")
    assert "pl4nted" not in asked("/nowhere --token pl4nted")


def test_config_show_hides_a_password_with_a_dollar_sign(actionplan: CommandLine) -> None:
    """Its rest looks like the name of an option, which messages of oslo.config repeat."""
    actionplan.configure(
        actionplan={"connection": "postgresql://me:pa$swordfish@h/db"},
        workers={"broker": "amqp://me:x$tunafish@h//"},
    )
    ended = actionplan("config", "show", "-f", "json")
    assert ended.code == 1
    assert "cannot be used" in ended.out
    assert not re.search("swordfish|tunafish", ended.out + ended.err)


def test_config_show_shows_what_cannot_be_used(actionplan: CommandLine) -> None:
    actionplan.configure(
        actionplan={"connection": "nowhere", "simulator_speed": "fast"},
        watcher_workflow_engines__taskflow={"max_workers": "many"},
    )
    ended = actionplan("config", "show", "-f", "json")
    found = {f"{r['section']}.{r['option']}": r["value"] for r in json.loads(ended.out)}
    assert "sqlite:////PATH" in found["actionplan.connection"]
    assert found["actionplan.simulator_speed"].startswith("cannot be used: ")
    assert found["watcher_workflow_engines.taskflow.max_workers"].startswith("cannot be used: ")
    assert (ended.code, ended.err.count("Mistake: ")) == (1, 3)


def test_a_configuration_file_that_cannot_be_read_is_named(actionplan: CommandLine) -> None:
    (actionplan.folder / "folder").mkdir()
    (actionplan.folder / "binary").write_bytes(b"\xff\xfe")
    (actionplan.folder / "nonsense").write_text("nonsense\n", encoding="utf-8")
    (actionplan.folder / "large").write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    os.mkfifo(actionplan.folder / "pipe")
    why = {"folder": "directory", "binary": "UTF-8", "nonsense": "'nonsense'", "large": "4194305"}
    for name in (*why, "missing", "/dev/zero", "pipe"):
        ended = actionplan("--config-file", name, "list")
        assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
        assert ended.err.startswith("Refused: ")
        assert name in ended.err
        assert why.get(name, "file") in ended.err


def test_what_watcher_conf_says_of_a_type_holds_for_apply_and_for_forecasts(
    actionplan: CommandLine,
) -> None:
    actionplan.configure(watcher_actions__shell={"retries": 1, "estimate_s": 42})
    command = "test -e a || { touch a; exit 1; }"
    shell = {"action_type": "shell", "input_parameters": {"command": command}}
    actionplan.document("plan.yaml", {"name": "a", **shell})
    forecast = json.loads(actionplan.good("simulate", "plan.yaml", "-f", "json"))
    assert forecast["makespan_s"] == 42
    assert actionplan.good("create", "plan.yaml").count("42s") == 2
    actionplan.good("apply", "last", "--yes")
    (action,) = actionplan.plan().actions
    assert (action.state, action.attempts) == (ActionState.SUCCEEDED, 2)
