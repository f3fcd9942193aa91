"""Holds values against JSON Schemas, and says what is wrong in sentences."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from planner.errors import Mistake, Path, accepted

Check = Callable[[Any], list[Mistake]]


def compiled(schema: Mapping[str, Any]) -> Check:
    """Turn a schema into a function that lists what is wrong with a value, in document order.

    Raises ValueError when the schema itself is wrong.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as reason:
        raise ValueError(f"its schema is wrong: {reason.message}") from reason
    validator = Draft202012Validator(schema)

    def check(value: Any) -> list[Mistake]:
        found = [m for error in validator.iter_errors(value) for m in mistakes(error)]
        return sorted(found, key=lambda m: [(isinstance(p, str), str(p).zfill(9)) for p in m.path])

    return check


def readable(
    schema: Mapping[str, Any], value: Any, wrong: Sequence[Mistake]
) -> Mapping[str, Any] | None:
    """Give what fits the schema once the fields that are wrong are taken out; None if nothing does.

    So that one mistake does not hide the others.
    """
    if not wrong:
        fits: Mapping[str, Any] = value
        return fits
    rest = copy.deepcopy(value)
    for mistake in wrong:
        inside = rest
        for part in mistake.path[:-1]:
            inside = inside[part] if part in inside or isinstance(part, int) else {}
        if mistake.path and isinstance(inside, dict):
            inside.pop(mistake.path[-1], None)
    return rest if isinstance(rest, Mapping) and not compiled(schema)(rest) else None


def mistakes(error: ValidationError) -> Iterator[Mistake]:
    """Say in sentences what one error of a validator means: one for each field that is not known.

    >>> schema = {"properties": {"flavor": {}}, "additionalProperties": False}
    >>> check = compiled(schema)
    >>> print(*check({"flavr": 1}))
    flavr: not a field here; did you mean 'flavor'? Known: flavor
    """
    path: Path = tuple(error.absolute_path)
    rule: Any = error.validator_value
    schema: Any = error.schema
    value: Any = error.instance
    match error.validator:
        case "additionalProperties" if rule is False:
            known = schema.get("properties") or {}
            for name in value:
                if name not in known:
                    text = f"not a field here; {accepted(name, known)}"
                    yield Mistake(text, (*path, name))
        case "required":
            # The validator reports each missing field by itself, in its message only.
            name = error.message.rpartition(" is a required")[0].strip("'")
            yield Mistake(f"the field {name!r} is missing", path)
        case "anyOf" | "oneOf" if error.context and (best := best_match([error])) is not error:
            yield from mistakes(best)
        case "type":
            yield Mistake(f"{_short(error.instance)} is not {_kind(rule)}", path)
        case "enum":
            text = f"{_short(error.instance)} is not accepted; "
            yield Mistake(text + accepted(error.instance, map(str, rule)), path)
        case _:
            yield Mistake(_message(error), path)


def _message(error: ValidationError) -> str:
    value, shown = error.validator_value, _short(error.instance)
    schema: Any = error.schema
    known = {
        "minimum": f"{shown} is less than {value}",
        "maximum": f"{shown} is more than {value}",
        "exclusiveMinimum": f"{shown} is not more than {value}",
        "minLength": f"{shown} is too short: at least {value} characters",
        "minItems": f"too short: at least {value} entries",
        "pattern": f"{shown} is not {schema.get('title', f'of the form {value}')}",
    }
    return known.get(str(error.validator), error.message)


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
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
