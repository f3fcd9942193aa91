# SPDX-License-Identifier: Apache-2.0
"""References: to secret values in parameters, and to definitions in schemas.

A reference to a secret is a mapping in place of a text: ``{secret: env NAME}`` or
``{secret: file /PATH}``. It is part of the plan. Only the applier reads the value, right before the
action runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import Path

KEY = "secret"
_PATTERN = r"^(env [A-Za-z_][A-Za-z0-9_]*|file /[^\x00-\x1f]+)$"
#: The JSON Schema of a reference.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": [KEY],
    "additionalProperties": False,
    "properties": {
        KEY: {
            "type": "string",
            "title": "a reference to a secret: env NAME, or file /PATH",
            "pattern": _PATTERN,
            # A message does not repeat what may be the secret itself.
            "writeOnly": True,
        }
    },
}
#: Shown in place of a hidden value. It is no reference, so a copy with it is refused as a plan.
HIDDEN: Mapping[str, str] = {KEY: "hidden"}
#: The keyword of JSON Schema for a secret: see :mod:`planner.schemas.write_only`.
MARK = "writeOnly"
#: Keywords of JSON Schema that hold one schema, several by name, and several in a list. ``not`` and
#: ``if`` are left out, because a value that they accept may still be wrong.
_ONE = (
    *("additionalProperties", "items", "then", "else", "contains"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def reference(value: object) -> str | None:
    """Return the text of a reference, None for any other value.

    >>> reference({"secret": "env DB_PASSWORD"}), reference({"secret": "swordfish"})
    ('env DB_PASSWORD', None)
    """
    if not isinstance(value, Mapping) or len(value) != 1 or KEY not in value:
        return None
    text = value[KEY]
    return text if isinstance(text, str) and re.fullmatch(_PATTERN[1:-1], text) else None


def label(text: str) -> str:
    """Return a reference as one word, for descriptions and messages.

    >>> label("env DB_PASSWORD")
    'secret:env:DB_PASSWORD'
    """
    return f"{KEY}:{text.replace(' ', ':', 1)}"


def replaced(value: Any, make: Callable[[Path, str], Any]) -> Any:
    """Return a value in which ``make(path, text)`` stands in place of each reference.

    A value without references is returned itself, not a copy.

    >>> replaced({"argv": ["a", {"secret": "env B"}]}, lambda path, text: (path, text))
    {'argv': ['a', (('argv', 1), 'env B')]}
    """
    return _replaced(value, make, ()) if has_reference(value) else value


def has_reference(value: Any) -> bool:
    """Return whether a value is a reference, or holds one at any depth.

    >>> has_reference({"argv": ["a", {"secret": "env B"}]}), has_reference({"secret": 1})
    (True, False)
    """
    if isinstance(value, str):
        return False
    if isinstance(value, Mapping):
        return reference(value) is not None or any(map(has_reference, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_reference, value))


def _replaced(value: Any, make: Callable[[Path, str], Any], path: Path) -> Any:
    if isinstance(value, Mapping):
        text = reference(value)
        if text is not None:
            return make(path, text)
        return {k: _replaced(v, make, (*path, k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(v, make, (*path, i)) for i, v in enumerate(value)]
    return value


def places(value: Any) -> list[Path]:
    """List the paths of all references in a value."""
    found: list[Path] = []
    replaced(value, lambda path, _: found.append(path))
    return found


def labelled(value: Any) -> Any:
    """Return a value with labels in place of references, and ``(hidden)`` in place of HIDDEN."""
    if value == HIDDEN:
        return "(hidden)"
    if isinstance(value, Mapping) and reference(value) is None:
        return {k: labelled(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [labelled(v) for v in value]
    return replaced(value, lambda _, text: label(text))


def accepting(schema: Any) -> Any:
    """Return a schema that accepts a reference wherever the given one accepts a text.

    The schemas inside a schema with ``writeOnly`` are marked, too, so that messages omit their
    values.
    """
    if not isinstance(schema, Mapping):
        return schema
    found = {keyword: _changed(keyword, held, schema) for keyword, held in schema.items()}
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list | tuple) else [kinds]
    if "string" not in kinds or "object" in kinds:
        return found
    return {"if": {"type": "object", "required": [KEY]}, "then": SCHEMA, "else": found}


def _changed(keyword: str, held: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value of a keyword of a schema, with each schema in it changed by accepting()."""
    if keyword in _ONE:
        return accepting(_with_mark(held, schema))
    if keyword in _NAMED and isinstance(held, Mapping):
        return {name: accepting(_with_mark(part, schema)) for name, part in held.items()}
    if keyword in _LISTED and isinstance(held, list | tuple):
        return [accepting(_with_mark(part, schema)) for part in held]
    return held


def has_keyword(schema: Any, *keywords: str) -> bool:
    """Return whether one of these keywords is anywhere in a schema.

    >>> has_keyword({"properties": {"a": {"writeOnly": True}}}, "writeOnly", "$ref")
    True
    """
    wanted, parts = frozenset(keywords), [schema]
    for part in parts:  # the list grows meanwhile
        if isinstance(part, Mapping):
            if not wanted.isdisjoint(part):
                return True
            parts += part.values()
        elif isinstance(part, list | tuple):
            parts += part
    return False


def has_hidden(value: Any) -> bool:
    """Return whether HIDDEN is in a value."""
    if isinstance(value, Mapping):
        return value == HIDDEN or any(map(has_hidden, value.values()))
    return isinstance(value, list | tuple) and any(map(has_hidden, value))


def _with_mark(part: Any, schema: Mapping[str, Any]) -> Any:
    marked = schema.get(MARK) is True and isinstance(part, Mapping)
    return {**part, MARK: True} if marked else part


#: The keywords of JSON Schema that refer to another schema.
_REFERRING = ("$ref", "$dynamicRef")
_DEFINITIONS = "$defs"
_LOCAL = f"#/{_DEFINITIONS}/"


def in_place(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its definitions in place of references; one without any, itself.

    Raises ValueError for a reference that leads to no definition, or to one that it is in.

    >>> in_place({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}})
    {'items': {'type': 'string'}}
    """
    if not has_keyword(schema, *_REFERRING):
        return schema
    without = {k: v for k, v in schema.items() if k not in (_DEFINITIONS, "$id")}
    found: Mapping[str, Any] = _without_references(without, schema.get(_DEFINITIONS) or {}, ())
    return found


def _without_references(part: Any, defined: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a part of a schema with its references replaced; ``within`` names definitions."""
    if isinstance(part, list | tuple):
        return [_without_references(one, defined, within) for one in part]
    if not isinstance(part, Mapping):
        return part
    # A field may have the name of a keyword: it holds a schema, and no text.
    # Inside a schema with an address of its own, references would lead elsewhere.
    keywords = ("$id", *_REFERRING)
    references = {k: part[k] for k in keywords if isinstance(part.get(k), str)}
    found = {
        k: _without_references(v, defined, within) for k, v in part.items() if k not in references
    }
    for keyword, reference in references.items():
        name = reference.removeprefix(_LOCAL)
        is_local = keyword == "$ref" and f"{_LOCAL}{name}" == reference
        if not is_local or name not in defined or name in within:
            raise ValueError(
                f"its schema has {keyword} {reference!r}, which leads to no schema in it; accepted "
                f"is $ref '{_LOCAL}NAME', outside of the schema NAME itself"
            )
        target = _without_references(defined[name], defined, (*within, name))
        if not found:
            return target
        found["allOf"] = [*found.get("allOf", ()), target]
    return found
