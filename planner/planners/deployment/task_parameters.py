# SPDX-License-Identifier: Apache-2.0
"""Translates the parameters of tasks into those of action types, and checks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.contract import Surroundings
from planner.errors import Mistake, Path, UnknownPlugin

#: Maps parameter names of Fuel's task sets to those of the action types.
NAMES = {
    "cmd": "command",
    "puppet_manifest": "manifest",
    "puppet_modules": "modules",
    "permissions": "mode",
}
#: Parameters that belong to the task, and are not passed to the action.
_ABOUT = ("strategy", "timeout", "retries", "fault_tolerance", "interval", "dir_permissions")


class TranslatedParameters(NamedTuple):
    """Parameters under the names that action types use; timeout and retries are separate fields."""

    values: Mapping[str, Any]
    timeout: Any
    retries: Any


def translated(raw: Mapping[str, Any]) -> TranslatedParameters:
    """Translate the parameters of a task; timeout and retries of the task itself take precedence.

    >>> translated({"parameters": {"puppet_modules": "/a:/b", "cmd": "x", "timeout": 5}}).values
    {'modules': ['/a', '/b'], 'command': 'x'}
    """
    given = raw.get("parameters") or {}
    values = {NAMES.get(k, k): v for k, v in given.items() if k not in _ABOUT}
    if isinstance(values.get("modules"), str):
        values["modules"] = [path for path in values["modules"].split(":") if path]
    timeout, retries = (
        given.get(key) if raw.get(key) is None else raw[key] for key in ("timeout", "retries")
    )
    return TranslatedParameters(values, timeout, retries)


class ParameterChecker:
    """Checks parameters against the schema of their action type."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._unknown: set[str] = set()
        self.mistakes: list[Mistake] = []
        self.notes: dict[str, None] = {}

    def __call__(self, action_type: str, values: Mapping[str, Any], path: Path) -> None:
        """Check the translated parameters of a task, and append mistakes and notes.

        ``path`` is the path of the task. The mistakes have the names that the document uses.
        """
        around = self._surroundings
        try:
            if action_type not in self._unknown:
                around.action_type(action_type)
        except UnknownPlugin as unknown:
            self._unknown.add(action_type)
            if around.check_types:
                self.mistakes.append(Mistake(str(unknown), (*path, "type")))
        if not around.check_types:
            what = "no plugin offers it, and its" if action_type in self._unknown else "its"
            self.notes[f"action type {action_type!r}: {what} parameters were not checked"] = None
        elif action_type not in self._unknown:
            back = {ours: theirs for theirs, ours in NAMES.items()}
            for mistake in around.check(action_type, {**values, "node": "1"}):
                first, *rest = mistake.path or ("",)
                inside = (back.get(str(first), first), *rest) if mistake.path else ()
                self.mistakes.append(Mistake(mistake.text, (*path, "parameters", *inside)))
