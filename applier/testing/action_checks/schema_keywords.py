# SPDX-License-Identifier: Apache-2.0
"""Lists the keywords of JSON Schema, and finds those that a schema uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Keywords whose value is, in this order: a mapping to schemas, a list of schemas, one schema.
_NAMED = ("properties", "patternProperties", "$defs", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("additionalProperties", "items", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_PLAIN = (
    *("$schema", "$id", "$ref", "$anchor", "$comment", "type", "enum", "const", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minContains", "maxContains", "minProperties", "maxProperties", "required"),
    *("dependentRequired", "title", "description", "default", "examples", "deprecated"),
    *("readOnly", "writeOnly"),
)
#: All keywords of draft 2020-12 that a schema may use.
KEYWORDS = frozenset((*_NAMED, *_LISTED, *_SINGLE, *_PLAIN))


def keywords_of(schema: Any) -> Iterator[str]:
    """Yield every keyword of a schema and of the schemas inside it."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        yield key
        inside: list[Any] = []
        if key in _NAMED:
            inside = list(value.values())
        elif key in _LISTED:
            inside = list(value)
        elif key in _SINGLE:
            inside = [value]
        for part in inside:
            yield from keywords_of(part)
