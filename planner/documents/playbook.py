# SPDX-License-Identifier: Apache-2.0
"""Reads the plays of a playbook of Ansible, with the playbooks that it imports and its roles.

The plays are as they are written, in the order in which ``ansible-playbook --list-tasks`` counts
them. Of roles, the files are searched for names: Ansible alone reads what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner import documents
from planner.documents import Document
from planner.errors import InvalidInput, Mistake
from planner.errors import Path as Place
from planner.plan.extent import listed
from planner.planners.playbook.plays import role_name, words_of

_IMPORTS = ("import_playbook", "ansible.builtin.import_playbook")
_TASK = re.compile(r"^ *- +name: *[\"']?(.+?)[\"']? *$", re.MULTILINE)
#: How tasks, and the dependencies of a role, name a role.
_ROLE = re.compile(
    r"""\b(?:include|import)_role["']?:[\s{]*["']?name["']?:\s*["']?([\w./-]+)"""
    r"|- +role: *([\w./-]+)"
)
#: Folders of a role whose files say what its tasks do.
_PARTS = ("meta", "tasks", "handlers", "templates", "vars", "defaults")
_SUFFIXES = (".yml", ".yaml", ".j2")
#: How many folders around a playbook may have the folder ``roles``.
_AROUND = 3


def read_plays(paths: Sequence[str]) -> Document:
    """Return the plays of one or more playbooks, as documents of ``kind: playbook`` have them.

    Raises InvalidInput with all mistakes: of files that cannot be read, of what is no play.
    """
    reader = _Reader()
    for path in paths:
        reader.file(Path(path), {}, (), None)
    if reader.mistakes:
        raise InvalidInput(reader.mistakes)
    return Document(reader.plays, ", ".join(paths), brought=reader.places, warnings=reader.warnings)


class _Reader:
    def __init__(self) -> None:
        self.plays: list[dict[str, Any]] = []
        self.places: dict[Place, tuple[Document, Place]] = {}
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []
        self._roles: dict[Path, dict[str, Any]] = {}

    def file(
        self, path: Path, variables: Mapping[str, Any], around: tuple[Path, ...], place: str | None
    ) -> None:
        """Read a file that ``around`` import, at a place of the last of them, with variables."""
        if path in around:
            self.mistakes.append(Mistake(f"{path.name} imports itself", place=place))
            return
        try:
            document = documents.read(path, last_holds=True)
        except InvalidInput as wrong:
            self.mistakes += wrong.mistakes
            return
        self.warnings += document.warnings
        if not isinstance(document.value, list):
            self.mistakes.append(Mistake("a playbook is a list of plays", place=f"{path}:1"))
            return
        for k, raw in enumerate(document.value):
            imports = raw if isinstance(raw, Mapping) else {}
            name = next((imports[key] for key in _IMPORTS if key in imports), None)
            where = document.locate((k,))
            if isinstance(raw, Mapping) and name is None:
                self._play(raw, variables, document, k)
            elif isinstance(name, str) and "{{" not in name:
                own = imports.get("vars")
                brought = {**variables, **(own if isinstance(own, Mapping) else {})}
                self.file(path.parent / name, brought, (*around, path), where)
            else:
                text = "a play, or import_playbook with the name of a file, is expected"
                self.mistakes.append(Mistake(text, place=where))

    def _play(
        self, raw: Mapping[str, Any], variables: Mapping[str, Any], document: Document, k: int
    ) -> None:
        i, folder = len(self.plays), Path(document.source or "").parent
        self.places |= {(i,): (document, (k,)), (i, "play"): (document, (k,))}
        named = [role_name(entry) for entry in listed(raw.get("roles"))]
        left = [*filter(None, named), *_roles(json.dumps(raw))]
        roles: dict[str, Any] = {}
        for name in left:  # the list grows: roles depend on others
            if name in roles:
                continue
            found = _folder(name, folder)
            if found is None:
                text = f"role {name} is not beside the playbook: what its tasks need is not known"
                self.warnings.append(Mistake(text, place=document.locate((k,))))
                continue
            if found not in self._roles:
                self._roles[found] = _role(found)
            role = self._roles[found]
            left += role["roles"]
            roles[name] = {key: value for key, value in role.items() if key != "roles"}
        entry = {"play": raw, "roles": roles, "variables": variables}
        self.plays.append({key: value for key, value in entry.items() if value})


def _folder(name: str, folder: Path) -> Path | None:
    """Return the folder of a role, which is looked for beside a playbook and around it."""
    places = [place / "roles" / name for place in (folder, *folder.resolve().parents[:_AROUND])]
    return next((place for place in (*places, folder / name) if place.is_dir()), None)


def _role(folder: Path) -> dict[str, Any]:
    """Return the tasks of a role, its words, the variables they make, and the roles it needs."""
    words, makes, roles = set[str](), set[str](), dict[str, None]()
    for part in _PARTS:
        for file in sorted((folder / part).rglob("*")):
            if file.suffix not in _SUFFIXES or not file.is_file():
                continue
            text = file.read_text("utf-8", errors="replace")
            found, made = words_of(text)
            words |= found
            makes |= made
            roles |= dict.fromkeys(_roles(text))
    main = (folder / "tasks" / f"main{suffix}" for suffix in _SUFFIXES[:2])
    text = next((file.read_text("utf-8", errors="replace") for file in main if file.is_file()), "")
    return {
        "tasks": _TASK.findall(text),
        "words": sorted(words),
        "makes": sorted(makes),
        "roles": [*roles],
    }


def _roles(text: str) -> Iterator[str]:
    for by_task, as_dependency in _ROLE.findall(text):
        yield by_task or as_dependency
