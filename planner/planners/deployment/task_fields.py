# SPDX-License-Identifier: Apache-2.0
"""Normalises the fields of tasks: each of the accepted forms is read into the same type. Pure.

Parameters are translated into those of action types, and checked; the placeholders of Fuel's task
sets in them, such as ``{MASTER_IP}``, are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.contract import Surroundings
from planner.errors import Mistake, Path, UnknownPlugin
from planner.planners.deployment.problem import EVERY, NOWHERE, NodeSelector
from planner.planners.deployment.schema import FOREIGN, IGNORED, RUNNABLE
from planner.planners.number_options import at_least_one, finite
from planner.schemas import ranges


def names(value: Any) -> tuple[str, ...]:
    """Read a list of names; a single name becomes a list of one.

    >>> names("a"), names(["a", 2]), names(None)
    (('a',), ('a', '2'), ())
    """
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def where(value: Any) -> NodeSelector:
    """Read the role of a task: ``*``, ``master`` (also as the only entry of a list), or patterns.

    >>> where("*"), where(["master"]), where(["*", "b"])
    (NodeSelector(kind='every', patterns=()), NodeSelector(kind='master', patterns=()), \
NodeSelector(kind='patterns', patterns=('*', 'b')))
    """
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if value in ("*", "master"):
        return EVERY if value == "*" else NodeSelector("master")
    patterns = tuple(str(v) for v in ([value] if isinstance(value, str) else value or ()))
    return NodeSelector("patterns", patterns) if patterns else NOWHERE


def role_of(relation: Mapping[str, Any]) -> NodeSelector:
    """Read the nodes of a cross dependency: ``tags``, else ``role``, else every node.

    Null is the sync node, in either field, as in Fuel's serializer.

    >>> role_of({}), role_of({"role": None}), role_of({"role": "self"})
    (NodeSelector(kind='every', patterns=()), NodeSelector(kind='sync', patterns=()), \
NodeSelector(kind='self', patterns=()))
    >>> role_of({"role": "a", "tags": ["b"]})
    NodeSelector(kind='patterns', patterns=('b',))
    """
    if "tags" not in relation and "role" not in relation:
        return EVERY
    value = relation["tags"] if "tags" in relation else relation["role"]
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if value is None or value == "self":
        return NodeSelector("sync" if value is None else "self")
    return where(value)


def major(version: Any) -> int:
    """Return the major version of a task: 1 for null and 1.x, 2 for 2.x; raises ValueError.

    >>> [major(v) for v in (None, 1, "1.0.0", 2, 2.0, "2", "2.1.0")]
    [1, 1, 1, 2, 2, 2, 2]
    """
    found = re.fullmatch(r"([12])(\.[0-9]+)*", "1" if version is None else str(version).strip())
    if found is None or isinstance(version, bool):
        raise ValueError(f"version {version!r} is not supported: accepted are 1.x, 2.x and null")
    return int(found[1])


def strategy(value: Any) -> tuple[str, int | None]:
    """Read a strategy: its type, and the number of nodes at once (None: all); raises ValueError.

    >>> strategy({"type": "one-by-one"}), strategy({"type": "parallel", "amount": 6})
    (('one_by_one', 1), ('parallel', 6))
    """
    if not isinstance(value, Mapping) or not {*value} <= {"type", "amount"}:
        raise ValueError("a strategy is a mapping with 'type' and, for parallel, 'amount'")
    kind = str(value.get("type", "parallel")).replace("-", "_")
    if kind not in ("parallel", "one_by_one"):
        text = (
            f"{value.get('type')!r} is not a type of strategy: accepted are parallel and one-by-one"
        )
        raise ValueError(text)
    if kind == "one_by_one":
        return kind, 1
    if value.get("amount") is None:
        return kind, None
    try:
        return kind, at_least_one(value["amount"])
    except ValueError as reason:
        raise ValueError(f"amount: {reason}") from reason


def number(value: Any, *, whole: bool = False) -> float | None:
    """Read a number above 0, or, if ``whole``, an integer of 0 or more; raises ValueError.

    >>> number("180"), number(0, whole=True)
    (180, 0)
    """
    found = finite(value)
    if whole and (found < 0 or found != int(found)):
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    if not whole and found <= 0:
        raise ValueError(f"{value!r} is not more than 0")
    if found > ranges.MOST:
        raise ValueError(f"{value!r} is more than {ranges.MOST}")
    return found


def is_boolean(value: Any) -> bool:
    """Return whether a value is the text ``true`` or ``false``."""
    return isinstance(value, str) and value.strip().lower() in ("true", "false")


#: Maps parameter names of Fuel's task sets to those of the action types.
NAMES = {
    "cmd": "command",
    "puppet_manifest": "manifest",
    "puppet_modules": "modules",
    "permissions": "mode",
    "dir_permissions": "dir_mode",
}
#: The names that the document uses.
THEIRS = {ours: theirs for theirs, ours in NAMES.items()}
#: Parameters that belong to the task, and are not passed to the action.
_ABOUT = ("strategy", "timeout", "retries", "fault_tolerance")
#: Parameters of Fuel's task sets that nothing reads.
_UNREAD = ("interval", "fault_tolerance")
#: Types of tasks whose commands run in the folder ``cwd``. Of the others, Fuel ignores it too.
_IN_A_FOLDER = ("puppet", "shell", "master_shell", *FOREIGN)
#: Fields that are read of groups alone, and fields that are not read of groups.
_OF_GROUPS = ("tasks", "fault_tolerance")
_NOT_OF_GROUPS = ("cross-depends", "cross-depended-by", "condition")


def ignored(raw: Mapping[str, Any]) -> list[str]:
    """List the fields and parameters of a task that are read by nothing.

    >>> ignored({"type": "copy_files", "test_pre": {}, "parameters": {"cwd": "/", "files": []}})
    ['test_pre', 'cwd']
    """
    kind, parameters = raw["type"], raw.get("parameters") or {}
    unread = (*IGNORED, *(_NOT_OF_GROUPS if kind == "group" else _OF_GROUPS))
    found = [field for field in unread if raw.get(field) is not None]
    found += [field for field in ("tags", "role", "roles") if raw.get(field) is not None][1:]
    if kind not in RUNNABLE:
        read = ("strategy", "fault_tolerance") if kind == "group" else ("strategy",)
        return found + [name for name in parameters if name not in read]
    unread = _UNREAD if kind in _IN_A_FOLDER else ("cwd", *_UNREAD)
    return found + [name for name in parameters if name in unread]


def translated(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a task passes on, under the names that action types use.

    >>> given = {"puppet_modules": "/a:/b", "cmd": "x", "timeout": 5}
    >>> translated({"type": "shell", "parameters": given})
    {'modules': ['/a', '/b'], 'command': 'x'}
    """
    given = raw.get("parameters") or {}
    left_out = (*_ABOUT, *ignored(raw))
    values = {NAMES.get(k, k): v for k, v in given.items() if k not in left_out}
    if isinstance(values.get("modules"), str):
        values["modules"] = [path for path in values["modules"].split(":") if path]
    return values


