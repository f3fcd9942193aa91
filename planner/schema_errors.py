# SPDX-License-Identifier: Apache-2.0
"""Explains in sentences why a value does not fit its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from planner import schema_references, write_only
from planner.errors import Mistake, Path, accepted, cut
from planner.secret_references import HIDDEN


def require_valid(schema: Mapping[str, Any]) -> None:
    """Raise ValueError when a schema is wrong, or a reference in it leads nowhere."""
    _check_schema(schema)
    schema_references.require_resolved(schema, _check_schema)


def _check_schema(schema: Mapping[str, Any]) -> None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as reason:
        raise ValueError(f"its schema is wrong: {reason.message}") from reason


def find(schema: Mapping[str, Any], value: Any) -> list[Mistake]:
    """List the mistakes in a value, in document order; the list is empty if the value fits.

    No mistake repeats a part of the value that the schema marks as ``writeOnly``.
    """
    found = _found(schema, value, write_only.hidden(schema, value))
    return sorted(found, key=lambda m: [(isinstance(p, str), str(p).zfill(9)) for p in m.path])


def places(schema: Mapping[str, Any], value: Any) -> set[Path]:
    """Return the paths of the mistakes in a value, even of those within what is hidden."""
    return {mistake.path for mistake in _found(schema, value, value)}


def _found(schema: Mapping[str, Any], value: Any, shown: Any) -> list[Mistake]:
    try:
        errors = _Validator(schema).iter_errors(value)
        return [mistake for error in errors for mistake in mistakes(error, shown)]
    except re.error:
        # Only the fast validator knows the syntax of a pattern in it.
        return [Mistake("does not fit its schema: a pattern of it cannot be explained")]


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


def _required(
    validator: Any, names: Iterable[str], instance: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Yield an error for each missing field, whose value of the keyword is that field alone."""
    if validator.is_type(instance, "object"):
        for name in names:
            if name not in instance:
                missing = f"{name!r} is a required property"
                yield ValidationError(missing, validator_value=[name])


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
    Draft202012Validator, {"items": _items, "pattern": _pattern, "required": _required}
)


def mistakes(error: ValidationError, shown_whole: Any) -> Iterator[Mistake]:
    """Yield the mistakes of one error of jsonschema; one about unknown fields has one for each.

    ``shown_whole`` is the whole value as it may be shown, from :func:`planner.write_only.hidden`.

    >>> schema = {"properties": {"flavor": {}}, "additionalProperties": False}
    >>> print(*find(schema, {"flavr": 1}))
    flavr: not a field here; did you mean 'flavor'? Known: flavor
    """
    path, seen = _seen(tuple(error.absolute_path), shown_whole)
    rule: Any = error.validator_value
    value: Any = error.instance
    # An error about the name of a field has the path of the mapping.
    is_name = "propertyNames" in error.absolute_schema_path and isinstance(seen, Mapping)
    is_name = is_name and isinstance(value, str) and seen is not HIDDEN
    is_hidden = not is_name and seen is not value and seen != value
    path = (*path, value) if is_name else path
    shown = "its hidden value" if is_hidden else _short(value)
    match error.validator:
        case None:
            # The schema is ``false``. The error may have the path of what the value is in.
            yield Mistake("holds what is not accepted at all", path)
        case "additionalProperties" if rule is False and seen is not HIDDEN:
            schema: Any = error.schema
            known = schema.get("properties") or {}
            patterns = "|".join(schema.get("patternProperties") or ())
            for name in value:
                if name not in known and not (patterns and re.search(patterns, name)):
                    text = f"not a field here; {accepted(name, known)}"
                    yield Mistake(text, (*path, name))
        case "required":
            for name in rule:
                yield Mistake(f"the field {name!r} is missing", path)
        case "anyOf" if all(map(_only_requires, rule)):
            choices = [" and ".join(map(repr, choice["required"])) for choice in rule]
            yield Mistake(f"the field {', or '.join(choices)} is missing", path)
        case "anyOf" | "oneOf" if error.context and (best := best_match([error])) is not error:
            yield from mistakes(best, shown_whole)
        case "anyOf" | "oneOf" if error.context:
            # An alternative that is ``false`` needs no mention beside others.
            others = [one for one in error.context if one.validator] or error.context
            inner = (m for one in others for m in mistakes(one, shown_whole))
            yield Mistake(", and ".join(dict.fromkeys(m.text for m in inner)), path)
        case "not" if isinstance(rule, dict) and "title" in rule:
            yield Mistake(str(rule["title"]), path)
        case "type":
            yield Mistake(f"{shown} is not {_kind(rule)}", path)
        case "enum":
            text = f"{shown} is not accepted; "
            yield Mistake(text + accepted("" if is_hidden else value, map(str, rule)), path)
        case _:
            otherwise = f"{shown} does not fit" if is_hidden else error.message
            yield Mistake(_known_messages(error, shown).get(str(error.validator), otherwise), path)


def _only_requires(schema: Any) -> bool:
    return isinstance(schema, Mapping) and list(schema) == ["required"]


def _seen(path: Path, shown: Any) -> tuple[Path, Any]:
    """Return as much of a path as may be shown, and the part of the shown value there."""
    for depth, part in enumerate(path):
        if shown is HIDDEN:
            return path[:depth], shown
        shown = shown[part]
    return path, shown


def _known_messages(error: ValidationError, shown: str) -> Mapping[str, str]:
    """Return the message about each keyword that has one of its own."""
    value = error.validator_value
    schema: Any = error.schema if isinstance(error.schema, Mapping) else {}
    return {
        "minimum": f"{shown} is less than {value}",
        "maximum": f"{shown} is more than {value}",
        "exclusiveMinimum": f"{shown} is not more than {value}",
        "minLength": f"{shown} is too short: at least {value} characters",
        "maxLength": f"{shown} is too long: at most {value} characters",
        "minItems": f"too short: at least {value} {'entry' if value == 1 else 'entries'}",
        "maxItems": f"too long: at most {value} {'entry' if value == 1 else 'entries'}",
        "pattern": f"{shown} is not {schema.get('title', f'of the form {value}')}",
    }


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
