"""Files on a machine: written only where they are not as they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.contracts import Content, Machine
from planner.states import Outcome

#: Permissions of a new file of which nothing is said.
_NEW = 0o644


def mode_of(parameters: Mapping[str, Any]) -> int | None:
    """Give the parameter ``mode``, octal digits, as a number.

    >>> mode_of({"mode": "0640"}) == 0o640, mode_of({})
    (True, None)
    """
    mode = parameters.get("mode")
    return None if mode is None else int(mode, 8)


def is_same(found: Content | None, data: bytes, mode: int | None) -> bool:
    """Say whether a file is as it should be; a mode that is not told does not matter."""
    return found is not None and found.data == data and mode in (None, found.mode)


def put(machine: Machine, path: str, data: bytes, mode: int | None) -> Outcome:
    """Make a file hold ``data``; says whether anything had to change."""
    found = machine.read(path)
    if is_same(found, data, mode):
        return Outcome.OK
    if mode is None:
        mode = _NEW if found is None else found.mode
    machine.write(path, data, mode)
    return Outcome.CHANGED
