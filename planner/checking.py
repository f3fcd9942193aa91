"""Holds values against JSON Schemas, and says what is wrong in sentences."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol

from jsonschema import Draft202012Validator, validators
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
    validator = _Validator(schema)

    def check(value: Any) -> list[Mistake]:
        found = [m for error in validator.iter_errors(value) for m in mistakes(error)]
        return sorted(found, key=lambda m: [(isinstance(p, str), str(p).zfill(9)) for p in m.path])

    return check


#: What says nothing more of a text than that it is one, and of what form.
_OF_TEXTS = frozenset(
    ["type", "pattern", "title", "description", "properties", "required", "additionalProperties"]
)


def _items(
    validator: Any, items: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Check the entries of a list; the texts among them that fit at once, for there may be many."""
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
    """Compile a pattern of JSON Schema: its ``$`` does not stand before a last line break."""
    return re.compile(re.sub(r"(?<!\\)\$(?=$|[|)])", r"\\Z", pattern))


_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"items": _items, "pattern": _pattern}
)


class HasSchema(Protocol):
    """A plugin class: a planner or an action type."""

    SCHEMA: ClassVar[Mapping[str, Any]]


@cache
def schema_of(plugin: type[HasSchema]) -> Check:
    """Compile the schema of a class, once; raises ValueError when the schema itself is wrong."""
    return compiled(plugin.SCHEMA)


class Readable(NamedTuple):
    """What is left of a document without its mistakes.

    ``kept`` gives, for a list from which entries were taken, where those left stood before.
    """

    value: Mapping[str, Any]
    kept: Mapping[str | int, Sequence[int]]

    def path(self, path: Path) -> Path:
        """Turn a place in what is left into the place in the whole document."""
        if len(path) > 1 and path[0] in self.kept and isinstance(path[1], int):
            return (path[0], self.kept[path[0]][path[1]], *path[2:])
        return path


def readable(check: Check, value: Any, wrong: Sequence[Mistake]) -> Readable | None:
    """Give what fits once wrong fields, then wrong entries of lists, are taken out, else None.

    So that one mistake does not hide the others.
    """
    if not wrong:
        return Readable(value, {})
    rest = copy.deepcopy(value)
    for mistake in wrong:
        inside = rest
        for part in mistake.path[:-1]:
            inside = inside[part] if part in inside or isinstance(part, int) else {}
        if mistake.path and isinstance(inside, dict):
            inside.pop(mistake.path[-1], None)
    kept: dict[str | int, list[int]] = {}
    gone = {m.path[:2] for m in check(rest)}
    for name in {path[0] for path in gone if len(path) > 1 and isinstance(path[1], int)}:
        kept[name] = [i for i in range(len(rest[name])) if (name, i) not in gone]
        rest[name] = [rest[name][i] for i in kept[name]]
    return Readable(rest, kept) if isinstance(rest, Mapping) and not check(rest) else None


def mistakes(error: ValidationError) -> Iterator[Mistake]:
    """Say in sentences what one error of a validator means: one for each field that is not known.

    >>> schema = {"properties": {"flavor": {}}, "additionalProperties": False}
    >>> check = compiled(schema)
    >>> print(*check({"flavr": 1}))
    flavr: not a field here; did you mean 'flavor'? Known: flavor
    """
    path: Path = tuple(error.absolute_path)
    if "propertyNames" in list(error.absolute_schema_path)[-2:-1]:
        path = (*path, str(error.instance))
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
        "minItems": f"too short: at least {value} {'entry' if value == 1 else 'entries'}",
        "maxItems": f"too long: at most {value} {'entry' if value == 1 else 'entries'}",
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
