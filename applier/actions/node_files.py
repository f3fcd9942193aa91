# SPDX-License-Identifier: Apache-2.0
"""The action types that write files on a node, if they differ from the wanted content."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import node_action, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import Content, Machine, StopSignal, Verified
from applier.errors import ActionFailed
from planner.plan.states import Outcome

#: Permissions of a new file if none are requested.
_NEW = 0o644
#: The most characters of a file that is in a document; copy_files copies larger ones.
_MOST = 16 * 1024 * 1024
_FILE = {
    "type": "object",
    "required": ["src", "dst"],
    "additionalProperties": False,
    "properties": {
        "src": {**schemas.TEXT, "description": "path on this machine"},
        "dst": {**schemas.TEXT, "description": "path on the node"},
    },
}
_MODE: schemas.Schema = {
    "type": "string",
    "title": "permissions as octal digits",
    "pattern": "^0?[0-7]{3,4}$",
    "examples": ["0644"],
}
_FOLDER_MODE = {**_MODE, "title": "permissions of the file's folder, if it is made"}
#: Options of rsync: compare content and permissions, but not times; print a line for each change.
_RSYNC = ["rsync", "-rlpc", "--delete", "--itemize-changes", "--protect-args"]
_ITEM = re.compile(r"(\*deleting|[<>ch.][fdLDS]\S+) .+")
_CHANGED = str(Outcome.CHANGED)


class NodeFiles(node_action.NodeAction):
    """Writes files on a node; ok if all are right already.

    Each is replaced as a whole, and missing folders above it are made. It is read before it is
    written, so that running it again does no harm. No command runs on the node.
    """

    RERUN_SAFE = True

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:  # noqa: ARG003
        return ()

    @abstractmethod
    def _files(self) -> Iterator[tuple[str, bytes, int | None]]:
        """Yield path, content and permissions of each; None leaves them, and is 0644 if new."""

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:  # noqa: ARG002
        folder_mode = self._mode("dir_mode")
        written = [_put(machine, *file, folder_mode) for file in self._files()]
        return Outcome.CHANGED if any(written) else Outcome.OK

    def _look(self, machine: Machine) -> Verified:
        same = all(_is_same(machine.read(path), data, mode) for path, data, mode in self._files())
        return Verified.DONE if same else Verified.NOT_DONE

    def _mode(self, name: str = "mode") -> int | None:
        mode = self.parameters.get(name)
        return None if mode is None else int(mode, 8)


class UploadFile(NodeFiles):
    """Write ``data`` to a file and set its ``mode``; ok if both are right already.

    The file is replaced as a whole, and missing folders above it are made. Without ``mode`` it
    keeps its own, and a new file gets 0644.
    """

    TYPE, NEEDS = "upload_file", ("path", "data")
    SCHEMA: ClassVar[Mapping[str, Any]] = node_action.parameters(
        {"path": schemas.TEXT, "data": {"type": "string", "maxLength": _MOST}},
        {"mode": _MODE, "dir_mode": _FOLDER_MODE},
        {"path": "/etc/motd", "data": "node 3", "mode": "0644"},
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``write /etc/motd on node 3``, without the text."""
        path = one_line(text(parameters, "path") or "a file", 40)
        return node_action.described(f"write {path}", parameters)

    def _files(self) -> Iterator[tuple[str, bytes, int | None]]:
        yield self.parameters["path"], self.parameters["data"].encode(), self._mode()


