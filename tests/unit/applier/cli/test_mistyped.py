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


UNKNOWN = {
    "aply x": "no verb 'aply'; did you mean: actionplan apply x",
    "action": "no verb 'action'; with 'action' begin: action list, action show, action type list",
    "action type": "no verb 'action type'; with 'action type' begin: action type list",
    "action tpye list": "no verb 'action tpye'; did you mean: actionplan action type list",
    "action lst last": "no verb 'action lst'; did you mean: actionplan action list last",
    "qqqq": "no verb 'qqqq'; all verbs: actionplan --help",
    "--nope": "no option '--nope'; all verbs: actionplan --help",
    "--debug lst": "no verb 'lst'; did you mean: actionplan --debug list",
}


def test_an_unknown_verb_is_answered_with_the_nearest() -> None:
    for line, answer in UNKNOWN.items():
        assert unknown(line.split(), VERBS) == f"actionplan: {answer}\n"


def test_what_a_shell_would_split_is_quoted() -> None:
    line = ["my plan.yaml", "create"]
    assert reordered(line, VERBS) == "actionplan create 'my plan.yaml'"
