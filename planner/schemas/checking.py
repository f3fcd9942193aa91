# SPDX-License-Identifier: Apache-2.0
"""Checks values against JSON Schemas (draft 2020-12), with definitions in place of references."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, path_text
from planner.schemas.hidden_values import has_keyword

Check = Callable[[Any], list[Mistake]]
#: The keywords of JSON Schema that refer to another schema.
_REFERRING = ("$ref", "$dynamicRef")
_DEFINITIONS = "$defs"
_LOCAL = f"#/{_DEFINITIONS}/"


def compiled(schema: Mapping[str, Any]) -> Check:
    """Compile a schema into a function that lists the mistakes in a value, in document order.

    Raises ValueError when the schema itself is wrong.
    """
    schema = in_place(schema)
    is_valid = _is_valid(schema)

    def check(value: Any) -> list[Mistake]:
        try:
            valid = is_valid(value)
        except ValueError:
            # The value cannot be written as JSON: it holds, for example, half of a surrogate pair.
            valid = False
        if valid:
            return []
        # jsonschema takes longer to import than most documents to check.
        from planner.schemas import schema_errors

        return schema_errors.find(schema, value)

    return check


def _is_valid(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Compile a schema into a fast function that only returns whether a value fits."""
    import jsonschema_rs

    try:
        return jsonschema_rs.Draft202012Validator(schema, retriever=_refuse).is_valid  # type: ignore[arg-type]
    except ValueError:
        from planner.schemas import schema_errors

        schema_errors.require_valid(schema)
        # The schema is valid, but the fast validator does not support all of it: for example,
        # regular expressions in Python's syntax.
        return lambda _: False


def _refuse(uri: str) -> Any:
    """Refuse to fetch a schema by its address, as in ``$schema``: a check does no input."""
    raise ValueError(f"{uri} is not part of the schema")


def in_place(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its definitions in place of references; one without any, itself.

    Raises ValueError for a reference that leads to no definition, or to one that it is in.

    >>> in_place({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}})
    {'items': {'type': 'string'}}
    """
    if not has_keyword(schema, *_REFERRING):
        return schema
    without = {k: v for k, v in schema.items() if k not in (_DEFINITIONS, "$id")}
    found: Mapping[str, Any] = _without_references(without, schema.get(_DEFINITIONS) or {}, ())
    return found


def _without_references(part: Any, defined: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a part of a schema with its references replaced; ``within`` names definitions."""
    if isinstance(part, list | tuple):
        return [_without_references(one, defined, within) for one in part]
    if not isinstance(part, Mapping):
        return part
    # A field may have the name of a keyword: it holds a schema, and no text.
    # Inside a schema with an address of its own, references would lead elsewhere.
    keywords = ("$id", *_REFERRING)
    references = {k: part[k] for k in keywords if isinstance(part.get(k), str)}
    found = {
        k: _without_references(v, defined, within) for k, v in part.items() if k not in references
    }
    for keyword, reference in references.items():
        name = reference.removeprefix(_LOCAL)
        is_local = keyword == "$ref" and f"{_LOCAL}{name}" == reference
        if not is_local or name not in defined or name in within:
            raise ValueError(
                f"its schema has {keyword} {reference!r}, which leads to no schema in it; accepted "
                f"is $ref '{_LOCAL}NAME', outside of the schema NAME itself"
            )
        target = _without_references(defined[name], defined, (*within, name))
        if not found:
            return target
        found["allOf"] = [*found.get("allOf", ()), target]
    return found


class Readable(NamedTuple):
    """The part of a document that remains after the mistaken parts were removed.

    ``kept`` maps the path of each list from which entries were removed to the original indexes of
    the remaining entries.
    """

    value: Mapping[str, Any]
    kept: Mapping[str | int, Sequence[int]]

    def path(self, path: Path) -> Path:
        """Translate a path in the remaining part into the path in the whole document."""
        if len(path) > 1 and path[0] in self.kept and isinstance(path[1], int):
            return (path[0], self.kept[path[0]][path[1]], *path[2:])
        return path


def readable(check: Check, value: Any, wrong: Sequence[Mistake]) -> Readable | None:
    """Return a value without its mistaken fields and list entries; None if mistakes remain.

    The argument is not changed. The planner parses the remaining part, so that a mistake found by
    the schema does not hide the mistakes that only the planner finds.
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


def repeated(what: str, names: Iterable[object], at: Callable[[int], Path]) -> list[Mistake]:
    """List a mistake for each name that occurs again, with the place of its first; None is no name.

    ``at`` returns the path of the name with that number.

    >>> print(*repeated("uid", ["1", "2", "1"], lambda i: ("nodes", i)))
    nodes[2]: the uid '1' occurs twice: also at nodes[0]
    """
    first: dict[object, int] = {}
    return [
        Mistake(f"the {what} {name!r} occurs twice: also at {path_text(at(first[name]))}", at(i))
        for i, name in enumerate(names)
        if name is not None and first.setdefault(name, i) != i
    ]
