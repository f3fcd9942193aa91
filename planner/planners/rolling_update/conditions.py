# SPDX-License-Identifier: Apache-2.0
"""Evaluates values of templates, and conditions: named ones, and functions that they consist of.

Each value of a hidden parameter is replaced by a placeholder: decision 0034 describes what a plan
tells of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from planner.errors import Mistake, Path, accepted

#: With this begins a placeholder of a hidden parameter.
HIDDEN = "${NoEcho "
#: Replaces a value that cannot be evaluated; the reason is among the mistakes.
UNRESOLVED: Final = object()
#: The value of ``AWS::NoValue``, and of ``if`` without a second value: its field is left out.
NO_VALUE: Final = object()


class Unresolved(Exception):
    """A value that a function needs cannot be evaluated, of which a mistake tells already."""


def known(value: Any) -> Any:
    """Return a value; raises Unresolved if it is UNRESOLVED, or has it inside."""
    if value is UNRESOLVED:
        raise Unresolved
    if isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            known(inner)
    return value


#: The names of Heat's functions, including those that are not evaluated here.
_HEAT = frozenset(
    (
        *("and", "any", "contains", "digest", "equals", "filter", "if", "not", "or", "repeat"),
        *("get_attr", "get_file", "get_param", "get_resource", "list_concat", "list_join"),
        *("list_concat_unique", "make_url", "map_merge", "map_replace", "resource_facade"),
        *("str_replace", "str_replace_strict", "str_replace_vstrict", "str_split", "yaql"),
    )
)


def section(template: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section of a template, in Heat's form in lower case; empty if it is no mapping."""
    found = template.get(name, template.get(name.lower()))
    return found if isinstance(found, Mapping) else {}


class TemplateValues:
    """Evaluates the values of one template, and appends mistakes to ``mistakes``.

    ``root`` is the path of the template in the document. Each value of a ``hidden`` parameter is
    replaced by a placeholder. A subclass has the ``functions`` by name.
    """

    functions: Mapping[str, Callable[[Any, Any, Path], Any]]

    def __init__(self, template: Mapping[str, Any], root: Path, hidden: Collection[str]) -> None:
        self.mistakes: list[Mistake] = []
        self.root = root
        self.heat = "heat_template_version" in template
        self.conditions = section(template, "Conditions")
        self._hidden = hidden
        self._deciding: list[str] = []

    def wrong(self, text: str, path: Path) -> Any:
        """Append a mistake; return UNRESOLVED in place of the value."""
        self.mistakes.append(Mistake(text, (*self.root, *path)))
        return UNRESOLVED

    def revealed(self, node: Any, path: Path) -> Any:
        """Return a value with those of hidden parameters, to compare it and for nothing else."""
        hidden, self._hidden = self._hidden, ()
        try:
            return self.value(node, path)
        finally:
            self._hidden = hidden

    def value(self, node: Any, path: Path) -> Any:
        """Return a value with all functions inside it evaluated.

        A function that cannot be evaluated is replaced by UNRESOLVED, and a mistake is appended.
        """
        if isinstance(node, Mapping):
            name = next((key for key in node if self._is_function(key, len(node))), None)
            if name is None:
                values = {key: self.value(inner, (*path, key)) for key, inner in node.items()}
                return {key: value for key, value in values.items() if value is not NO_VALUE}
            if len(node) > 1:
                return self.wrong(f"{name} stands alone in its mapping, or not at all", path)
            return self._call(name, node[name], (*path, name))
        if isinstance(node, list):
            found = (self.value(inner, (*path, i)) for i, inner in enumerate(node))
            return [value for value in found if value is not NO_VALUE]
        return node

    def _is_function(self, name: Any, among: int) -> bool:
        if not isinstance(name, str):
            return False
        if name.startswith("Fn::"):
            return True
        return among == 1 and (name in ("Ref", "Condition") or (self.heat and name in _HEAT))

    def _call(self, name: str, argument: Any, path: Path) -> Any:
        function = self.functions.get(name)
        if function is None:
            return self.wrong(f"no function {name!r}; {accepted(name, self.functions)}", path)
        try:
            return function(self, argument, path)
        except Unresolved:
            return UNRESOLVED

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
        try:
            found = known(self.value(node, path)) if isinstance(node, Mapping) else node
        except Unresolved:
            return UNRESOLVED
        if plain_text(found) not in ("true", "false", "True", "False"):
            text = f"no condition {found!r}; {accepted(str(found), self.conditions)}"
            return self.wrong(text, path)
        return plain_text(found) in ("true", "True")

    def chosen(self, argument: Any, path: Path) -> Any:
        """Return the value of ``if``: that of the branch that its condition chooses."""
        shortest = 2 if self.heat else 3
        if not (isinstance(argument, list) and shortest <= len(argument) <= 3):
            return self.wrong("[CONDITION, VALUE, VALUE] is expected", path)
        taken = 1 if known(self.decided(argument[0], (*path, 0))) else 2
        return self.value(argument[taken], (*path, taken)) if taken < len(argument) else NO_VALUE

    def negated(self, argument: Any, path: Path) -> Any:
        """Return the value of ``not``."""
        node = argument[0] if isinstance(argument, list) and len(argument) == 1 else argument
        return not known(self.decided(node, path))

    def all_or_any(self, argument: Any, path: Path) -> Any:
        """Return the value of ``and`` or ``or``, whichever is last in ``path``."""
        if not isinstance(argument, list) or not argument:
            return self.wrong("a list of conditions is expected", path)
        found = [self.decided(node, (*path, i)) for i, node in enumerate(argument)]
        decided = [known(one) for one in found]
        return all(decided) if str(path[-1]).lower().endswith("and") else any(decided)

    def equals(self, argument: Any, path: Path) -> Any:
        """Return the value of ``equals``; a number equals its text."""
        given = self.arguments(argument, path, "[VALUE, VALUE]", 2)
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
        """Return the evaluated arguments of a function; raises Unresolved."""
        is_list = isinstance(argument, list) and len(argument) == number
        found = self.value(argument, path) if is_list else []
        if len(found) < number:
            return known(self.wrong(f"{form} is expected", path))
        return [known(part) for part in found]


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


