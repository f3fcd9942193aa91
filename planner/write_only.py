# SPDX-License-Identifier: Apache-2.0
"""Hides the parts of a value that its JSON Schema (draft 2020-12) marks as ``writeOnly``.

Every schema that may apply to a part counts, whether the part fits it or not: those of references,
of all alternatives, of ``if`` and of ``not``, too. What is in doubt is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner import schema_references
from planner.graph_algorithms import reachable
from planner.schema_references import Placed, UnresolvedReference
from planner.secret_references import HIDDEN, MARK, has_keyword, reference

#: Keywords with schemas that apply to the same value: one, several in a list, several by name.
_ONE = ("if", "then", "else", "not")
_LISTED = ("allOf", "anyOf", "oneOf")
_NAMED = ("dependentSchemas",)
_SAME = frozenset((*_ONE, *_LISTED, *_NAMED, *schema_references.KEYWORDS))
#: In place of a schema that is not known.
_MARKED = Placed({MARK: True})
#: The schemas that apply to a value, by the ids of those that lead to them.
_Known = dict[tuple[int, ...], Sequence[Placed]]


def hidden(schema: Any, value: Any) -> Any:
    """Return a value with HIDDEN in place of each part that its schema marks as ``writeOnly``.

    References to secrets stay, and so do None and the keys of mappings, unless ``propertyNames`` is
    marked. Without marks, the value itself is returned, not a copy.
    """
    if not has_keyword(schema, MARK):
        return value
    return _shown([schema_references.placed(schema)], value, {})


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


def _has_mark(schema: Mapping[str, Any]) -> bool:
    return schema.get(MARK) is True


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


def _shown(given: Iterable[Placed], value: Any, known: _Known) -> Any:
    """Return a value to which some schemas apply, with its hidden parts replaced.

    ``known`` are the schemas found before, for other values to which the same ones apply.
    """
    given = list(given)
    ids = tuple(id(one.schema) for one in given)
    if ids not in known:
        # A schema with references may lead to a mark that is not in it.
        some = (one for one in given if one.resolver or has_keyword(one.schema, MARK))
        known[ids] = _applying(some)
    schemas = known[ids]
    if any(_has_mark(one.schema) for one in schemas):
        return masked(value)
    if not schemas:
        return value
    if isinstance(value, Mapping):
        names = [part for one in schemas for part in one.inside(one.schema.get("propertyNames"))]
        if names and any(_shown(names, key, known) == HIDDEN for key in value):
            return HIDDEN
        return {
            key: _shown((part for one in schemas for part in _of_key(one, key)), held, known)
            for key, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _shown((part for one in schemas for part in _of_entry(one, i)), held, known)
            for i, held in enumerate(value)
        ]
    # The text holds a value of its own, as JSON for example. A reference may lead to a mark.
    within = isinstance(value, str) and any(
        has_keyword(s.schema.get("contentSchema"), MARK, *schema_references.KEYWORDS)
        for s in schemas
    )
    return HIDDEN if within else value


def _applying(given: Iterable[Placed]) -> Sequence[Placed]:
    """List schemas, and those that they apply to the same value."""
    known = {id(one.schema): one for one in given}

    def further(number: int) -> Iterator[int]:
        for one in _of_same(known[number]):
            known.setdefault(id(one.schema), one)
            yield id(one.schema)

    return [known[number] for number in reachable(list(known), further)]


def _of_same(one: Placed) -> Iterator[Placed]:
    """Yield the schemas that a schema applies to the same value."""
    if one.schema.keys().isdisjoint(_SAME):
        return
    try:
        yield from one.targets()
    except UnresolvedReference:
        yield _MARKED
    for keyword in _ONE:
        yield from one.inside(one.schema.get(keyword))
    for keyword in _LISTED:
        for part in one.schema.get(keyword) or ():
            yield from one.inside(part)
    for keyword in _NAMED:
        for part in (one.schema.get(keyword) or {}).values():
            yield from one.inside(part)


def _of_key(one: Placed, key: str) -> Iterator[Placed]:
    """Yield the schemas that a schema applies to the value of a key.

    Whether a pattern fits a key is in doubt, so a pattern rules out no other schema.
    """
    schema = one.schema
    named = schema.get("properties") or {}
    for pattern, part in (schema.get("patternProperties") or {}).items():
        if _fits(pattern, key):
            yield from one.inside(part)
    if key in named:
        yield from one.inside(named[key])
    else:
        yield from one.inside(schema.get("additionalProperties"))
        yield from one.inside(schema.get("unevaluatedProperties"))


def _of_entry(one: Placed, i: int) -> Iterator[Placed]:
    """Yield the schemas inside a schema that apply to entry ``i`` of a list, counted from 0."""
    first = one.schema.get("prefixItems") or ()
    if i < len(first):
        yield from one.inside(first[i])
    else:
        yield from one.inside(one.schema.get("items"))
        yield from one.inside(one.schema.get("unevaluatedItems"))
    yield from one.inside(one.schema.get("contains"))


def _fits(pattern: str, key: str) -> bool:
    """Return whether a pattern may fit a key, if é counts as ``\\w`` or as ``\\W``."""
    try:
        return any(re.search(pattern, key, flags) for flags in (0, re.ASCII))
    except (re.error, ValueError, OverflowError):  # it has the syntax of another language
        return True
