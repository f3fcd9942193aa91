# SPDX-License-Identifier: Apache-2.0
"""The host, the user and the claimant of this process, as they are recorded in the store."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from applier.contracts import Claimant

#: The namespace of process numbers in which Linux starts; all others belong to containers.
_FIRST_NAMESPACE = "pid:[4026531836]"


def this_host() -> str:
    """Return the name of this host for claims; in a container, followed by the pid namespace.

    Containers may share the name of their host, but each has process numbers of its own.
    """
    host = socket.gethostname()
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return host
    return host if namespace == _FIRST_NAMESPACE else f"{host} {namespace}"


def user() -> str:
    """Return the login name of the user of this process; the user's number if it has no name.

    No environment variable can change it.
    """
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def claimant(jobs: Path | None = None) -> Claimant:
    """Return the claimant as which this process runs plans; ``jobs`` is the folder of its jobs."""
    from applier.contracts import Claimant

    folder = None if jobs is None else str(jobs)
    return Claimant(host=this_host(), pid=os.getpid(), user=user(), jobs=folder)