_SHOWN = frozenset({"false", "f", "no", "n", "off", "0", "none"})


def hidden_parameters(*templates: Mapping[str, Any]) -> set[str]:
    """Return the names of parameters that are marked ``NoEcho`` or, in Heat's form, ``hidden``.

    A parameter counts if any of the templates marks it.

    >>> declared = {"Password": {"NoEcho": "true"}, "Image": {"NoEcho": False}}
    >>> hidden_parameters({"Parameters": declared})
    {'Password'}
    """
    sections = [t.get(key) for t in templates for key in ("Parameters", "parameters")]
    return {
        name
        for section in sections
        if isinstance(section, Mapping)
        for name, declared in section.items()
        if isinstance(declared, Mapping)
        and any(str(declared.get(k, False)).lower() not in _SHOWN for k in ("NoEcho", "hidden"))
    }


def placeholder(name: str, value: Any) -> Any:
    """Return a placeholder for a value; in a list or mapping, replace each value inside.

    Equal values of a parameter have equal placeholders, different ones different placeholders. A
    number is equal to its text, as in Heat.

    >>> placeholder("Password", "s3cret"), placeholder("Ports", [80, "80"])
    ('${NoEcho Password f32e224b}', ['${NoEcho Ports 14fdf495}', '${NoEcho Ports 14fdf495}'])
    """
    if isinstance(value, Mapping):
        return {key: placeholder(name, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [placeholder(name, inner) for inner in value]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{HIDDEN}{name} {_digest(name, text)}}}"


@lru_cache(maxsize=1000)
def _digest(name: str, text: str) -> str:
    """Return eight hex digits of a slow hash: it makes guessing a password from them slow."""
    key = hashlib.scrypt(text.encode(), salt=name.encode(), n=2**14, r=8, p=1, dklen=4)
    return key.hex()
