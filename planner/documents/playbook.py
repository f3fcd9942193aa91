# SPDX-License-Identifier: Apache-2.0
"""Reads the plays of a playbook: Ansible itself fills in templates and tells hosts and tasks.

It is run once for all plays, with a callback that ends it before the first of them begins. Files
that tasks include while they run are searched for words: Ansible alone reads what they say.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from planner.documents import Document, inventory
from planner.errors import InvalidInput, Mistake, shown
from planner.errors import Path as Place
from planner.plan.extent import listed
from planner.planners.playbook.plays import GROWING, TOGETHER
from planner.schemas import hidden_values

_RS = "\x1e"
_CALLBACKS = Path(__file__).with_name("ansible_callbacks")
_WORD = re.compile(r"[A-Za-z_]\w*")
#: How tasks, and the dependencies of a role, name a role.
_ROLE = re.compile(
    r"""\binclude_role["']?:[\s{]*["']?name["']?:\s*["']?(\{\{.*?\}\}|[\w./-]+)"""
    r"|- +role: *([\w./-]+)"
)
#: A task that includes a file which a template names.
_TEMPLATED = re.compile(
    r"""\binclude_(?:tasks|vars)["']?:[\s{]*(?:["']?file["']?: *)?["']?[\w./-]*\{\{"""
)
_FILE = re.compile(r"[\w./-]+\.(?:ya?ml|j2)\b")
_SET = re.compile(r"""["']?(?:\bansible\.builtin\.)?\b(register|set_fact)["']?:[ \t]*(.*)""")
_KEY = re.compile(r"""["']?([A-Za-z_]\w*)["']?\s*[:=]""")
#: Facts of a host that modules do not need, but templates do.
_FACT = re.compile(
    r"ansible_(facts|distribution\w*|os_family|default_ipv[46]|all_ipv[46]\w*|hostname|fqdn|nodename"
    r"|domain|architecture|kernel|processor\w*|mem\w+_mb|interfaces|devices|mounts|pkg_mgr"
    r"|service_mgr|virtualization\w*|selinux|date_time|env|lsb)"
)
#: Folders of a role whose files say what its tasks do; folders beside a file, of those it names.
_PARTS = ("meta", "tasks", "handlers", "templates", "vars", "defaults")
_BESIDE = ("", "tasks", "handlers", "templates", "vars")
_SUFFIXES = (".yml", ".yaml", ".j2")
#: What the callback tells of a play that its document has as it is.
_KEPT = (
    *("name", "hosts", "is_shuffled", "serial", "strategy", "max_fail_percentage"),
    *("any_errors_fatal", "vars_prompt", "tasks", "handlers"),
)
#: How Ansible warns of a pattern.
_UNMATCHED = "Could not match supplied host pattern, ignoring: "
_IMPORT = re.compile(r"""^[ -]*(?:ansible\.builtin\.)?import_playbook: *["']?([^"'\s#]+)""")


