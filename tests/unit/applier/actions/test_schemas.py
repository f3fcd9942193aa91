# SPDX-License-Identifier: Apache-2.0
"""What the schemas of the action types accept, and where Watcher's do not check."""

from __future__ import annotations

import jsonschema

from applier.actions.hosts import ChangeNodePowerState, ChangeNovaServiceState
from applier.actions.instance_moves import Migrate, Resize
from applier.actions.markers import Nop, Sleep
from applier.actions.node_commands import Shell

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