class CopyFiles(NodeFiles):
    """Copy each ``src`` of this machine to ``dst`` on the node; ok if all are there already.

    Each file is replaced as a whole, and missing folders above it are made. Without ``mode`` each
    file gets the mode of its source. A ``dst`` that ends with a slash is a folder.
    """

    TYPE, NEEDS = "copy_files", ("files",)
    SCHEMA: ClassVar[Mapping[str, Any]] = node_action.parameters(
        {"files": {"type": "array", "items": _FILE, "minItems": 1}},
        {"mode": _MODE, "dir_mode": _FOLDER_MODE},
        {
            "files": [{"src": "/var/lib/keys/nova.pub", "dst": "/etc/nova/nova.pub"}],
            "mode": "0600",
        },
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        given = parameters.get("files")
        number = len(given) if isinstance(given, list | tuple) else 0
        what = f"copy {number} file{'' if number == 1 else 's'}" if number else "copy files"
        return node_action.described(what, parameters)

    def precheck(self) -> None:
        super().precheck()
        if not self.simulated(self.parameters):
            for _ in self._files():
                pass

    def _files(self) -> Iterator[tuple[str, bytes, int | None]]:
        here, mode = self._machine(None), self._mode()
        for file in self.parameters["files"]:
            found = here.read(file["src"])
            if found is None:
                raise ActionFailed(f"there is no file {file['src']} on this machine")
            name = os.path.basename(file["src"]) if file["dst"].endswith("/") else ""
            yield file["dst"] + name, found.data, found.mode if mode is None else mode


class Sync(node_action.NodeCommand):
    """Make ``dst`` on the node equal to ``src``; ok if it is already.

    ``src`` is a folder or file of this machine, or ``rsync://HOST/...``, which the node fetches
    itself. Files below the folder ``dst`` that are not below ``src`` are removed. The copy is made
    by rsync if both sides have it, else file by file over SFTP.
    """

    TYPE, NEEDS, RERUN_SAFE = "sync", ("src", "dst"), True
    SCHEMA: ClassVar[Mapping[str, Any]] = node_action.parameters(
        {
            "src": {**schemas.TEXT, "description": "on this machine, or rsync://"},
            "dst": {**schemas.TEXT, "description": "path on the node"},
        },
        {},
        {"src": "/var/lib/puppet/modules", "dst": "/etc/puppet/modules"},
    )

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        """Return the node and this machine, from which rsync copies."""
        found = super().runs_on(parameters)
        return found if None in found else (*found, *[None for _ in found])

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        path = one_line(text(parameters, "dst") or "", 40)
        return node_action.described(f"sync {path}".rstrip(), parameters)

    def precheck(self) -> None:
        super().precheck()
        if self.simulated(self.parameters) or self._is_fetched():
            return
        if not os.path.exists(self.parameters["src"]):
            raise ActionFailed(f"there is no {self.parameters['src']} on this machine")

    def _is_fetched(self) -> bool:
        return bool(self.parameters["src"].startswith("rsync://"))

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:
        src, dst = self.parameters["src"], self.parameters["dst"]
        if self._is_fetched():
            return self._rsync(machine, [], src, dst)
        if os.path.isdir(src):
            src, dst = src.rstrip("/") + "/", dst.rstrip("/") + "/"
        elif dst.endswith("/"):
            dst += os.path.basename(src)
        here = self._machine(None, stop)
        if all(map(shutil.which, ("rsync", "ssh"))) and self._has_rsync(machine):
            folder = posixpath.dirname(dst) or "."
            self._must(machine, ["mkdir", "-p", "--", folder])
            options, destination = machine.rsync(dst)
            return self._rsync(here, options, src, destination)
        return _copy(here, machine, src, dst)

    def _has_rsync(self, machine: Machine) -> bool:
        look = ["/bin/sh", "-c", "command -v rsync"]
        return node_action.run(machine, look, "rsync", output=lambda _: None).code == 0

    def _must(self, machine: Machine, program: Sequence[str]) -> None:
        name = shlex.join(program)
        ended = node_action.run(machine, program, name, output=self.context.output)
        if ended.code != 0:
            raise node_action.failure(name, ended)

    def _rsync(self, machine: Machine, options: Sequence[str], src: str, dst: str) -> Outcome:
        lines = node_action.LineMatcher({_CHANGED: _ITEM}, self.context.output)
        program = [*_RSYNC, *options, "--", src, dst]
        name = one_line(shlex.join(["rsync", src, dst]), node_action.SHOWN)
        self._ended = ended = node_action.run(machine, program, name, output=lines)
        lines.close()
        if ended.code != 0 or ended.why is not None:
            raise node_action.failure(name, ended)
        return Outcome.CHANGED if lines.found else Outcome.OK


def _copy(here: Machine, there: Machine, src: str, dst: str) -> Outcome:
    """Copy file by file, as rsync would; empty folders are neither made nor removed."""
    if not src.endswith("/"):
        found = here.read(src)
        if found is None:
            raise ActionFailed(f"there is no {src} on this machine")
        return Outcome.CHANGED if _put(there, dst, *found) else Outcome.OK
    wanted, done = here.files(src), Outcome.OK
    for path in wanted:
        if os.path.islink(src + path):
            raise ActionFailed(f"{src}{path} is a link: without rsync only files are copied")
        found = here.read(src + path)
        if found is not None and _put(there, dst + path, *found):
            done = Outcome.CHANGED
    for path in sorted(set(there.files(dst)) - set(wanted)):
        there.remove(dst + path)
        done = Outcome.CHANGED
    return done


def _is_same(found: Content | None, data: bytes, mode: int | None) -> bool:
    """Return whether a file has this content and mode; with None, any mode fits."""
    return found is not None and found.data == data and mode in (None, found.mode)


def _put(
    machine: Machine, path: str, data: bytes, mode: int | None, folder_mode: int | None = None
) -> bool:
    """Write a file unless it is equal already; return whether it was written."""
    found = machine.read(path)
    if _is_same(found, data, mode):
        return False
    if mode is None:
        mode = _NEW if found is None else found.mode
    machine.write(path, data, mode, folder_mode)
    return True
