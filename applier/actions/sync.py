# SPDX-License-Identifier: Apache-2.0
"""Copy a folder to a node, and remove the files there that the source does not have."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import commands, machine_files, nodes, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, Ended, Machine, StopSignal, Verified
from applier.errors import ActionFailed
from planner.states import Outcome

#: Options of rsync: compare content and permissions, but not times; print a line for each change.
_RSYNC = ["rsync", "-rlpc", "--delete", "--itemize-changes", "--protect-args"]
_ITEM = re.compile(r"(\*deleting|[<>ch.][fdLDS]\S+) .+")
_CHANGED = str(Outcome.CHANGED)


class Sync(ActionPlugin):
    """Make ``dst`` on the node equal to ``src``; ok if it is already.

    ``src`` is a folder or file of this machine, or ``rsync://HOST/...``, which the node fetches
    itself. Files below the folder ``dst`` that are not below ``src`` are removed. The copy is made
    by rsync if both sides have it, else file by file over SFTP.
    """

    TYPE = "sync"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {
            "src": {**schemas.TEXT, "description": "on this machine, or rsync://"},
            "dst": {**schemas.TEXT, "description": "path on the node"},
        },
        {},
        {"src": "/var/lib/puppet/modules", "dst": "/etc/puppet/modules"},
    )

    _ended: Ended | None = None

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        """Return the node and this machine, from which rsync copies."""
        found = nodes.runs_on(parameters)
        return found if None in found else (*found, *[None for _ in found])

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``sync /etc/puppet/modules on node 3``."""
        path = one_line(text(parameters, "dst") or "", 40)
        return nodes.described(f"sync {path}".rstrip(), parameters)

    def precheck(self) -> None:
        """Raise ActionFailed if a parameter or the source is missing."""
        nodes.check(self, "src", "dst")
        if nodes.is_simulated(self.parameters) or self._is_fetched():
            return
        if not os.path.exists(self.parameters["src"]):
            raise ActionFailed(f"there is no {self.parameters['src']} on this machine")

    def execute(self, stop: StopSignal) -> Outcome:
        """Copy and remove the files that differ."""
        return nodes.perform(self, lambda machine: self._sync(machine, stop), stop)

    def verify(self) -> Verified:
        """Return NOT_DONE if rsync has ended in this attempt or is simulated, else IN_DOUBT."""
        return commands.verified(self.parameters, self._ended)

    def _is_fetched(self) -> bool:
        return bool(self.parameters["src"].startswith("rsync://"))

    def _sync(self, machine: Machine, stop: StopSignal) -> Outcome:
        src, dst = self.parameters["src"], self.parameters["dst"]
        if self._is_fetched():
            return self._rsync(machine, [], src, dst)
        if os.path.isdir(src):
            src, dst = src.rstrip("/") + "/", dst.rstrip("/") + "/"
        elif dst.endswith("/"):
            dst += os.path.basename(src)
        machines = self.context.machines or nodes.OWN
        here = machines.machine(None, stop)
        if all(map(shutil.which, ("rsync", "ssh"))) and self._has_rsync(machine):
            folder = posixpath.dirname(dst) or "."
            self._must(machine, ["mkdir", "-p", "--", folder])
            options, destination = machine.rsync(dst)
            return self._rsync(here, options, src, destination)
        return _copy(here, machine, src, dst)

    def _has_rsync(self, machine: Machine) -> bool:
        look = ["/bin/sh", "-c", "command -v rsync"]
        return commands.run(machine, look, "rsync", output=lambda _: None).code == 0

    def _must(self, machine: Machine, program: Sequence[str]) -> None:
        name = shlex.join(program)
        ended = commands.run(machine, program, name, output=self.context.output)
        if ended.code != 0:
            raise commands.failure(name, ended)

    def _rsync(self, machine: Machine, options: Sequence[str], src: str, dst: str) -> Outcome:
        lines = commands.LineMatcher({_CHANGED: _ITEM}, self.context.output)
        program = [*_RSYNC, *options, "--", src, dst]
        name = one_line(shlex.join(["rsync", src, dst]), commands.SHOWN)
        self._ended = ended = commands.run(machine, program, name, output=lines)
        lines.close()
        if ended.code != 0 or ended.why is not None:
            raise commands.failure(name, ended)
        return Outcome.CHANGED if lines.found else Outcome.OK


def _copy(here: Machine, there: Machine, src: str, dst: str) -> Outcome:
    """Copy file by file, as rsync would; empty folders are neither made nor removed."""
    if not src.endswith("/"):
        found = here.read(src)
        if found is None:
            raise ActionFailed(f"there is no {src} on this machine")
        return machine_files.put(there, dst, *found)
    wanted, done = here.files(src), Outcome.OK
    for path in wanted:
        if os.path.islink(src + path):
            raise ActionFailed(f"{src}{path} is a link: without rsync only files are copied")
        found = here.read(src + path)
        if found is not None and machine_files.put(there, dst + path, *found) is Outcome.CHANGED:
            done = Outcome.CHANGED
    for path in sorted(set(there.files(dst)) - set(wanted)):
        there.remove(dst + path)
        done = Outcome.CHANGED
    return done
