"""Parameters of tasks as the action types have them, checked by the types' own schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.contract import Surroundings
from planner.errors import Mistake, Path, UnknownPlugin

#: How released task sets call what the action types have under another name.
NAMES = {
    "cmd": "command",
    "puppet_manifest": "manifest",
    "puppet_modules": "modules",
    "permissions": "mode",
}
#: They say something about the task, not to whoever runs it.
_ABOUT = ("strategy", "timeout", "retries", "fault_tolerance", "interval", "dir_permissions")


class Translated(NamedTuple):
    """Parameters under our names, and what stands beside them in an action."""

    values: Mapping[str, Any]
    timeout: Any
    retries: Any


def translated(raw: Mapping[str, Any]) -> Translated:
    """Read the parameters of a task; its own timeout and retries win over those inside.

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
    return Translated(values, timeout, retries)


class ParameterChecker:
    """Holds parameters against the schema of their type, once for each task."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._unknown: set[str] = set()
        self.mistakes: list[Mistake] = []
        self.notes: dict[str, None] = {}

    def __call__(self, action_type: str, values: Mapping[str, Any], path: Path) -> None:
        """Check the parameters of one task, as they are on some node."""
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
