# SPDX-License-Identifier: Apache-2.0
"""Command lines that begin with no verb."""

from __future__ import annotations

from applier.cli.mistyped import reordered, unknown

VERBS = ["create", "apply", "list", "show", "action list", "action show", "action type list"]

REORDERED = {
    "web.yaml create": "actionplan create web.yaml",
    "last show --all": "actionplan show last --all",
    "last list action": "actionplan action list last",
    "list type action": "actionplan action type list",
    "x.yaml --debug create": "actionplan --debug create x.yaml",
    "a.yaml create --config-file c.conf": "actionplan --config-file c.conf create a.yaml",
    "create web.yaml": None,
    "web.yaml": None,
    "": None,
}


def test_the_verb_comes_first() -> None:
    assert {line: reordered(line.split(), VERBS) for line in REORDERED} == REORDERED


#: What is wrong, and the commands that are named in its place.
UNKNOWN = {
    "aply x": ("aply", "actionplan apply x"),
    "action": ("action", "action list, action show, action type list"),
    "action type": ("action type", "action type list"),
    "action tpye list": ("action tpye", "actionplan action type list"),
    "action lst last": ("action lst", "actionplan action list last"),
    "qqqq": ("qqqq", "actionplan --help"),
    "--nope": ("--nope", "actionplan --help"),
    "--debug lst": ("lst", "actionplan --debug list"),
}


def test_an_unknown_verb_is_answered_with_the_nearest() -> None:
    for line, (wrong, commands) in UNKNOWN.items():
        answer = unknown(line.split(), VERBS)
        assert answer.startswith("actionplan: no ")
        assert f"'{wrong}';" in answer
        assert answer.endswith(f": {commands}\n")


def test_what_a_shell_would_split_is_quoted() -> None:
    line = ["my plan.yaml", "create"]
    assert reordered(line, VERBS) == "actionplan create 'my plan.yaml'"
