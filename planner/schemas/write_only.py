# SPDX-License-Identifier: Apache-2.0
"""Hides the parts of a value that its JSON Schema (draft 2020-12) marks as ``writeOnly``.

Marks are followed through ``properties``, ``additionalProperties`` and ``items``, and through each
schema that may apply to the same value, whether the value fits it or not. A value whose schema has
a mark under any other keyword is hidden as a whole. Schemas have no references any more: see
:func:`planner.schemas.references.in_place`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.schemas.references import HIDDEN, MARK, has_keyword, reference

#: Keywords with one or several schemas that apply to the same value.
_SAME = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not")
_INSIDE = ("properties", "additionalProperties", "items")


def hidden(schema: Any, value: Any) -> Any:
    """Return a value with HIDDEN in place of each part that its schema marks as ``writeOnly``.

    References to secrets stay, and so do None and the keys of mappings, unless the mark is under a
    keyword that is not followed. Without marks, the value itself is returned, not a copy.
    """
    return _shown([schema], value) if has_keyword(schema, MARK) else value


def masked(value: Any) -> Any:
    """Return a value with HIDDEN in place of all that is in it, except references and None."""
    if reference(value) is not None or value is None:
        return value
    if isinstance(value, Mapping):
        return {k: masked(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [masked(v) for v in value]
    return HIDDEN


def hidden_texts(schema: Any, value: Any) -> list[str]:
    """List the texts in a value that :func:`hidden` replaces."""
    return list(_replaced_texts(value, hidden(schema, value)))


def _replaced_texts(value: Any, shown: Any) -> Iterator[str]:
    if value is shown:
        return
    if shown == HIDDEN:
        yield from _texts(value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _replaced_texts(part, shown[key])
    elif isinstance(value, list | tuple):
        for part, other in zip(value, shown, strict=True):
            yield from _replaced_texts(part, other)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, the keys of mappings, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _shown(given: Iterable[Any], value: Any) -> Any:
    """Return a value to which some schemas apply, with its hidden parts replaced."""
    schemas = [one for schema in given for one in _applying(schema)]
    if value is None or not schemas:
        return value
    if any(map(_is_marked_elsewhere, schemas)):
        return HIDDEN
    if any(schema.get(MARK) is True for schema in schemas):
        return masked(value)
    if isinstance(value, Mapping):
        return {
            key: _shown((_of_key(schema, key) for schema in schemas), held)
            for key, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown((schema.get("items") for schema in schemas), held) for held in value]
    return value


def _applying(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those that it applies to the same value, if a mark may be in them."""
    if not isinstance(schema, Mapping) or not has_keyword(schema, MARK):
        return
    yield schema
    for keyword in _SAME:
        held = schema.get(keyword)
        for part in held if isinstance(held, list | tuple) else [held]:
            yield from _applying(part)


def _is_marked_elsewhere(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema may have a mark that is not followed."""
    others = schema.keys() - {*_SAME, *_INSIDE}
    return any(has_keyword(schema[keyword], MARK) for keyword in others)


def _of_key(schema: Mapping[str, Any], key: str) -> Any:
    """Return the schema that a schema applies to the value of a key."""
    named = schema.get("properties") or {}
    return named[key] if key in named else schema.get("additionalProperties")
