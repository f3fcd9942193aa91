# SPDX-License-Identifier: Apache-2.0
"""Explains in sentences why a value does not fit its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from planner.errors import Mistake, Path, accepted, cut
from planner.schemas.hidden_values import HIDDEN, hidden

_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
#: What is said of a value, as it may be shown, that does not fit the rule of a keyword.
_SENTENCES = {
    "minimum": "{value} is less than {rule}",
    "maximum": "{value} is more than {rule}",
    "exclusiveMinimum": "{value} is not more than {rule}",
    "minLength": "{value} is too short: at least {rule} characters",
    "maxLength": "{value} is too long: at most {rule} characters",
    "minItems": "too short: at least {rule} {entries}",
    "maxItems": "too long: at most {rule} {entries}",
}


def require_valid(schema: Mapping[str, Any]) -> None:
    """Raise ValueError when a schema is wrong."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as reason:
        raise ValueError(f"its schema is wrong: {reason.message}") from reason


def find(schema: Mapping[str, Any], value: Any) -> list[Mistake]:
    """List the mistakes in a value, in document order; the list is empty if the value fits.

    No mistake repeats a part of the value that the schema hides.

    >>> schema = {"properties": {"flavor": {}}, "additionalProperties": False}
    >>> print(*find(schema, {"flavr": 1}))
    flavr: not a field here; did you mean 'flavor'? Known: flavor
    """
    found = _found(schema, value, hidden(schema, value))
    return sorted(found, key=lambda m: [(isinstance(p, str), str(p).zfill(9)) for p in m.path])


def places(schema: Mapping[str, Any], value: Any) -> set[Path]:
    """Return the paths of the mistakes in a value, even of those within what is hidden."""
    return {mistake.path for mistake in _found(schema, value, value)}


def _found(schema: Mapping[str, Any], value: Any, shown: Any) -> list[Mistake]:
    """List each mistake once; ``shown`` is the whole value as it may be shown."""
    try:
        errors = _Validator(schema).iter_errors(value)
        return list(dict.fromkeys(m for error in errors for m in _mistakes(error, shown)))
    except re.error:
        # Only the fast validator knows the syntax of a pattern in it.
        return [Mistake("does not fit its schema: a pattern of it cannot be explained")]


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
    Draft202012Validator, {"pattern": _pattern}
)


def _mistakes(error: ValidationError, shown_whole: Any) -> Iterator[Mistake]:
    """Yield the mistakes of one error of jsonschema: one for each field that it is about."""
    value: Any = error.instance
    rule: Any = error.validator_value
    path, seen = _seen(tuple(error.absolute_path), shown_whole)
    about_names = "propertyNames" in error.absolute_schema_path and isinstance(value, str)
    if about_names and isinstance(seen, Mapping) and seen is not HIDDEN:
        # An error about the name of a field has the path of the mapping.
        path, seen = (*path, value), value
    is_hidden = seen is not value and seen != value
    match error.validator:
        case "additionalProperties" if rule is False and seen is not HIDDEN:
            yield from _unknown_fields(error, path)
        case "required":
            for name in rule:
                if name not in value:
                    yield Mistake(f"the field {name!r} is missing", path)
        case "anyOf" if all(choice and list(choice) == ["required"] for choice in rule):
            choices = [" and ".join(map(repr, choice["required"])) for choice in rule]
            yield Mistake(f"the field {', or '.join(choices)} is missing", path)
        case "anyOf" | "oneOf" if error.context:
            yield from _of_alternatives(error, shown_whole, path)
        case _:
            yield Mistake(_sentence(error, is_hidden=is_hidden), path)


def _seen(path: Path, shown: Any) -> tuple[Path, Any]:
    """Return as much of a path as may be shown, and the part of the shown value there."""
    for depth, part in enumerate(path):
        if shown is HIDDEN:
            return path[:depth], shown
        shown = shown[part]
    return path, shown


def _unknown_fields(error: ValidationError, path: Path) -> Iterator[Mistake]:
    schema: Any = error.schema
    value: Any = error.instance
    known = schema.get("properties") or {}
    patterns = "|".join(schema.get("patternProperties") or ())
    for name in value:
        if name not in known and not (patterns and re.search(patterns, name)):
            yield Mistake(f"not a field here; {accepted(name, known)}", (*path, name))


def _of_alternatives(error: ValidationError, shown_whole: Any, path: Path) -> Iterator[Mistake]:
    """Yield the mistakes of the alternative that fits best, or one that says what all accept."""
    best = best_match([error])
    if best is not error:
        yield from _mistakes(best, shown_whole)
        return
    # An alternative that is ``false`` needs no mention beside others.
    others = [one for one in error.context if one.validator] or error.context
    texts = (mistake.text for one in others for mistake in _mistakes(one, shown_whole))
    yield Mistake(", and ".join(dict.fromkeys(texts)), path)


def _sentence(error: ValidationError, *, is_hidden: bool) -> str:
    """Return what is wrong with a value; a hidden one is not repeated."""
    keyword = str(error.validator)
    rule: Any = error.validator_value
    schema: Any = error.schema
    value = "its hidden value" if is_hidden else cut(repr(error.instance), 60)
    match keyword, rule:
        case "None", _:
            # The schema is ``false``. The error may have the path of what the value is in.
            return "holds what is not accepted at all"
        case "not", {"title": title}:
            return str(title)
        case "type", _:
            kinds = [rule] if isinstance(rule, str) else rule
            return f"{value} is not {' or '.join(_KINDS[kind] for kind in kinds)}"
        case "enum", _:
            near = "" if is_hidden else error.instance
            return f"{value} is not accepted; {accepted(near, map(str, rule))}"
        case "pattern", _:
            return f"{value} is not {schema.get('title', f'of the form {rule}')}"
    if keyword in _SENTENCES:
        entries = "entry" if rule == 1 else "entries"
        return _SENTENCES[keyword].format(value=value, rule=rule, entries=entries)
    return f"{value} does not fit" if is_hidden else error.message
