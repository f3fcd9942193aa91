# SPDX-License-Identifier: Apache-2.0
"""Reads YAML: scalars as in YAML 1.2, all keys as text, duplicate keys refused.

``off``, ``no`` and dates are text; ``true`` and ``false`` are the only booleans. In templates, and
in documents that contain templates, CloudFormation's short forms (``!Ref NAME``) become long forms
(``{Ref: NAME}``). Nesting and repetition by aliases are checked before any value is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from planner.errors import Path
from planner.safe_text import DEEPEST, MOST_DIGITS, TOO_DEEP, UNKEPT, refused_character

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: How many values aliases may repeat in one document. Aliases of aliases repeat exponentially many,
#: and all programs that read a plan later, the store included, handle each of them. Ten thousand
#: actions that each repeat a hundred parameters of an anchor need as many.
MOST_REPEATED = 1_000_000
_TOO_LARGE = 10**MOST_DIGITS
#: A text counts as one value, and one more for each this many characters.
_CHARACTERS = 100


#: Called with a key that a mapping has twice, and the lines of the first and of the last, from 1.
Repeated = Callable[[str, int, int], None]


def load(text: str, repeated: Repeated | None = None) -> Any:
    """Read one document into texts, numbers, booleans, None, lists and mappings.

    Raises yaml.YAMLError; most are a MarkedYAMLError, which has the line. With ``repeated``,
    duplicate keys are passed to it instead of refused, and the last holds.
    """
    require_bounded(yaml.parse(text, Loader=_Loader))
    loader = _Loader(text)
    loader.repeated = repeated
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def compose(text: str) -> yaml.Node | None:
    """Read one document into nodes with line numbers; raises yaml.YAMLError."""
    require_bounded(yaml.parse(text, Loader=_Loader))
    return yaml.compose(text, Loader=_Loader)


def line(root: yaml.Node, path: Path) -> int:
    """Return the line of a path, counted from 0, or of the longest part of it that exists."""
    number, node = 0, root
    for part in path:
        step = _step(node, part)
        if step is None:
            break
        number, node = step
    return number


def _step(node: yaml.Node, part: str | int) -> tuple[int, yaml.Node] | None:
    """Return the line and the node of one entry of a mapping or a list; None without the entry."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # the last of duplicate keys holds
            if key.value == str(part):
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        entry = node.value[part]
        return entry.start_mark.line, entry
    return None


#: A document with one of these keys at its top level is a template.
_TEMPLATE_KEYS = frozenset(
    ("AWSTemplateFormatVersion", "heat_template_version", "Resources", "resources")
)


class _Loader(_SafeLoader):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    # Only the types of JSON are read: sets, bytes and dates are refused, even with an explicit tag.
    yaml_constructors = {
        tag: constructor
        for tag, constructor in _SafeLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in ("null", "bool", "str", "seq", "map")
    }

    #: Whether short forms are read; that depends on the keys at the top level of the document.
    short_forms = False
    #: Is told of duplicate keys; if it is None, they are refused.
    repeated: Repeated | None = None

    def construct_document(self, node: yaml.Node) -> Any:
        """Build the whole value; read short forms if it is a template or contains templates."""
        entries = node.value if isinstance(node, yaml.MappingNode) else ()
        top = {k.value: v.value for k, v in entries if isinstance(k, yaml.ScalarNode)}
        holds = top.get("kind") == "rolling_update"
        self.short_forms = holds or not _TEMPLATE_KEYS.isdisjoint(top)
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping with text as keys; a duplicate key is told, or refused."""
        own: dict[str, int] = {}
        for key, _ in node.value:
            text = _text_of(key)
            if key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if text in own:
                if self.repeated is None:
                    raise DuplicateKey(key)
                self.repeated(text, own[text], line)
            own[text] = line
        self.flatten_mapping(node)
        return {_text_of(k): self.construct_object(item, deep=deep) for k, item in node.value}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put merged keys before the own ones, because later keys override earlier ones.

        Of a list of merged mappings the last is put first, so that the first overrides the others.
        The method of PyYAML 6.0.4 has another order.
        """
        merged: list[Any] = []
        own = []
        for key, value in node.value:
            if key.tag != _MERGE:
                own.append((key, value))
                continue
            several = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for one in reversed(several):
                if not isinstance(one, yaml.MappingNode):
                    raise _wrong("only a mapping, or a list of mappings, can be merged", one)
                self.flatten_mapping(one)
                merged += one.value
        node.value = merged + own


