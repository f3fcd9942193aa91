# SPDX-License-Identifier: Apache-2.0
"""Counts what each action still waits for. Pure; linear in links and sizes of the groups.

A topological order that is driven from outside, as in graphlib, with groups of alternatives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence


class _Group:
    """One set of alternatives: open until one of it succeeded, or all of it has ended."""

    __slots__ = ("left", "open", "waiting")

    def __init__(self, size: int) -> None:
        self.left, self.open = size, True
        self.waiting: list[str] = []


class Countdown:
    """Tracks how many links and groups each name still waits for.

    ``after`` maps each name to its successors. ``alternatives`` maps a name to groups; one member
    of each has to succeed, or all have to end. An empty group is ignored; a group that several
    names share is counted once.

    >>> countdown = Countdown({"a": ["c"], "b": ["c"], "c": [], "d": []}, {"d": [("a", "b")]})
    >>> countdown.due(), countdown.passed("a"), countdown.passed("b")
    (['a', 'b'], ['d'], ['c'])
    """

    def __init__(
        self,
        after: Mapping[str, Sequence[str]],
        alternatives: Mapping[str, Iterable[tuple[str, ...]]],
    ) -> None:
        self._after = after
        self._left = dict.fromkeys(after, 0)
        for names in after.values():
            for name in names:
                self._left[name] += 1
        self._groups: defaultdict[str, list[_Group]] = defaultdict(list)
        known: dict[tuple[str, ...], _Group] = {}
        for name, sets in alternatives.items():
            for members in filter(None, sets):
                if members not in known:
                    known[members] = _Group(len(set(members)))
                    for member in set(members):
                        self._groups[member].append(known[members])
                known[members].waiting.append(name)
                self._left[name] += 1

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the graph."""
        return name in self._left

    def due(self) -> list[str]:
        """Return the names that wait for nothing."""
        return [name for name, left in self._left.items() if not left]

    def passed(self, name: str, well: bool = True) -> list[str]:
        """Record that a name ended; return the names that now wait for nothing.

        A name that is not in the graph counts for its groups.
        """
        due = self._less(self._after.get(name, ()))
        for group in self._groups.get(name, ()):
            group.left -= 1
            if group.open and (well or not group.left):
                group.open = False
                due += self._less(group.waiting)
        return due

    def _less(self, names: Iterable[str]) -> list[str]:
        left, due = self._left, []
        for name in names:
            left[name] -= 1
            if not left[name]:
                due.append(name)
        return due
