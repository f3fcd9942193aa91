# SPDX-License-Identifier: Apache-2.0
"""What the schemas of the action types accept, and where Watcher's do not check."""

from __future__ import annotations

import jsonschema
import pytest

from applier.actions.hosts import ChangeNodePowerState, ChangeNovaServiceState
from applier.actions.instance_moves import Migrate, Resize
from applier.actions.markers import Nop, Sleep
from applier.actions.node_commands import Shell
from applier.actions.parameters import one_line, resource, text, touch
from planner.plan.model import Effect, Touch

WEB_1 = "6a1f0001-0000-4000-8000-000000000001"
MOVE = {"resource_id": WEB_1, "migration_type": "live", "source_node": "compute-1"}


def accepts(action, parameters) -> bool:
    return jsonschema.Draft202012Validator(action.SCHEMA).is_valid(parameters)


ACCEPTED = [
    (Nop, {}),
    (Nop, {"message": None, "resource_id": "anything", "fail_execute": False}),
    (Sleep, {"duration": 0}),
    (Sleep, {"duration": 0.9, "resource_id": "anything"}),
    (Migrate, MOVE),
    (Migrate, {**MOVE, "destination_node": None, "resource_name": "web-1"}),
    (Migrate, {**MOVE, "resource_id": WEB_1.upper()}),
    (ChangeNovaServiceState, {"resource_id": "compute-1", "state": "down"}),
    (ChangeNodePowerState, {"resource_id": "compute-1", "state": "on"}),
    (Shell, {"argv": ["true"], "env": {"A": ""}, "timeout_s": 0.5, "ok_exit_codes": [0, 255]}),
    (Shell, {"command": "true", "cwd": "/", "resource_id": "compute-1"}),
]
REFUSED = [
    (Nop, {"message": 5}),
    (Nop, {"fail_execute": "yes"}),
    (Sleep, {}),
    (Sleep, {"duration": -0.1}),
    (Sleep, {"duration": "5"}),
    (Sleep, {"duration": True}),
    (Migrate, {**MOVE, "destination_node": {"host": "compute-2"}}),
    (Migrate, {**MOVE, "destination_node": ""}),
    (Migrate, {**MOVE, "resource_name": ""}),
    (Migrate, {**MOVE, "resource_name": None}),
    (Migrate, {**MOVE, "source_node": ""}),
    (Migrate, {**MOVE, "migration_type": "lukewarm"}),
    (Migrate, {**MOVE, "resource_id": "web-1"}),
    (Migrate, {**MOVE, "resource_id": f"{WEB_1}\n"}),
    (Migrate, {**MOVE, "resource_id": f"x{WEB_1}"}),
    (Resize, {"resource_id": WEB_1}),
    (ChangeNovaServiceState, {"resource_id": "compute-1", "state": "foo"}),
    (ChangeNodePowerState, {"resource_id": "compute-1", "state": "suspended"}),
    (Shell, {}),
    (Shell, {"argv": ["true"], "command": "true"}),
    (Shell, {"argv": []}),
    (Shell, {"argv": "true"}),
    (Shell, {"argv": ["sleep", 5]}),
    (Shell, {"command": ""}),
    (Shell, {"command": "true", "env": {"A": 1}}),
    (Shell, {"command": "true", "env": {"A=B": "1"}}),
    (Shell, {"command": "true", "timeout_s": 0}),
    (Shell, {"command": "true", "ok_exit_codes": [256]}),
    (Shell, {"command": "true", "ok_exit_codes": [1, 1]}),
]


def test_these_are_accepted_and_those_refused():
    assert not [one for one in ACCEPTED if not accepts(*one)]
    assert not [one for one in REFUSED if accepts(*one)]


# Parameters that nobody checked are read without an error.


@pytest.mark.parametrize("value", [None, "", "  ", 5, True, ["a"], {"a": 1}])
def test_what_is_no_text_is_nothing(value):
    assert text({"flavor": value}, "flavor") is None


def test_a_name_is_read_before_an_id():
    assert resource({"resource_id": "6a1f", "resource_name": "web-1"}, "it") == "web-1"
    assert resource({"resource_id": "6a1f"}, "it") == "6a1f"
    assert resource({}, "it") == "it"


def test_what_has_no_name_or_no_effect_is_not_touched():
    assert touch("node", "compute-1", Effect.LEAVES) == (Touch("node:compute-1", Effect.LEAVES),)
    assert touch("node", None) == ()
    assert touch("node", "compute-1", None) == ()


def test_what_steers_a_terminal_is_not_shown():
    assert one_line("a\x1b[2Jb\x07") == "a?[2Jb?"


def test_a_line_is_cut_to_its_limit():
    assert one_line("x" * 60, 60) == "x" * 60
    assert one_line("x" * 61, 60) == "x" * 59 + "…"
