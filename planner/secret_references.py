# SPDX-License-Identifier: Apache-2.0
"""References to secret values in parameters.

A reference is a mapping in place of a text: ``{secret: env NAME}`` or ``{secret: file /PATH}``. It
is part of the plan. Only the applier reads the value, right before the action runs.
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
#: The keyword of JSON Schema for a secret: see :mod:`planner.write_only`.
MARK = "writeOnly"
#: Keywords of JSON Schema that hold one schema, several by name, and several in a list. ``not`` and
#: ``if`` are left out, because a value that they accept may still be wrong.
_ONE = (
    *("additionalProperties", "items", "then", "else", "contains"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
#: Keywords by which references find a schema, and others in it.
_PLACES = ("$id", "$anchor", "$dynamicAnchor", "$defs", "definitions")
_REFERRING = ("$ref", "$dynamicRef")


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
    found = _accepting(schema)
    return _redirected(found, found) if has_keyword(schema, *_REFERRING) else found


def _accepting(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    found = {keyword: _changed(keyword, held, schema) for keyword, held in schema.items()}
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list | tuple) else [kinds]
    if "string" not in kinds or "object" in kinds:
        return found
    places = {keyword: found.pop(keyword) for keyword in _PLACES if keyword in found}
    return places | {"if": {"type": "object", "required": [KEY]}, "then": SCHEMA, "else": found}


def _redirected(part: Any, root: Any) -> Any:
    """Return a part of a schema with its references led to where _accepting() moved their targets.

    Their pointers begin at ``root``.
    """
    if isinstance(part, list | tuple):
        return [_redirected(one, root) for one in part]
    if not isinstance(part, Mapping):
        return part
    root = part if isinstance(part.get("$id"), str) else root
    found = {keyword: _redirected(held, root) for keyword, held in part.items()}
    for keyword in _REFERRING:
        pointer = part.get(keyword)
        if isinstance(pointer, str) and pointer.startswith("#/"):
            found[keyword] = _moved(pointer, root)
    return found


def _moved(pointer: str, inside: Any) -> str:
    """Return a pointer into a schema as one into what _accepting() made of it."""
    # Imported here: few schemas have references.
    from urllib.parse import unquote

    found = "#"
    for part in pointer.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(inside, list | tuple):
            inside = {str(i): one for i, one in enumerate(inside)}
        if not isinstance(inside, Mapping):
            return pointer
        if inside.get("then") is SCHEMA and name not in _PLACES:
            found, inside = f"{found}/else", inside["else"]
        found, inside = f"{found}/{part}", inside.get(name)
    return found


def _changed(keyword: str, held: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value of a keyword of a schema, with each schema in it changed by _accepting()."""
    if keyword in _ONE:
        return _accepting(_with_mark(held, schema))
    if keyword in _NAMED and isinstance(held, Mapping):
        return {name: _accepting(_with_mark(part, schema)) for name, part in held.items()}
    if keyword in _LISTED and isinstance(held, list | tuple):
        return [_accepting(_with_mark(part, schema)) for part in held]
    return held


def has_keyword(schema: Any, *keywords: str) -> bool:
    """Return whether one of these keywords is anywhere in a schema.

    >>> has_keyword({"properties": {"a": {"writeOnly": True}}}, "writeOnly", "$ref")
    True
    """
    return _has_any(schema, frozenset(keywords))


def _has_any(schema: Any, keywords: frozenset[str]) -> bool:
    # Asked first, because the question for a mapping takes longer.
    if isinstance(schema, (str, int, float, type(None))):
        return False
    if isinstance(schema, Mapping):
        if not keywords.isdisjoint(schema):
            return True
        schema = schema.values()
    elif not isinstance(schema, list | tuple):
        return False
    return any(_has_any(part, keywords) for part in schema)


def has_hidden(value: Any) -> bool:
    """Return whether HIDDEN is in a value."""
    if isinstance(value, Mapping):
        return value == HIDDEN or any(map(has_hidden, value.values()))
    return isinstance(value, list | tuple) and any(map(has_hidden, value))


def _with_mark(part: Any, schema: Mapping[str, Any]) -> Any:
    marked = schema.get(MARK) is True and isinstance(part, Mapping)
    return {**part, MARK: True} if marked else part
