# SPDX-License-Identifier: Apache-2.0
"""Changes documents as somebody might, by mistake or on purpose. Pure: chance is a parameter."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import yaml

#: Values that no field of a document expects.
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    -(10**320),
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "last",
    "%",
    "--help",
    "a\x1b[2Jb",
    "\x9b31m",
    "\u202egnp.exe",
    "\u200b",
    "a\nb\tc\rd",
    "\u0663",
    "x" * 5000,
    "../../etc/passwd",
    "$(id)",
    "0001-01-01T00:00:00+14:00",
    "2026-02-30T00:00:00Z",
    [],
    {},
    [[[]]],
    {"a": {"b": {}}},
    {"": ""},
    ["a", 1, None],
)
#: Pieces of text that mean something to YAML, JSON or a terminal.
PIECES = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1b]0;x\x07",
        b"\t",
        b"\r",
        b"\n\n",
        b"---\n",
        b"...",
    ),
    *(b"&a [*a]", b"*unknown", b"<<: ", b"!!python/object:os.system ", b"!!binary x", b"? ", b": "),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b"'",
        b'"',
        b"|",
        b">",
        b"- ",
        b"#",
        b"%",
        b"@",
        b"`",
        b"\xe2\x80\xae",
    ),
)

Path = tuple[Any, ...]


def mutated(document: bytes, chance: Random) -> bytes:
    """Return the document with one to three changes, in its text or in what it says."""
    for _ in range(chance.randint(1, 3)):
        document = chance.choice((_text, _tree, _tree))(document, chance)
    return document


def _text(document: bytes, chance: Random) -> bytes:
    """Change the text, whatever it says."""
    start = chance.randrange(len(document) + 1)
    end = min(len(document), start + chance.choice((0, 1, 1, 5, 80)))
    piece = chance.choice(
        (b"", bytes([chance.randrange(256)]), chance.choice(PIECES), document[start:end] * 2)
    )
    return document[:start] + piece + document[end:]


def _tree(document: bytes, chance: Random) -> bytes:
    """Change what it says; the text is changed instead if it says nothing, or too much."""
    try:
        value = yaml.load(document, yaml.CSafeLoader)
        paths = list(_paths(value))
        change: Callable[[Any, Path, Random], None] = chance.choice(
            (_replace, _replace, _remove, _rename, _repeat, _move)
        )
        root = [copy.deepcopy(value)]
        change(root, chance.choice(paths), chance)
        if chance.random() < 0.3:
            return json.dumps(root[0]).encode()
        return bytes(yaml.dump(root[0], Dumper=yaml.CSafeDumper, encoding="utf-8", sort_keys=False))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return _text(document, chance)


def _paths(value: Any, path: Path = (0,)) -> Iterator[Path]:
    """List where values stand; a document is the only item of a list."""
    yield path
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if _is_list(value) else ()
    )
    for key, inside in items:
        yield from _paths(inside, (*path, key))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _around(root: Any, path: Path) -> tuple[Any, Any]:
    """Return the list or mapping that holds what stands at a path, and its key in there."""
    for key in path[:-1]:
        root = root[key]
    return root, path[-1]


def _replace(root: Any, path: Path, chance: Random) -> None:
    holder, key = _around(root, path)
    holder[key] = chance.choice(HOSTILE)


def _remove(root: Any, path: Path, chance: Random) -> None:
    holder, key = _around(root, path)
    if len(path) > 1:
        del holder[key]


def _rename(root: Any, path: Path, chance: Random) -> None:
    holder, key = _around(root, path)
    if isinstance(holder, dict):
        text = str(key)
        other = chance.choice((*HOSTILE[9:21], text[:-1], text + text[-1:], text.upper(), 1, None))
        holder[other] = holder.pop(key)


def _repeat(root: Any, path: Path, chance: Random) -> None:
    holder, key = _around(root, path)
    if _is_list(holder) and len(path) > 1:
        holder += [holder[key]] * chance.choice((1, 3, 200))
    else:
        holder[key] = [holder[key]] * 2


def _move(root: Any, path: Path, chance: Random) -> None:
    holder, key = _around(root, path)
    other, place = _around(root, chance.choice(list(_paths(root[0]))))
    holder[key] = copy.deepcopy(other[place])
