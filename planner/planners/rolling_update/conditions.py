# SPDX-License-Identifier: Apache-2.0
"""Evaluates the conditions of templates: named ones, and the functions that they consist of."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from planner.errors import Path, accepted
from planner.planners.rolling_update.hidden_parameters import HIDDEN

#: Replaces a value that cannot be evaluated; the reason is among the mistakes.
UNRESOLVED: Final = object()
#: The value of ``AWS::NoValue``, and of ``if`` without a second value: its field is left out.
NO_VALUE: Final = object()


class Conditions(ABC):
    """What decides conditions; ``named`` are those of the template by name."""

    def __init__(self, named: Mapping[str, Any], *, heat: bool) -> None:
        self.conditions, self.heat = named, heat
        self._deciding: list[str] = []

    @abstractmethod
    def value(self, node: Any, path: Path) -> Any:
        """Return a value with all functions inside it evaluated."""

    @abstractmethod
    def revealed(self, node: Any, path: Path) -> Any:
        """Return a value with those of hidden parameters, to compare it and for nothing else."""

    @abstractmethod
    def wrong(self, text: str, path: Path) -> Any:
        """Append a mistake; return UNRESOLVED in place of the value."""

    def holds(self, name: Any, path: Path) -> bool:
        """Return whether a condition is true, given by its name or as a function.

        For one that cannot be decided, a mistake is appended and False returned.
        """
        return self.decided(name, path) is True

    def decided(self, node: Any, path: Path) -> Any:
        """Return True, False, or UNRESOLVED with a mistake."""
        if isinstance(node, str) and node in self.conditions:
            if node in self._deciding:
                return self.wrong(f"condition {node!r} refers to itself", path)
            self._deciding.append(node)
            key = "conditions" if self.heat else "Conditions"
            found = self.decided(self.conditions[node], (key, node))
            self._deciding.pop()
            return found
        found = self.value(node, path) if isinstance(node, Mapping) else node
        if found is UNRESOLVED:
            return found
        if plain_text(found) not in ("true", "false", "True", "False"):
            text = f"no condition {found!r}; {accepted(str(found), self.conditions)}"
            return self.wrong(text, path)
        return plain_text(found) in ("true", "True")

    def chosen(self, argument: Any, path: Path) -> Any:
        """Return the value of ``if``: that of the branch that its condition chooses."""
        shortest = 2 if self.heat else 3
        if not (isinstance(argument, list) and shortest <= len(argument) <= 3):
            return self.wrong("[CONDITION, VALUE, VALUE] is expected", path)
        decided = self.decided(argument[0], (*path, 0))
        if decided is UNRESOLVED:
            return UNRESOLVED
        taken = 1 if decided else 2
        return self.value(argument[taken], (*path, taken)) if taken < len(argument) else NO_VALUE

    def negated(self, argument: Any, path: Path) -> Any:
        """Return the value of ``not``."""
        node = argument[0] if isinstance(argument, list) and len(argument) == 1 else argument
        decided = self.decided(node, path)
        return UNRESOLVED if decided is UNRESOLVED else not decided

    def all_or_any(self, argument: Any, path: Path) -> Any:
        """Return the value of ``and`` or ``or``, whichever is last in ``path``."""
        if not isinstance(argument, list) or not argument:
            return self.wrong("a list of conditions is expected", path)
        decided = [self.decided(node, (*path, i)) for i, node in enumerate(argument)]
        if any(one is UNRESOLVED for one in decided):
            return UNRESOLVED
        return all(decided) if str(path[-1]).lower().endswith("and") else any(decided)

    def equals(self, argument: Any, path: Path) -> Any:
        """Return the value of ``equals``; a number equals its text."""
        given = self.arguments(argument, path, "[VALUE, VALUE]", 2)
        if given is UNRESOLVED:
            return UNRESOLVED
        shown = " ".join(str(comparable(value)) for value in given)
        if HIDDEN in shown:
            given = self.revealed(argument, path)
        one, other = map(comparable, given)
        if one == other:
            return True
        if unknown := re.search(rf"(?!{re.escape(HIDDEN)})\$\{{[^}}]*\}}", shown):
            text = f"only the cloud knows {unknown[0]}: leave out what does not apply"
            name = unknown[0][2:-1]
            if name.startswith(("AWS::", "OS::")):
                text = f"only the cloud knows {name}: set its value in 'parameters'"
            return self.wrong(text, path)
        return False

    def arguments(self, argument: Any, path: Path, form: str, number: int) -> Any:
        """Return the evaluated arguments of a function, or UNRESOLVED."""
        if not (isinstance(argument, list) and len(argument) == number):
            return self.wrong(f"{form} is expected", path)
        found = self.value(argument, path)
        if len(found) < number:
            return self.wrong(f"{form} is expected", path)
        return UNRESOLVED if any(part is UNRESOLVED for part in found) else found


def as_text(value: Any) -> str:
    """Return a value as a text, as Heat writes it: a list or mapping as JSON, None as nothing.

    >>> as_text([1, "a"]), as_text(None), as_text(True), as_text(2)
    ('[1, "a"]', '', 'true', '2')
    """
    written = plain_text(value)
    return (
        ("" if value is None else json.dumps(value, sort_keys=True, default=str))
        if written is None
        else written
    )


def plain_text(value: Any) -> str | None:
    """Return a text, number or boolean as a text; None for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def comparable(value: Any) -> Any:
    """Return a value for a comparison as in Heat, where a number or boolean is equal to its text.

    >>> comparable(1) == comparable("1"), comparable(True) == comparable("true")
    (True, True)
    """
    written = plain_text(value)
    return value if written is None else written
