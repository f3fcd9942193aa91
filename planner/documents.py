"""Reads documents, YAML or JSON, and knows on which line a thing stands."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import yaml

from planner.errors import InvalidInput, Mistake, Path


@dataclass(frozen=True)
class Document:
    """A value, and the text that it was read from, if it was."""

    value: Any
    source: str | None = None
    text: str | None = None

    def locate(self, path: Path) -> str | None:
        """Give ``file:line`` of the place, or of the nearest one around it that stands there.

        The text is read once more for it: only who refuses something asks.
        """
        if self.source is None or self.text is None:
            return self.source
        try:
            node = yaml.compose(self.text, Loader=_Loader)
        except yaml.YAMLError:
            return self.source
        line = 0
        for part in path:
            step = _step(node, part)
            if step is None:
                break
            line, node = step
        return f"{self.source}:{line + 1}"


def _step(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    """Go one step inside; gives the line on which a person finds it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        entry = node.value[part]
        return entry.start_mark.line, entry
    return None


def read(path: str | FilePath) -> Document:
    """Read a file; raises InvalidInput with file and line when it is no YAML or JSON."""
    name = str(path)
    try:
        text = FilePath(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as reason:
        raise _refused(name, f"not UTF-8 text: {reason.reason} at byte {reason.start}") from reason
    except OSError as reason:
        raise _refused(name, f"cannot be read: {reason.strerror}") from reason
    return parse(text, name)


def parse(text: str, source: str) -> Document:
    """Read text; ``source`` is what messages call it. Raises InvalidInput.

    Text that begins like JSON is read as JSON, which is fast; all else as YAML, of which only
    ``true`` and ``false`` are booleans, keys are text, and dates stay text. A key that stands twice
    is refused.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
            return Document(value, source, text)
        except json.JSONDecodeError as reason:
            if source.endswith(".json"):
                where = f"{source}:{reason.lineno}"
                raise _refused(where, f"not JSON: {reason.msg} (column {reason.colno})") from reason
        except RecursionError as reason:
            raise _refused(source, "too deep: lists and mappings inside each other") from reason
        except _Twice as twice:
            line = _line_of_second(text, twice.key)
            where = f"{source}:{line}" if line else source
            raise _refused(where, f"the key {twice.key!r} stands twice") from None
        except ValueError as reason:
            raise _refused(source, str(reason)) from reason
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a safe loader
    except yaml.MarkedYAMLError as reason:
        mark = reason.problem_mark or reason.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise _refused(where, f"not YAML: {reason.problem or reason.context}") from reason
    except yaml.YAMLError as reason:
        raise _refused(source, f"not YAML: {reason}".splitlines()[0]) from reason
    except (RecursionError, ValueError) as reason:
        raise _refused(source, f"not YAML: {reason}") from reason
    if value is None:
        raise _refused(source, "empty: a document with 'actions' or a 'kind' is expected")
    return Document(value, source, text)


def _refused(place: str, text: str) -> InvalidInput:
    return InvalidInput([Mistake(text, place=place)])


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)
    return value


def _line_of_second(text: str, key: str) -> int | None:
    """Find a key that stands twice in one mapping of a JSON text."""
    try:
        yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a safe loader
    except yaml.MarkedYAMLError as reason:
        if reason.problem_mark and key in str(reason.problem):
            return int(reason.problem_mark.line) + 1
    except yaml.YAMLError:
        pass
    return None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON has")


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """A safe loader with the scalars of YAML 1.2: ``off`` is text, and so is a date."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping with text as keys; refuses a key that stands twice."""
        own = {key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"}
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is a list or mapping", key.start_mark
                )
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        self.flatten_mapping(node)
        # What a merge brings stands first; what the mapping itself says wins.
        value: dict[Hashable, Any] = {}
        for key, item in node.value:
            if key.value in own or key.value not in value:
                value[key.value] = self.construct_object(item, deep=deep)
        return value


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"^(?:{_pattern})$"),
        ["" if c == "\0" else c for c in _first],
    )


def _whole_number(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text, base)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def as_document(document: Mapping[str, Any] | str | FilePath | Document) -> Document:
    """Take a mapping as it is, read anything else as a path."""
    if isinstance(document, Document):
        return document
    if isinstance(document, str | FilePath):
        return read(document)
    return Document(document)
