# SPDX-License-Identifier: Apache-2.0
"""Reads the nodes of an inventory of Ansible: any that ``ansible-inventory --list`` reads.

Ansible is run as a program, never imported.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planner.documents import Document, read
from planner.errors import InvalidInput, Mistake, cut
from planner.plan.graph_algorithms import reachable

#: What is said where a program of Ansible is not installed.
MISSING = "{} needs the extra 'ansible': pip install '.[ansible]', in a clone of ActionPlan"
#: The most characters of what Ansible says that a message has.
_TOLD = 300
#: Where a message of Ansible begins, where its text ends, and the place that it names.
_MESSAGE = re.compile(r"^(?=\[(?:ERROR|(?:DEPRECATION )?WARNING)\]: |ERROR! )", re.MULTILINE)
_END = re.compile(r"\n(?=\n|Origin: |to see the full)")
_PLACE = re.compile(
    r"(?:Origin: |appears to be in ')(?P<file>/[^\n']*?)(?:': line |:)(?P<line>[0-9]+)"
)


def program(name: str) -> str | None:
    """Return the path of a program of Ansible, or None if it is not installed.

    It is looked for beside the running Python first, where the extra ``ansible`` installs it.
    """
    folders = (os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath))
    return shutil.which(name, path=os.pathsep.join(folders))


def read_nodes(path: str | Path, limit: str | None = None) -> tuple[Document, bool]:
    """Read a list of nodes, a document with one, or an inventory; return whether it is the last.

    The content decides: a list, and a mapping with a list ``nodes`` or a ``kind``, is no inventory.
    Raises InvalidInput.
    """
    unread = None
    if not os.path.isdir(path):
        try:
            found = read(path)
        except InvalidInput as wrong:
            if not os.access(path, os.R_OK):
                raise
            unread = wrong
        else:
            if _is_own(found.value):
                return found, False
    try:
        return Document(read_inventory([path], limit), str(path)), True
    except InvalidInput as wrong:
        is_told = unread is not None and str(path).endswith((".yaml", ".yml", ".json"))
        raise (unread if unread and is_told else wrong) from None


def _is_own(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "kind" in value or isinstance(value.get("nodes"), list)
    return isinstance(value, list)


def read_inventory(paths: Sequence[str | Path], limit: str | None = None) -> list[dict[str, Any]]:
    """Return the hosts of inventories, in the order in which Ansible takes them.

    Each is ``{name, address, roles, labels}``. ``address`` is where its variables ``ansible_host``,
    ``ansible_user`` and ``ansible_port`` say, else its name. ``roles`` are its groups, those around
    them too. ``labels`` are its variables that are a text, a number or a boolean, as text, without
    those of Ansible itself (``ansible_...``). ``limit`` is a pattern as ``--limit`` has it. Raises
    InvalidInput.
    """
    place = ", ".join(map(str, paths))
    # Ansible runs in the folder of its settings, which relative paths do not begin in.
    listed = _listed([os.path.abspath(path) for path in paths], limit, place)
    roles: dict[str, list[str]] = {}
    for group in _groups(listed):
        for host in listed.get(group, {}).get("hosts", ()):
            roles.setdefault(host, [])
    for group in listed:
        for host in _hosts(listed, group) if group not in ("all", "ungrouped", "_meta") else ():
            roles[host].append(group)
    if not roles:
        text = f"no host of the inventory matches {limit!r}" if limit else "an inventory of no host"
        raise InvalidInput([Mistake(text, place=place)])
    variables = listed["_meta"]["hostvars"]
    return [_node(name, groups, variables.get(name, {})) for name, groups in roles.items()]


def _listed(paths: Sequence[str], limit: str | None, place: str) -> dict[str, Any]:
    """Return what ``ansible-inventory --list`` prints; raises InvalidInput with what it says."""
    options = ["--list", *(f"--inventory={path}" for path in paths)]
    options += [f"--limit={limit}"] if limit else []
    printed, _ = run("ansible-inventory", options, settings_folder(paths[0]), place)
    return dict(json.loads(printed))


def settings_folder(path: str) -> str:
    """Return the nearest folder with an ``ansible.cfg`` around a file, else its own folder."""
    folders = [str(folder) for folder in Path(path).absolute().parents]
    return next((one for one in folders if os.path.isfile(f"{one}/ansible.cfg")), folders[0])


def run(
    name: str,
    options: Sequence[str],
    folder: str,
    place: str,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, list[Mistake]]:
    """Run a program of Ansible in a folder; return what it prints, and its warnings.

    ``settings`` are added to the environment. Raises InvalidInput with the errors that it tells,
    where they are, else at ``place``.
    """
    found = program(name)
    if found is None:
        text = MISSING.format("to read files of Ansible")
        raise InvalidInput([Mistake(text, place=place)])
    own = {
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        # An inventory that no plugin of Ansible can read is else a warning, and of no host.
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
    }
    try:
        done = subprocess.run(
            [found, *options],
            cwd=folder,
            env={**os.environ, **own, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as reason:
        text = f"{name} cannot be started: {reason.strerror}"
        raise InvalidInput([Mistake(text, place=place)]) from reason
    told = [*_told(done.stderr, place)]
    warnings = [mistake for kind, mistake in told if kind == "WARNING"]
    if done.returncode == 0:
        return done.stdout, warnings
    wrong = [mistake for mistake in warnings if "parse" in mistake.text]
    wrong += [mistake for kind, mistake in told if kind == "ERROR"]
    raise InvalidInput(wrong or [Mistake(f"{name} ended with {done.returncode}", place=place)])


def _told(printed: str, place: str) -> Iterator[tuple[str, Mistake]]:
    """Yield the errors and warnings that Ansible prints, each once, with its file and line."""
    for part in dict.fromkeys(_MESSAGE.split(printed)):
        if kind := re.match(r"\[?(ERROR|WARNING)", part):
            text = " ".join(_END.split(part.split(" ", 1)[1])[0].split())
            where = _PLACE.search(part)
            at = f"{where['file']}:{where['line']}" if where else place
            yield kind[1], Mistake(f"Ansible says: {cut(text, _TOLD)}", place=at)


def _groups(listed: Mapping[str, Any], top: str = "all") -> Iterator[str]:
    """Yield a group and those in it, from the outer to the inner, as Ansible visits them."""
    level, seen = [top], {top}
    while level:
        yield from level
        inner = [child for group in level for child in listed.get(group, {}).get("children", ())]
        level = [child for child in dict.fromkeys(inner) if child not in seen]
        seen.update(level)


def _hosts(listed: Mapping[str, Any], group: str) -> set[str]:
    """Return the hosts of a group and of all groups in it."""
    inside = reachable([group], lambda one: listed.get(one, {}).get("children", ()))
    return {host for one in inside for host in listed.get(one, {}).get("hosts", ())}


def _node(name: str, groups: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    host, user = variables.get("ansible_host") or name, variables.get("ansible_user")
    host, port = str(host), variables.get("ansible_port")
    return {
        "name": name,
        "address": f"{f'{user}@' if user else ''}{f'[{host}]' if ':' in host else host}"
        f"{f':{port}' if port else ''}",
        "roles": [*groups],
        "labels": {
            key: json.dumps(value) if isinstance(value, bool) else str(value)
            for key, value in variables.items()
            if isinstance(value, str | int | float) and not key.startswith("ansible_")
        },
    }
