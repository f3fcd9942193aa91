# SPDX-License-Identifier: Apache-2.0
"""Network namespaces that stand for machines, each with one cable, which can be pulled.

The campaign itself goes into a namespace first, so that nothing of this is seen outside, and all of
it is gone at its end. Only root may make them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

#: Set for the campaign once it is in a namespace of its own.
INSIDE = "ACTIONPLAN_CAMPAIGN_INSIDE"


class Missing(Exception):
    """No namespaces can be made here."""


def go_inside() -> None:
    """Begin this program anew in a network namespace, unless it is in one. Raises Missing."""
    if os.environ.get(INSIDE) != str(os.getpid()):
        _try("unshare", "--net", "ip", "link", "add", "left", "type", "veth", "peer", "name", "r")
        unshare = _program("unshare")
        # The process keeps its number.
        environment = {**os.environ, INSIDE: str(os.getpid())}
        command = [unshare, "--net", sys.executable, *sys.argv]
        os.execve(unshare, command, environment)  # noqa: S606
    _try("ip", "link", "set", "lo", "up")


class Cable:
    """A cable from here to a new namespace; ``here`` is the address of its near end."""

    def __init__(self, number: int) -> None:
        self.here, there = f"10.77.{number}.1", f"10.77.{number}.2"
        self._name = f"cable{number}"
        # It ends with this process, whatever ends that.
        self._holder = subprocess.Popen(
            [_program("unshare"), "--net", "cat"], stdin=subprocess.PIPE
        )
        own, its = (Path(f"/proc/{pid}/ns/net") for pid in ("self", self._holder.pid))
        while os.readlink(own) == os.readlink(its):
            time.sleep(0.01)
        #: The words before a program that is to run at the far end.
        self.before = (_program("nsenter"), f"--net={its}")
        far = ("type", "veth", "peer", "name", "eth0", "netns", str(self._holder.pid))
        _try("ip", "link", "add", self._name, *far)
        for before, device, address in (((), self._name, self.here), (self.before, "eth0", there)):
            _try(*before, "ip", "address", "add", f"{address}/30", "dev", device)
            _try(*before, "ip", "link", "set", device, "up")
        _try(*self.before, "ip", "link", "set", "lo", "up")

    def pull(self) -> None:
        """Let nothing through, without a word to either end."""
        _try("ip", "link", "set", self._name, "down")

    def plug_in(self) -> None:
        """Let everything through again."""
        _try("ip", "link", "set", self._name, "up")

    def end(self) -> None:
        """Give the namespace up."""
        self._holder.kill()
        self._holder.communicate()


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Missing(f"there is no program {name}")
    return found


def _try(name: str, *words: str) -> None:
    """Run a program; raise Missing with its words if it fails."""
    command = [_program(name), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing(f"{' '.join((name, *words))}: {ended.stderr.strip()}")