for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        _TAG + _kind,
        re.compile(rf"^(?:{_pattern})$"),
        ["" if c == "\0" else c for c in _first],
    )


def _text_of(key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        raise _wrong("a key is a list or mapping", key)
    text: str = key.value
    return text


def _whole_number(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    try:
        value = int(_ascii(text), {"0o": 8, "0x": 16}.get(text[:2], 10))
        if abs(value) >= _TOO_LARGE:
            raise ValueError(text)
    except ValueError as reason:
        what = f"is not a whole number of at most {MOST_DIGITS} digits"
        raise _wrong(f"{text[:40]!r} {what}", node) from reason
    return value


def _number(loader: Any, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node)
    try:
        value = float(_ascii(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(f"{text[:40]!r} is not a finite number", node)
    return value


def _ascii(text: str) -> str:
    """Return a text; raises ValueError for other digits and "_", which Python would accept."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return text


def _short_form(loader: Any, name: str, node: yaml.Node) -> Any:
    """Turn ``!NAME ...`` into ``{"Fn::NAME": ...}``; Ref and Condition get no prefix."""
    if not loader.short_forms or not name:
        raise _wrong(f"could not determine a constructor for the tag {node.tag!r}", node)
    value: Any
    if isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_scalar(node)
        if name == "GetAtt":
            value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else f"Fn::{name}": value}


def _wrong(text: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_Loader.add_constructor(f"{_TAG}int", _whole_number)
_Loader.add_constructor(f"{_TAG}float", _number)
_Loader.add_multi_constructor("!", _short_form)


class DuplicateKey(yaml.constructor.ConstructorError):
    """The text ``key`` occurs twice as a key of one mapping."""

    def __init__(self, node: yaml.ScalarNode) -> None:
        self.key: str = node.value
        super().__init__(None, None, f"the key {self.key!r} occurs twice", node.start_mark)


@dataclass(slots=True)
class _Part:
    """The number of values in a node, itself included, and how deep it nests."""

    values: int = 1
    depth: int = 0
    anchor: str | None = None


def require_bounded(events: Iterable[yaml.Event]) -> None:
    """Raise yaml.MarkedYAMLError for too deep nesting, too much repetition by aliases, or a loop.

    It is also raised for a character that no store keeps, which an escape may stand for.
    """
    anchored: dict[str | None, _Part] = {}
    around: list[_Part] = []
    repeated = 0
    for event in events:
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(_Part(depth=1, anchor=anchor))
            if len(around) > DEEPEST:
                raise _refused(TOO_DEEP, event)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            part = around.pop()
            anchor = part.anchor
        elif isinstance(event, yaml.ScalarEvent):
            if found := UNKEPT.search(event.value):
                raise _refused(refused_character(found[0]), event)
            part = _Part(1 + len(event.value) // _CHARACTERS)
        elif isinstance(event, yaml.AliasEvent):
            if any(outer.anchor == anchor for outer in around):
                raise _refused(f"the alias *{anchor} is inside what it stands for", event)
            # An alias without an anchor is refused later, when the nodes are put together.
            part = anchored.get(anchor, _Part())
            repeated += part.values
            if repeated > MOST_REPEATED:
                raise _refused(f"aliases repeat more than {MOST_REPEATED:,} values", event)
            if len(around) + part.depth > DEEPEST:
                raise _refused(TOO_DEEP, event)
        else:
            continue
        if anchor is not None:
            anchored[anchor] = part
        if around:
            around[-1].values += part.values
            around[-1].depth = max(around[-1].depth, part.depth + 1)


def _refused(text: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=event.start_mark)
