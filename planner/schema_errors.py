# SPDX-License-Identifier: Apache-2.0
"""Explains in sentences why a value does not fit its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from planner.errors import Mistake, Path, accepted, cut


def require_valid(schema: Mapping[str, Any]) -> None:
    """Raise ValueError when a schema is wrong."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as reason:
        raise ValueError(f"its schema is wrong: {reason.message}") from reason


def find(schema: Mapping[str, Any], value: Any) -> list[Mistake]:
    """List the mistakes in a value, in document order; the list is empty if the value fits."""
    errors = _Validator(schema).iter_errors(value)
    found = [mistake for error in errors for mistake in mistakes(error)]
    return sorted(found, key=lambda m: [(isinstance(p, str), str(p).zfill(9)) for p in m.path])


#: The keywords of a schema that checks only the type and the pattern of a text.
_OF_TEXTS = frozenset(
    ["type", "pattern", "title", "description", "properties", "required", "additionalProperties"]
)


def _items(
    validator: Any, items: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Check the entries of a list; for speed, all entries of a list of texts in one step."""
    if not isinstance(instance, list):
        return
    fits: Callable[[str], object] | None = None
    if (
        isinstance(items, Mapping)
        and items.keys() <= _OF_TEXTS
        and "string" in items.get("type", ())
    ):
        fits = _expression(items.get("pattern", "")).search
    first = len(schema.get("prefixItems", ()))
    for i, entry in enumerate(instance[first:], first):
        if fits is None or not isinstance(entry, str) or not fits(entry):
            yield from validator.descend(entry, items, path=i)


def _pattern(
    _validator: Any, pattern: str, instance: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _expression(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of JSON Schema, in which ``$`` does not match before a final line break."""
    return re.compile(re.sub(r"(?<!\\)\$(?=$|[|)])", r"\\Z", pattern))


_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"items": _items, "pattern": _pattern}
)


def mistakes(error: ValidationError) -> Iterator[Mistake]:
    """Yield the mistakes of one error of jsonschema; one about unknown fields has one for each.

    >>> schema = {"properties": {"flavor": {}}, "additionalProperties": False}
    >>> print(*find(schema, {"flavr": 1}))
    flavr: not a field here; did you mean 'flavor'? Known: flavor
    """
    path: Path = tuple(error.absolute_path)
    if "propertyNames" in list(error.absolute_schema_path)[-2:-1]:
        path = (*path, str(error.instance))
    rule: Any = error.validator_value
    schema: Any = error.schema
    value: Any = error.instance
    shown = "its hidden value" if schema.get("writeOnly") else _short(value)
    match error.validator:
        case "additionalProperties" if rule is False:
            known = schema.get("properties") or {}
            for name in value:
                if name not in known:
                    text = f"not a field here; {accepted(name, known)}"
                    yield Mistake(text, (*path, name))
        case "required":
            # The validator reports each missing field separately, and names it only in its message.
            name = error.message.rpartition(" is a required")[0].strip("'")
            yield Mistake(f"the field {name!r} is missing", path)
        case "anyOf" if all(list(choice) == ["required"] for choice in rule):
            choices = [" and ".join(map(repr, choice["required"])) for choice in rule]
            yield Mistake(f"the field {', or '.join(choices)} is missing", path)
        case "anyOf" | "oneOf" if error.context and (best := best_match([error])) is not error:
            yield from mistakes(best)
        case "anyOf" | "oneOf" if error.context:
            reasons = dict.fromkeys(m.text for inner in error.context for m in mistakes(inner))
            yield Mistake(", and ".join(reasons), path)
        case "not" if isinstance(rule, dict) and "title" in rule:
            yield Mistake(str(rule["title"]), path)
        case "type":
            yield Mistake(f"{shown} is not {_kind(rule)}", path)
        case "enum":
            text = f"{shown} is not accepted; "
            yield Mistake(text + accepted(error.instance, map(str, rule)), path)
        case _:
            yield Mistake(_message(error, shown), path)


def _message(error: ValidationError, shown: str) -> str:
    value = error.validator_value
    schema: Any = error.schema
    known = {
        "minimum": f"{shown} is less than {value}",
        "maximum": f"{shown} is more than {value}",
        "exclusiveMinimum": f"{shown} is not more than {value}",
        "minLength": f"{shown} is too short: at least {value} characters",
        "maxLength": f"{shown} is too long: at most {value} characters",
        "minItems": f"too short: at least {value} {'entry' if value == 1 else 'entries'}",
        "maxItems": f"too long: at most {value} {'entry' if value == 1 else 'entries'}",
        "pattern": f"{shown} is not {schema.get('title', f'of the form {value}')}",
    }
    otherwise = f"{shown} does not fit" if schema.get("writeOnly") else error.message
    return known.get(str(error.validator), otherwise)


def _kind(kinds: str | list[str]) -> str:
    words = {
        "object": "a mapping",
        "array": "a list",
        "string": "a text",
        "number": "a number",
        "integer": "a whole number",
        "boolean": "true or false",
        "null": "null",
    }
    return " or ".join(words[k] for k in ([kinds] if isinstance(kinds, str) else kinds))


def _short(value: object) -> str:
    return cut(repr(value), 60)
