# SPDX-License-Identifier: Apache-2.0
"""Finds boxes of one lane that can be merged: boxes with equal lines, and chains of boxes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

from planner.render.drawn_graph import Line


def siblings(boxes: Mapping[str, Hashable], lines: Sequence[Line]) -> dict[str, str]:
    """Map each box to the first one with an equal key and equal lines.

    >>> lines = [Line("a", "x", "need"), Line("a", "y", "need"), Line("a", "z", "order")]
    >>> siblings({"a": 0, "x": 1, "y": 1, "z": 1}, lines)
    {'a': 'a', 'x': 'x', 'y': 'x', 'z': 'z'}
    """
    before: dict[str, set[Hashable]] = defaultdict(set)
    after: dict[str, set[Hashable]] = defaultdict(set)
    for tail, head, kind, label in lines:
        before[head].add((tail, kind, label))
        after[tail].add((head, kind, label))
    firsts: dict[Hashable, str] = {}
    found = {}
    for name, key in boxes.items():
        alone = not before[name] and not after[name]
        around = (key, frozenset(before[name]), frozenset(after[name]), name if alone else "")
        found[name] = firsts.setdefault(around, name)
    return found


def chains(boxes: Mapping[str, Hashable], lines: Sequence[Line]) -> dict[str, str]:
    """Map each box to the first of its chain: boxes with equal keys and a single line between them.

    ``boxes`` are in schedule order.

    >>> lines = [Line("a", "b", "need"), Line("b", "c", "need"), Line("c", "d", "need")]
    >>> chains({"a": 1, "b": 1, "c": 1, "d": 2}, lines)
    {'a': 'a', 'b': 'a', 'c': 'a', 'd': 'd'}
    """
    heads = Counter(line.head for line in lines)
    tails = Counter(line.tail for line in lines)
    before = {
        line.head: line.tail
        for line in lines
        if line.kind in ("need", "order")
        and heads[line.head] == tails[line.tail] == 1
        and line.tail in boxes
        and boxes.get(line.head) == boxes[line.tail]
    }
    found: dict[str, str] = {}
    for name in boxes:
        way = [name]
        while way[-1] in before and way[-1] not in found:
            way.append(before[way[-1]])
        first = found.get(way[-1], way[-1])
        found.update(dict.fromkeys(way, first))
    return {name: found[name] for name in boxes}


def merged(lines: Sequence[Line], firsts: Mapping[str, str]) -> list[Line]:
    """Return the lines with their ends replaced by ``firsts``, without duplicates and loops."""
    moved = (
        line._replace(tail=firsts.get(line.tail, line.tail), head=firsts.get(line.head, line.head))
        for line in lines
    )
    return list(dict.fromkeys(line for line in moved if line.tail != line.head))