def read_plays(document: Mapping[str, Any], path: str, inventories: Sequence[str]) -> Document:
    """Return the plays of a playbook on the hosts that a document chooses, as its schema has them.

    ``path`` and ``inventories`` are absolute. Raises InvalidInput with what Ansible says is wrong.
    """
    options = [f"--inventory={one}" for one in inventories]
    for field in ("limit", "tags", "skip_tags"):
        texts = [text for text in listed(document.get(field)) if isinstance(text, str)]
        options += [f"--{field.replace('_', '-')}={','.join(texts)}" for _ in texts[:1]]
    password = hidden_values.reference(document.get("vault_password")) or ""
    if password.startswith("file "):
        options.append(f"--vault-password-file={password.removeprefix('file ')}")
    folder = inventory.settings_folder(path)
    settings = {
        "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
        "ANSIBLE_STDOUT_CALLBACK": "actionplan_plays",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        variables = hidden_values.replaced(
            document.get("variables"), lambda _, text: hidden_values.label(text)
        )
        if isinstance(variables, Mapping) and variables:
            json.dump(variables, file)
            file.flush()
            options.append(f"--extra-vars=@{file.name}")
        try:
            printed, warnings = inventory.run(
                "ansible-playbook", [*options, path], folder, path, settings
            )
        except InvalidInput as wrong:
            if "recursion depth" in str(wrong) and (place := _cycle(os.path.realpath(path), ())):
                text = "the playbook that is imported here imports this one"
                raise InvalidInput([Mistake(text, place=place)]) from None
            raise
    return _Reader(json.loads(printed.rpartition(_RS)[2])).document(path, warnings)


def _cycle(path: str, around: tuple[str, ...]) -> str | None:
    """Return file and line of the import that closes a circle of playbooks."""
    try:
        lines = Path(path).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for number, line in enumerate(lines, 1):
        if found := _IMPORT.match(line):
            other = os.path.realpath(os.path.join(os.path.dirname(path), found[1]))
            if other in (*around, path):
                return f"{path}:{number}"
            if place := _cycle(other, (*around, path)):
                return place
    return None


class _Source(NamedTuple):
    """What a file or a role says: its words, the variables that it makes, what it includes.

    It ``hides`` files of which only a template has the names.
    """

    words: set[str]
    makes: set[str]
    roles: Sequence[str]
    files: Sequence[str]
    hides: bool


class _Reader:
    """Makes the plays of a document of what our callback tells of them."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._told: Sequence[Mapping[str, Any]] = found["plays"]
        self._roles_path: Sequence[str] = found["roles_path"]
        self._keeps_facts: bool = found["keeps_facts"]
        self._warnings: dict[Mistake, None] = {}
        self._sources: dict[str, _Source] = {}

    def document(self, path: str, warnings: Sequence[Mistake]) -> Document:
        """Return the plays; raises InvalidInput with what is wrong in any of them."""
        wrong = [Mistake(one["wrong"], place=one["at"]) for one in self._told if "wrong" in one]
        if wrong:
            raise InvalidInput(wrong)
        known = [self._of_play(one) for one in self._told]
        asked = {*TOGETHER, *GROWING}.union(*(makes for _, makes in known))
        plays, places = list[dict[str, Any]](), dict[Place, tuple[Document, Place]]()
        gathered = False
        for i, (one, (words, makes)) in enumerate(zip(self._told, known, strict=True)):
            uses_facts = gathered and not one["gathers"] and any(map(_FACT.fullmatch, words))
            gathered |= one["gathers"]
            play = {
                **{key: one[key] for key in _KEPT},
                "words": sorted(words & asked),
                "makes": sorted(makes),
                "lacks_facts": uses_facts and not self._keeps_facts,
            }
            plays.append(
                {k: v for k, v in play.items() if v or isinstance(v, float) or k == "hosts"}
            )
            places[(i,)] = (Document(None, one["at"]), ())
        unmatched = [w.text.partition(_UNMATCHED)[2] for w in warnings if _UNMATCHED in w.text]
        told = [*(w for w in warnings if _UNMATCHED not in w.text), *self._warnings]
        if unmatched:
            text = f"the inventory has no such hosts or groups: {', '.join(shown(unmatched))}"
            told.append(Mistake(text, place=path))
        return Document(plays, path, brought=places, warnings=told)

    def _of_play(self, play: Mapping[str, Any]) -> tuple[set[str], set[str]]:
        """Return the words of a play and of what it includes, and the variables they make."""
        own, folder = play["at"].rpartition(":")[0], os.path.dirname(play["at"])
        roles: dict[str, str] = {**play["roles"]}
        first = _scanned(json.dumps(play["raw"], indent=1), folder)
        sources = [first._replace(files=[*roles.values(), *play["files"], *first.files])]
        words, seen = set[str](), {own, os.path.realpath(own)}
        makes = first.words & {"include_vars"}
        for source in sources:  # the list grows
            words |= source.words
            makes |= source.makes
            paths = [*source.files]
            for name in source.roles:
                if name not in roles:
                    roles[name] = self._folder(name, folder, roles.values())
                    paths.append(roles[name])
            for path in paths:
                if path and path not in seen and not _is_in(path, roles.values()):
                    seen.add(path)
                    sources.append(self._source(path))
        if any(source.hides for source in sources):
            text = "a template names files that tasks include: what these need is not known"
            self._warnings[Mistake(text, place=play["at"])] = None
        for name in (name for name, found in roles.items() if not found):
            text = f"role {name} is not found: what its tasks need is not known"
            self._warnings[Mistake(text, place=play["at"])] = None
        return words, makes

    def _folder(self, name: str, folder: str, others: Iterable[str]) -> str:
        """Return the folder of a role that is included, or an empty text."""
        around = (f"{folder}/roles", *self._roles_path, folder, *map(os.path.dirname, others))
        found = (os.path.join(one, name) for one in around if one)
        return next((one for one in found if os.path.isdir(one)), "")

    def _source(self, path: str) -> _Source:
        """Return what a file says, or all files of a role."""
        if path not in self._sources:
            is_role = os.path.isdir(path)
            self._sources[path] = _scanned(_text(path), "" if is_role else os.path.dirname(path))
        return self._sources[path]


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(folder and path.startswith(f"{folder}/") for folder in folders)


def _text(path: str) -> str:
    """Return the text of a file, or of all files of a role; an empty one if it cannot be read."""
    files = [Path(path)]
    if os.path.isdir(path):
        found = (file for part in _PARTS for file in sorted(Path(path, part).rglob("*")))
        files = [file for file in found if file.suffix in _SUFFIXES and file.is_file()]
    texts = []
    for file in files:
        with suppress(OSError):
            texts.append(file.read_text("utf-8", errors="replace"))
    return "\n".join(texts)


def _scanned(text: str, folder: str) -> _Source:
    """Return what a text says; the files that it names are looked for in and below a folder."""
    roles = [by_task or as_dependency for by_task, as_dependency in _ROLE.findall(text)]
    names = dict.fromkeys(_FILE.findall(text)) if folder else ()
    paths = (os.path.realpath(os.path.join(folder, one, n)) for n in names for one in _BESIDE)
    files = [path for path in paths if os.path.isfile(path)]
    hides = bool(folder and _TEMPLATED.search(text))  # of a role, all files are read
    return _Source(set(_WORD.findall(text)), {*made(text)}, roles, files, hides)


def made(text: str) -> Iterator[str]:
    """Yield the variables that the tasks in a text register or set.

    >>> [*made("- set_fact:\\n    a: 1\\n    b: {c: 2}\\n  when: d\\n- {shell: x, register: e}")]
    ['a', 'b', 'e']
    >>> [*made("- set_fact: {a: 1, b: 2}\\n- set_fact: c=3 d=4")]
    ['a', 'b', 'c', 'd']
    """
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not (found := _SET.search(line)):
            continue
        kind, rest = found.groups()
        if kind == "register":
            yield from _WORD.findall(rest)[:1]
        elif rest.strip("{ "):
            yield from _KEY.findall(rest)
        else:
            yield from _keys_below(lines, i + 1, found.start())


def _keys_below(lines: Sequence[str], first: int, outer: int) -> Iterator[str]:
    """Yield the keys of the mapping that begins at a line, right of a column."""
    inner = None
    for line in filter(str.strip, lines[first:]):
        indent = len(line) - len(line.lstrip())
        if indent <= outer:
            return
        inner = inner or indent
        if indent == inner and (key := _KEY.match(line.strip())):
            yield key[1]
