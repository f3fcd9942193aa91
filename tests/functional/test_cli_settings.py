# SPDX-License-Identifier: Apache-2.0
"""``--set`` and watcher.conf: what each bounds and where it goes; secrets, which nothing shows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import CommandLine

from applier import configuration
from applier.cli.diff_graph_report import FORMATS
from applier.configuration.option_types import CheckedText, Webhooks
from applier.run.holdings import asked


def most_at_once(output: str) -> int:
    """Count in the lines of apply how many actions were under way at once, at most."""
    under_way = most = 0
    for line in output.splitlines():
        under_way += ("  start      " in line) - ("SUCCEEDED (changed) [" in line)
        most = max(most, under_way)
    return most


def test_max_workers_bounds_what_runs_at_once_and_is_not_kept(actionplan):
    sleep = {"action_type": "sleep", "input_parameters": {"duration": 0.05}}
    actions = ({"name": name, **sleep} for name in "abcdef")
    wide = actionplan.document("wide.yaml", *actions, planner="workload_stabilization")
    ended = actionplan("create", wide, "--set", "max_workers=5", "-f", "json")
    assert ended.err.startswith("Note: max_workers=5 ")
    assert json.loads(ended.out)["actions"]
    actionplan.configure(watcher_workflow_engines__taskflow={"max_workers": 3})
    for words, most in ((("--set", "max_workers=2"), 2), ((), 3)):
        out = actionplan.good("apply", wide, "--yes", *words)
        assert (f"at most {most} at once" in out, most_at_once(out)) == (True, most)


def test_a_plan_that_is_made_takes_no_other_settings_and_no_other_content(actionplan):
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    actionplan.good("create", "plan.yaml", "--set", "on_failure=continue", "--out", "plan.json")
    assert actionplan.plan().on_failure == "continue"
    saved = json.loads((actionplan.folder / "plan.json").read_text(encoding="utf-8"))
    saved["actions"][0]["input_parameters"] = {"message": "x"}
    (actionplan.folder / "changed.json").write_text(json.dumps(saved), encoding="utf-8")
    del saved["digest"]
    (actionplan.folder / "other.json").write_text(json.dumps(saved), encoding="utf-8")
    for words, code, told in (
        (("last", "--set", "on_failure=skip_descendants"), 1, "was made with on_failure=continue"),
        (("last", "--set", "ordering=slots"), 1, "set ordering=slots: has no effect"),
        (("last", "--planner", "weight"), 1, "planner weight: has no effect"),
        (("changed.json",), 4, "it was changed after it was made"),
        (("other.json",), 4, "is stored with other content"),
        (("plan.json",), 0, ""),
        (("plan.json",), 1, "nothing of it is left to do"),
    ):
        ended = actionplan("apply", *words, "--yes")
        assert (ended.code, told in ended.err) == (code, True), ended


def origins(actionplan: CommandLine, *words: str) -> dict[str, tuple[str, str]]:
    """Map each option to its value and where that comes from."""
    rows = json.loads(actionplan.good(*words, "config", "show", "-f", "json"))
    return {f"{r['section']}.{r['option']}": (r["value"], r["from"]) for r in rows}


def test_config_show_names_file_and_environment_of_each_option(actionplan):
    one, two = actionplan.folder / "one.conf", actionplan.folder / "two.conf"
    one.write_text("[actionplan]\nsimulator_speed = 5\n[ssh]\nknown_hosts = /k\n", encoding="utf-8")
    two.write_text("[actionplan]\nsimulator_speed = 6\n", encoding="utf-8")
    found = origins(actionplan, "--config-file", str(one), "--config-file", str(two))
    assert found["actionplan.simulator_speed"] == ("6.0", str(two))
    assert found["ssh.known_hosts"] == ("/k", str(one))
    assert found["watcher_planner.planner"] == ("weight", "default")
    actionplan.environment["OS_SSH__KNOWN_HOSTS"] = "/e"
    found = origins(actionplan)
    assert found["actionplan.simulator_speed"] == ("1000.0", str(actionplan.configuration))
    assert found["ssh.known_hosts"] == ("/e", "OS_SSH__KNOWN_HOSTS")
    assert found["actionplan.connection"] == (f"sqlite:///{actionplan.record}", "default")


def test_what_may_hold_a_secret_is_shown_nowhere(actionplan):
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


def test_config_show_shows_what_cannot_be_used(actionplan):
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
    # Its rest looks like the name of an option, which messages of oslo.config repeat.
    actionplan.configure(
        actionplan={"connection": "postgresql://me:pa$swordfish@h/db"},
        workers={"broker": "amqp://me:x$tunafish@h//"},
    )
    ended = actionplan("config", "show", "-f", "json")
    assert (ended.code, "cannot be used" in ended.out) == (1, True)
    assert not re.search("swordfish|tunafish", ended.out + ended.err)


def test_a_configuration_file_that_cannot_be_read_is_named(actionplan):
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


# Secrets from outside


VALUE, LITERAL = "sword'fish 7", "hunter2"
#: Prints its argument and its environment, and fails.
SCRIPT = "echo $1; printf \"sword'f\"; echo 'ish 7'; test $# = 0"
LEAKS = (VALUE, LITERAL, "sword'", "fish 7")


def shell(**more: Any) -> dict[str, Any]:
    return {
        "name": "login",
        "action_type": "shell",
        "input_parameters": {
            "argv": ["sh", "-c", SCRIPT, "sh", {"secret": "file /proc/self/cwd/password"}],
            "env": {"PASSWORD": {"secret": "env DB_PASSWORD"}, "PLAIN": LITERAL},
            **more,
        },
    }


@pytest.fixture
def kept(actionplan: CommandLine) -> CommandLine:
    """A home in which a plan with secrets has failed."""
    (actionplan.folder / "password").write_text(f"{VALUE}\n", encoding="utf-8")
    actionplan.document("p.yaml", shell())
    return actionplan


def test_no_verb_no_log_and_no_record_shows_a_value(kept):
    said = [
        kept("create", "p.yaml"),
        kept("create", "p.yaml", "--dry-run", "-f", "json"),
        kept("apply", "last", "--yes", "-vv", "--log-file", "log", DB_PASSWORD=VALUE),
    ]
    (kept.folder / "said").write_text(str(said), encoding="utf-8")
    for form in ((), ("-f", "json"), ("-f", "yaml")):
        said += [kept("show", "last", *form), kept("action", "show", "last", "login", *form)]
    said += [kept("show", "last", "-f", "message"), kept("simulate", "last", "-f", "json")]
    said += [kept("graph", "last", "-f", form) for form in FORMATS]
    said += [kept("action", "list", "last", "-f", form) for form in ("json", "csv", "value")]
    said += [kept("why", "last", "login"), kept("rollback", "last")]
    log = (kept.folder / "log").read_text(encoding="utf-8")
    for text in (*map(str, said), log):
        assert not [leak for leak in LEAKS if leak in text], text
    record = b"".join(p.read_bytes() for p in kept.record.parent.glob("actionplan.sqlite*"))
    assert VALUE.encode() not in record
    (attempt,) = json.loads(kept.good("action", "show", "last", "login", "-f", "json"))[
        "attempts_made"
    ]
    assert (attempt["state"], attempt["output"]) == ("FAILED", "***\n***\n")


def test_the_action_gets_the_values(actionplan):
    (actionplan.folder / "password").write_text(f"{VALUE}\n", encoding="utf-8")
    for name, parameters in {
        "upload_file": {"path": "copy", "data": {"secret": f"file {actionplan.folder}/password"}},
        "shell": {"command": 'printf %s "$P" > env', "env": {"P": {"secret": "env P"}}},
    }.items():
        given: Mapping[str, Any] = {"action_type": name, "input_parameters": parameters}
        actionplan.document("p.yaml", given)
        ended = actionplan("apply", "p.yaml", "--yes", P=VALUE)
        assert ended.code == 0, ended
    for name in ("copy", "env"):
        assert (actionplan.folder / name).read_text(encoding="utf-8") == VALUE


def test_a_plan_that_was_shown_without_its_values_is_refused_as_a_plan(kept):
    kept.good("create", "p.yaml", "--out", "plan.json")
    shown = kept.good("show", "last", "-f", "json")
    (kept.folder / "shown.json").write_text(shown, encoding="utf-8")
    whole = (kept.folder / "plan.json").read_text(encoding="utf-8")
    assert (LITERAL in whole, LITERAL in shown) == (True, False)
    ended = kept("apply", "shown.json", "--yes")
    assert (ended.code, ended.err.startswith("Refused: shown.json:7: digest: ")) == (4, True)
    assert "create --out" in ended.err
