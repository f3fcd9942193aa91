# SPDX-License-Identifier: Apache-2.0
"""Write files on a machine, if they differ from the wanted content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.contracts import Content, Machine
from planner.states import Outcome

#: Permissions of a new file if none are requested.
_NEW = 0o644


def mode_of(parameters: Mapping[str, Any]) -> int | None:
    """Return the parameter ``mode``, octal digits, as a number, or None if it is absent.

    >>> mode_of({"mode": "0640"}) == 0o640, mode_of({})
    (True, None)
    """
    mode = parameters.get("mode")
    return None if mode is None else int(mode, 8)


def is_same(found: Content | None, data: bytes, mode: int | None) -> bool:
    """Return whether a file has this content and mode; with None, any mode fits."""
    return found is not None and found.data == data and mode in (None, found.mode)


def put(machine: Machine, path: str, data: bytes, mode: int | None) -> Outcome:
    """Write ``data`` to a file unless the file is equal already; return CHANGED or OK.

    Without ``mode`` the file keeps its own.
    """
    found = machine.read(path)
    if is_same(found, data, mode):
        return Outcome.OK
    if mode is None:
        mode = _NEW if found is None else found.mode
    machine.write(path, data, mode)
    return Outcome.CHANGED
