# SPDX-License-Identifier: Apache-2.0
"""Secrets in parameters: references to their values, and the parts of a value that a schema hides.

A reference to a secret is a mapping in place of a text: ``{secret: env NAME}`` or
``{secret: file /PATH}``. It is part of the plan. Only the applier reads the value, right before the
action runs.

A schema hides a part of a value by the mark ``writeOnly``, which is followed through
``properties``, ``additionalProperties`` and ``items``. Under any other keyword, it hides the whole
value that this schema is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import Path
from planner.schemas import ranges

KEY = "secret"
_PATTERN = r"^(env [A-Za-z_][A-Za-z0-9_]*|file /[^\x00-\x1f]+)$"
_REFERENCE: Mapping[str, Any] = ranges.mapping(
    KEY,
    secret={
        "type": "string",
        "title": "a reference to a secret: env NAME, or file /PATH",
        "pattern": _PATTERN,
    },
)
#: Shown in place of a hidden value. It is no reference, so a copy with it is refused as a plan.
HIDDEN: Mapping[str, str] = {KEY: "hidden"}
#: The keyword of JSON Schema for a secret, and those through which it is followed.
MARK = "writeOnly"
_FOLLOWED = frozenset(("properties", "additionalProperties", "items"))
#: Keywords of JSON Schema that take one schema, several by name, and several in a list. ``not`` and
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
    """Return whether a value is a reference, or has one in it, at any depth.

    >>> has_reference({"argv": ["a", {"secret": "env B"}]}), has_reference({"secret": 1})
    (True, False)
    """
    if isinstance(value, Mapping):
        return reference(value) is not None or any(map(has_reference, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_reference, value))


def _parts(value: Any) -> list[Any]:
    """List a value and all that is in it, at any depth."""
    found = [value]
    for part in found:  # the list grows meanwhile
        if isinstance(part, Mapping):
            found += part.values()
        elif isinstance(part, (list, tuple)):
            found += part
    return found


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

    It hides what the given one hides, and what stands in place of a reference and is none: a
    message does not repeat what may be the secret itself.
    """
    if not isinstance(schema, Mapping):
        return schema
    found = dict(schema)
    for keyword, inner in schema.items():
        if keyword in _ONE:
            found[keyword] = accepting(inner)
        elif keyword in _NAMED and isinstance(inner, Mapping):
            found[keyword] = {name: accepting(part) for name, part in inner.items()}
        elif keyword in _LISTED and isinstance(inner, list | tuple):
            found[keyword] = [accepting(part) for part in inner]
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list | tuple) else [kinds]
    if "string" not in kinds or "object" in kinds:
        return found
    mark = {MARK: True} if found.pop(MARK, False) is True else {}
    either = {"if": {"type": "object", "required": [KEY]}, "then": _REFERENCE, "else": found}
    return {**mark, "properties": {KEY: {MARK: True}}, **either}


def has_keyword(schema: Any, *keywords: str) -> bool:
    """Return whether one of these keywords is anywhere in a schema.

    >>> has_keyword({"properties": {"a": {"writeOnly": True}}}, "writeOnly", "$ref")
    True
    """
    names = {name for part in _parts(schema) if isinstance(part, Mapping) for name in part}
    return not names.isdisjoint(keywords)


def hidden(schema: Any, value: Any, tell: Callable[[Any], object] = lambda _: None) -> Any:
    """Return a value with HIDDEN in place of each part that its schema marks as ``writeOnly``.

    References to secrets stay, and so do None and the keys of mappings, unless the mark is under a
    keyword that is not followed. Without marks, the value itself is returned, not a copy. ``tell``
    is called with each part that is replaced.
    """
    if value is None or not has_keyword(schema, MARK):
        return value
    if has_keyword([inner for keyword, inner in schema.items() if keyword not in _FOLLOWED], MARK):
        tell(value)
        return HIDDEN
    if schema.get(MARK) is True:
        return masked(value, tell)
    if isinstance(value, Mapping):
        named, others = schema.get("properties") or {}, schema.get("additionalProperties")
        return {key: hidden(named.get(key, others), part, tell) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(schema.get("items"), part, tell) for part in value]
    return value


def masked(value: Any, tell: Callable[[Any], object] = lambda _: None) -> Any:
    """Return a value with HIDDEN in place of all that is in it, except references and None."""
    if reference(value) is not None or value is None:
        return value
    if isinstance(value, Mapping):
        return {k: masked(v, tell) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [masked(v, tell) for v in value]
    tell(value)
    return HIDDEN


def has_hidden(value: Any) -> bool:
    """Return whether HIDDEN is in a value."""
    return HIDDEN in _parts(value)


def hidden_texts(schema: Any, value: Any) -> list[str]:
    """List the texts in a value that :func:`hidden` replaces, the keys of mappings, too."""
    replaced_parts: list[Any] = []
    hidden(schema, value, replaced_parts.append)
    return [
        text
        for whole in replaced_parts
        for part in _parts(whole)
        for text in (part if isinstance(part, Mapping) else [part])
        if isinstance(text, str)
    ]
