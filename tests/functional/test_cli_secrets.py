# SPDX-License-Identifier: Apache-2.0
"""Secrets from outside: where a value reaches the action, and that nothing else ever shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import CommandLine

from applier.cli.views import FORMATS

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