class ParameterChecker:
    """Checks parameters against the schema of their action type."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._unknown: set[str] = set()
        self.mistakes: list[Mistake] = []
        self.notes: dict[str, None] = {}

    def offers(self, action_type: str) -> bool:
        """Return whether there is such an action type; also true where types are not checked."""
        around = self._surroundings
        return not around.check_types or around.type_of(action_type) is not None

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
            for mistake in around.check(action_type, {**values, "node": "1"}):
                first, *rest = mistake.path or ("",)
                inside = (THEIRS.get(str(first), first), *rest) if mistake.path else ()
                self.mistakes.append(Mistake(mistake.text, (*path, "parameters", *inside)))


#: What Fuel replaces, and where its settings have the value. Any other text between braces is left
#: as it is, unless the document has a value for it.
FUELS = {
    "CLUSTER_ID": ("cluster", "id"),
    "CN_HOSTNAME": ("public_ssl", "hostname"),
    "MASTER_IP": ("master_ip",),
    "OPENSTACK_VERSION": ("openstack_version",),
}


class Placeholders:
    """The values of placeholders: those of the document, else those in its settings."""

    def __init__(self, values: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        known = {name: _at(settings, place) for name, place in FUELS.items()}
        self._values = {k: v for k, v in known.items() if v is not None} | {**values}
        names = "|".join(map(re.escape, {**FUELS, **values}))
        self._pattern = re.compile(rf"(?<![${{])\{{({names})\}}")

    def replaced(self, value: Any, missing: Callable[[str], None]) -> Any:
        """Return a value with all placeholders in its texts replaced.

        One without a value is passed to ``missing``, and left. ``${NAME}``, of a shell, is none.

        >>> known = Placeholders({"A": 1}, {"cluster": {"id": 7}})
        >>> known.replaced(["x{A} {CLUSTER_ID}", "${A} {B}", "{MASTER_IP}"], print)
        MASTER_IP
        ['x1 7', '${A} {B}', '{MASTER_IP}']
        """
        if isinstance(value, Mapping):
            return {key: self.replaced(inner, missing) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.replaced(inner, missing) for inner in value]

        def known(found: re.Match[str]) -> str:
            if found[1] not in self._values:
                missing(found[1])
            return str(self._values.get(found[1], found[0]))

        return self._pattern.sub(known, value) if isinstance(value, str) else value


def _at(settings: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings if isinstance(settings, str | int | float) else None
