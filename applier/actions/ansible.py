# SPDX-License-Identifier: Apache-2.0
"""The action type ``ansible``: a playbook, a role or a module of Ansible, on one host or on many.

It runs ``ansible-playbook`` as a command of this machine. What each host came to is told by the
callback in ``ansible_callbacks``, which Ansible loads; nothing of Ansible is imported here.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from applier.actions import node_action, schemas
from applier.actions.ansible_output import AnsibleOutput, HostResult, failures
from applier.actions.parameters import one_line, text
from applier.contracts import Machine, StopSignal
from applier.errors import ActionFailed
from applier.machines import address
from applier.secret_values import SecretText
from planner.errors import shown
from planner.plan.extent import listed
from planner.plan.model import Touch
from planner.plan.states import Outcome
from planner.schemas import ranges

CALLBACKS = Path(__file__).with_name("ansible_callbacks")
#: The name of a host, which no character makes a pattern of hosts.
_HOST = {
    **schemas.RESOURCE,
    "title": "the name of a host",
    "pattern": r"^[^\s,;!&~@*?\[\](){}/\\-][^\s,;!&*?\[\](){}/\\]*$",
}
_TAGS = {"type": "array", "items": schemas.TEXT, "minItems": 1}
_WHAT = ("playbook", "role", "module")
#: Writes the files that Ansible reads into the folder of the job, where its output is, and starts
#: it. They are removed with the job. No other user can read them, nor the variables from which they
#: come, each with a piece of a file; what Ansible runs does not inherit these.
_START = r"""
folder=$(readlink "/proc/$$/fd/1") && folder=${folder%/*} || exit 126
put() {
	number=0
	while eval "piece=\$ACTIONPLAN_$1_$number" && [ -n "$piece" ]; do
		(umask 077 && printf %s "$piece" >>"$folder/$2") || exit 126
		unset "ACTIONPLAN_$1_$number"
		number=$((number + 1))
	done
	[ $number != 0 ]
}
! put VARIABLES variables.yml || set -- "$@" --extra-vars "@$folder/variables.yml"
! put HOSTS limit || set -- "$@" --limit "@$folder/limit"
! put INVENTORY hosts.json || set -- "$@" --inventory "$folder/hosts.json"
! put VAULT vault || set -- "$@" --vault-password-file "$folder/vault"
! put PLAYBOOK playbook.yml || set -- "$@" "$folder/playbook.yml"
exec "$@"
"""
#: Hosts that Ansible knows without an inventory; it takes no --limit of them alone.
_IMPLICIT = ("localhost", "127.0.0.1", "::1")
#: The most characters of a piece; Linux takes 128 KiB in one variable, in UTF-8.
_PIECE = 30_000


class Ansible(node_action.NodeCommand):
    """Run a playbook, a role or a module of Ansible; changed if it changed one of the hosts.

    It is ok if nothing had to change, and fails with the hosts that failed or were unreachable, and
    with their tasks. It runs on ``hosts`` of the ``inventory``, else on ``node``, else on all hosts
    that the playbook names. Without an inventory, ``node`` at ``address``, or this machine, is the
    only host. Relative paths in a document begin at its folder. A stop ends Ansible and what it
    runs here; what a module has begun on a host may go on there.
    """

    TYPE, MAIN, PATHS = "ansible", "playbook", ("playbook", "inventory")
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {},
        optional={
            "playbook": {**schemas.TEXT, "description": "path of a playbook"},
            "play": {
                **ranges.COUNT,
                "description": "only this play, from 0; those of imported playbooks count as well",
            },
            "role": {**schemas.TEXT, "description": "name of a role, or its whole path"},
            "module": {**schemas.TEXT, "pattern": r"^[A-Za-z_][\w.]*$"},
            "arguments": {
                **ranges.ARGUMENT,
                "type": ["object", "string"],
                "description": "of the module",
            },
            "inventory": {
                **schemas.TEXT,
                "type": ["string", "array"],
                "items": schemas.TEXT,
                "minItems": 1,
                "description": "path of an inventory, or a list of them",
            },
            "hosts": {
                "type": "array",
                "items": _HOST,
                "minItems": 1,
                "uniqueItems": True,
                "description": "only these hosts of the inventory",
            },
            "tags": _TAGS,
            "skip_tags": _TAGS,
            "variables": {"type": "object", "description": "extra variables"},
            "become": {
                "type": "boolean",
                "description": "as another user, by default root, where the playbook does not say",
            },
            "forks": {**ranges.COUNT_OF_ONE_OR_MORE, "description": "how many hosts at once"},
            "vault_password": {
                **schemas.TEXT,
                "writeOnly": True,
                "description": "a reference to a secret",
            },
            **node_action.WHERE,
        },
        examples=[
            {"playbook": "/srv/site.yml", "inventory": "/srv/hosts.yml", "hosts": ["web-1"]},
            {"module": "apt", "arguments": {"name": "ntp"}, "become": True, "node": "3"},
            {"role": "ntp", "node": "3", "duration_s": 0.5},
        ],
        oneOf=[{"required": [name]} for name in _WHAT],
        dependentRequired={
            "play": ["playbook"],
            "arguments": ["module"],
            "hosts": ["inventory"],
        },
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        hosts = [host for host in listed(parameters.get("hosts")) if isinstance(host, str) and host]
        return [Touch(f"node:{h}") for h in dict.fromkeys(hosts)] or super().touches(parameters)

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        return () if cls.simulated(parameters) else (None,)

    @classmethod
    def simulated(cls, parameters: Mapping[str, Any]) -> bool:
        return super().simulated(parameters) and not parameters.get("inventory")

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``ansible site.yml play 2 on web-1, web-2``."""
        kind = next((kind for kind in _WHAT if text(parameters, kind)), "playbook")
        name = (text(parameters, kind) or "").rpartition("/")[2]
        what = f"ansible {'' if kind == 'playbook' else f'{kind} '}{one_line(name, 40)}".rstrip()
        if (play := parameters.get("play")) is not None:
            what += f" play {one_line(str(play), 10)}"
        hosts = [str(host) for host in listed(parameters.get("hosts"))]
        if not hosts:
            return node_action.described(what, parameters)
        return f"{what} on {one_line(', '.join(hosts), 60)}"

    def precheck(self) -> None:
        if self.simulated(self.parameters):
            return
        self._program()
        for name in self.PATHS:
            for path in listed(self.parameters.get(name)):
                if not os.path.isabs(path) or not os.path.exists(path):
                    raise ActionFailed(f"{name}: there is no {path} on this machine")

    def dry_run(self) -> str | None:
        """Run it with ``--check --diff``; return on which hosts it would change something."""
        self.precheck()
        if self.simulated(self.parameters):
            return None
        hosts = self._run(self._machine(None), ["--check", "--diff"])
        changed = [host for host, found in hosts.items() if found.outcome == Outcome.CHANGED]
        unchecked = dict.fromkeys(found.task for found in hosts.values() if found.task)
        told = f"would change {', '.join(shown(changed)) or 'nothing'}"
        return f"{told}; not looked at: {', '.join(shown([*unchecked]))}" if unchecked else told

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:  # noqa: ARG002
        hosts = self._run(machine)
        is_changed = any(found.outcome == Outcome.CHANGED for found in hosts.values())
        return Outcome.CHANGED if is_changed else Outcome.OK

    def _machine(self, address: str | None, stop: StopSignal | None = None) -> Machine:  # noqa: ARG002
        """Return this machine: Ansible itself connects to the hosts."""
        return super()._machine(None, stop)

    def _program(self) -> str:
        # Imported here: whoever lists the types reads no documents.
        from planner.documents import inventory

        found = inventory.program("ansible-playbook")
        if found is None:
            raise ActionFailed(inventory.MISSING.format("an action of type ansible"))
        return found

    def _run(self, machine: Machine, more: Sequence[str] = ()) -> Mapping[str, HostResult]:
        """Run it to its end; raise ActionFailed if it or one of the hosts fails."""
        told = AnsibleOutput(self.context.output)
        name = one_line(self.describe(self.parameters), node_action.SHOWN)
        start = ["/bin/sh", "-c", _START, "ansible", self._program(), *self._arguments(), *more]
        self._ended = ended = node_action.run(
            machine, start, name, output=told, env=self._environment(), cwd=self._folder()
        )
        told.close()
        if ended.why is None and told.hosts is not None:
            if failed := failures(told.hosts):
                raise ActionFailed(failed)
            if ended.code == 0:
                return told.hosts
        raise node_action.failure(name, ended._replace(last_line=told.last_line))

    def _arguments(self) -> list[str]:
        given = self.parameters
        values = [
            *(("inventory", path) for path in listed(given.get("inventory"))),
            *(("tags", tag) for tag in given.get("tags", ())),
            *(("skip-tags", tag) for tag in given.get("skip_tags", ())),
            *(("forks", number) for number in listed(given.get("forks"))),
        ]
        options = [f"--{name}={value}" for name, value in values]
        options += ["--become"] if given.get("become") else []
        return [*options, *listed(given.get("playbook"))]

    def _environment(self) -> dict[str, str]:
        given = self.parameters
        hosts = given.get("hosts") or listed(given.get("node"))
        implicit = hosts[0] if len(hosts) == 1 and hosts[0] in _IMPLICIT else ""
        folders = [str(CALLBACKS), *listed(os.environ.get("ANSIBLE_CALLBACK_PLUGINS"))]
        files = {
            "VARIABLES": _yaml(given["variables"]) if given.get("variables") else "",
            "HOSTS": "" if implicit else "\n".join(hosts),
            "INVENTORY": "" if given.get("inventory") else self._inventory(),
            "VAULT": str(given.get("vault_password", "")),
            "PLAYBOOK": self._playbook(),
        }
        return {
            "ANSIBLE_CALLBACK_PLUGINS": os.pathsep.join(folders),
            "ANSIBLE_STDOUT_CALLBACK": "actionplan",
            "ANSIBLE_NOCOLOR": "1",
            "ACTIONPLAN_LIMIT": implicit,
            "ACTIONPLAN_PLAY": str(given.get("play", "")),
            "ACTIONPLAN_SHOWS_OUTPUT": given.get("module", ""),
            **{
                f"ACTIONPLAN_{name}_{first // _PIECE}": text[first : first + _PIECE]
                for name, text in files.items()
                for first in range(0, len(text), _PIECE)
            },
        }

    def _playbook(self) -> str:
        """Return a playbook that runs the role or the module; an empty text if one is given."""
        role, module = self.parameters.get("role"), self.parameters.get("module")
        if role:
            return _yaml([{"name": role, "hosts": "all", "roles": [role]}])
        if not module:
            return ""
        task = {"name": module, module: self.parameters.get("arguments", {})}
        return _yaml([{"name": module, "hosts": "all", "gather_facts": False, "tasks": [task]}])

    def _inventory(self) -> str:
        """Return an inventory of this machine, or of the node, which is reached as by others."""
        where = self.parameters.get("address")
        known: dict[str, Any] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        if where is not None:
            host, user, port = address.parse(where)
            # The options by which an rsync of this machine reaches the node, less its port.
            (_, ssh), _ = self._machines().machine(where, threading.Event()).rsync("")
            _, *words = shlex.split(ssh)
            if port:
                del words[(at := words.index("-p")) : at + 2]
            known = {"ansible_host": host, "ansible_ssh_common_args": shlex.join(words)}
            known |= {"ansible_user": user} if user else {}
            known |= {"ansible_port": port} if port else {}
        name = node_action.node_of(self.parameters) or "localhost"
        return json.dumps({"all": {"hosts": {name: known}}})

    def _folder(self) -> str | None:
        """Return the nearest folder with an ``ansible.cfg`` around what runs, else its own."""
        files = [path for name in self.PATHS for path in listed(self.parameters.get(name))]
        if not files:
            return None
        from planner.documents import inventory  # whoever lists the types reads no documents

        return inventory.settings_folder(files[0])


def _yaml(value: Any) -> str:
    """Return a value as YAML; Ansible takes the value of a secret for no template."""
    import yaml  # takes longer than the rest of this module

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(
        SecretText, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text))
    )
    return yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False)
