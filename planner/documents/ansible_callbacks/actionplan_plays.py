# SPDX-License-Identifier: Apache-2.0
"""The plays of a playbook as Ansible reads them, for planner/documents/playbook.py.

Ansible loads this file in its own process; ActionPlan never imports it. Before the first play
begins, it prints the character RS and a mapping in JSON, and ends the process: no task runs.
Supported are ansible-core 2.16 to 2.19.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import strategy_loader
from ansible.template import Templar

DOCUMENTATION = """
name: actionplan_plays
type: stdout
short_description: what the planner playbook of ActionPlan reads
description: Prints the plays of a playbook with their hosts, and runs none of them.
"""
#: Begins the line with the plays, as in a JSON text sequence (RFC 7464).
RS = "\x1e"
#: Begins what stands for a secret in variables.
LABEL = "secret:"


class CallbackModule(CallbackBase):
    """Prints the plays and ends the process."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "actionplan_plays"

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Print all plays. Ansible goes on after an error in a callback, so the end is an exit."""
        try:
            found = {
                "plays": [_play(play, playbook) for play in playbook.get_plays()],
                "roles_path": [*constants.DEFAULT_ROLES_PATH],
                "keeps_facts": constants.CACHE_PLUGIN != "memory",
            }
            # What is no text, such as an encrypted value, which would be decrypted, has no words.
            sys.stdout.write(f"{RS}{json.dumps(found, default=lambda _: '')}\n")
            sys.stdout.flush()
        except BaseException as reason:  # noqa: BLE001
            sys.exit(f"ERROR! {type(reason).__name__}: {reason}")
        sys.exit(0)


def _play(play: Any, playbook: Any) -> dict[str, Any]:
    """Return a play, or where it is and what is wrong in it."""
    try:
        return {"at": play.get_path(), **_read(play, playbook)}
    except (AnsibleError, TypeError, ValueError) as reason:
        return {"at": play.get_path(), "wrong": " ".join(str(reason).partition("\n\n")[0].split())}


def _read(play: Any, playbook: Any) -> dict[str, Any]:
    """Fill in the templates of a play as ``--list-hosts`` does, and return what it says."""
    manager, loader = play.get_variable_manager(), play.get_loader()
    inventory = manager._inventory
    loader.set_basedir(play._included_path or playbook._basedir)
    asked = Templar(loader, manager.get_vars(play=play)).template(play.vars_prompt) or []
    missing = [one for one in asked if one["name"] not in manager.extra_vars]
    play.vars.update({one["name"]: one.get("default") for one in missing})
    variables = manager.get_vars(play=play)
    templar = Templar(loader, variables)
    play.post_validate(templar)
    if unfilled := [one for one in play.hosts if "{{" in one]:
        raise AnsibleError(f"hosts: {unfilled[0]!r} still has a template in it")
    if secret := [one for one in play.hosts if LABEL in one]:
        raise AnsibleError(f"hosts: {secret[0]!r} has a secret in it, which no plan shows")
    if not strategy_loader.find_plugin(play.strategy):
        raise AnsibleError(f"there is no strategy {play.strategy!r}")
    order = None if play.order == "shuffle" else play.order
    tasks = [*_tasks(block.filter_tagged_tasks(variables) for block in play.compile())]
    handlers = [*_tasks([*play.handlers, *play.compile_roles_handlers()])]
    every = [*_tasks(play.compile()), *handlers]
    return {
        "name": play.get_name().strip(),
        "hosts": [host.get_name() for host in inventory.get_hosts(play.hosts, order=order)],
        "is_shuffled": play.order == "shuffle",
        "serial": play.serial,
        "strategy": play.strategy,
        "max_fail_percentage": play.max_fail_percentage,
        "any_errors_fatal": boolean(templar.template(play.any_errors_fatal)),
        "vars_prompt": [one["name"] for one in missing if one.get("default") is None],
        "gathers": _gathers(play, every),
        "tasks": [task.get_name() for task in tasks],
        "handlers": [task.get_name() for task in handlers],
        "raw": play.get_ds(),
        "files": sorted({os.path.realpath(task.get_path().rpartition(":")[0]) for task in every}),
        "roles": _roles(play, every),
    }


def _tasks(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the tasks of blocks in their order, without those that Ansible adds."""
    for entry in blocks:
        if hasattr(entry, "block"):
            yield from _tasks([*entry.block, *entry.rescue, *entry.always])
        elif not entry.implicit:
            yield entry


def _gathers(play: Any, tasks: Iterable[Any]) -> bool:
    """Return whether hosts tell their facts in a play, before its tasks or in one of them."""
    is_implicit = constants.DEFAULT_GATHERING != "explicit"
    asked = is_implicit if play.gather_facts is None else play.gather_facts
    modules = {task.action.rpartition(".")[2] for task in tasks}
    return bool(asked or modules & {"setup", "gather_facts"})


def _roles(play: Any, tasks: Iterable[Any]) -> dict[str, str]:
    """Return the folders of the roles of a play, with those that they depend on, by name."""
    roles = [task._role for task in tasks if task._role is not None] + [*play.roles]
    for role in roles:  # the list grows
        roles += [one for one in role.get_all_dependencies() if one not in roles]
    return {role.get_name(): role._role_path for role in roles}
