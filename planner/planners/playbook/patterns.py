# SPDX-License-Identifier: Apache-2.0
"""Ansible's patterns of hosts: which hosts of an inventory they name, and in which order."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

#: The group that has all hosts.
ALL = "all"
#: Hosts that Ansible knows without an inventory.
LOCAL = ("localhost", "127.0.0.1", "::1")
_SUBSCRIPT = re.compile(r"(.+)\[(?:(-?[0-9]+)|([0-9]+)[:-]([0-9]*))\]")
_SPECIAL = frozenset(".?*[")


class Inventory:
    """The hosts of each group, in Ansible's order; the group ``all`` has all of them."""

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self.groups = groups
        self.hosts = dict.fromkeys(host for hosts in groups.values() for host in hosts)
        if ALL in groups:
            self.hosts = dict.fromkeys((*groups[ALL], *self.hosts))
        self._found: dict[str, list[str]] = {}
        #: The patterns that matched neither a group nor a host, without ``all``.
        self.unmatched: dict[str, None] = {}

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """Return the hosts that patterns name, each once, in the order in which Ansible takes them.

        Whatever their order, those with ``&`` come after the others, and those with ``!`` last.
        Raises ValueError with a sentence for a pattern that is none.

        >>> inventory = Inventory({"web": ["w1", "w2", "w3"], "db": ["d1", "w1"]})
        >>> inventory.matching(["db:web[1:]"]), inventory.matching(["!w2", "w*", "&db"])
        (['d1', 'w1', 'w2', 'w3'], ['w1'])
        """
        parts = [part for pattern in patterns for part in _split(pattern)]
        narrowing = [p for sign in "&!" for p in parts if p.startswith(sign)]
        found = dict[str, None]()
        for part in [p for p in parts if p[0] not in "&!"] or [ALL]:
            found |= dict.fromkeys(self._one(part))
        for part in narrowing:
            those = set(self._one(part[1:]))
            found = {host: None for host in found if (host in those) == (part[0] == "&")}
        return [*found]

    def _one(self, pattern: str) -> list[str]:
        if pattern in self.hosts:
            return [pattern]
        if pattern not in self._found:
            self._found[pattern] = self._part(pattern)
        return self._found[pattern]

    def _part(self, pattern: str) -> list[str]:
        """Return the hosts of one pattern, of which a subscript may take some."""
        subscript = None if pattern.startswith("~") else _SUBSCRIPT.fullmatch(pattern)
        if not subscript:
            return self._named(pattern)
        name, one, first, last = subscript.groups()
        found = self._named(name)
        if one is None or not found:
            return found[int(first or 0) : int(last) + 1 if last else None]
        if not -len(found) <= int(one) < len(found):
            raise ValueError(f"{pattern!r} is beyond the {len(found)} hosts of {name!r}")
        return [found[int(one)]]

    def _named(self, name: str) -> list[str]:
        """Return the hosts of all groups of a name, or of that name; it may be a wildcard."""
        try:
            match = re.compile(name[1:] if name[:1] == "~" else fnmatch.translate(name)).match
        except re.error as reason:
            raise ValueError(f"{name!r} is not a pattern: {reason}") from reason
        groups = [group for group in (ALL, *self.groups) if match(group)]
        found = [host for g in groups for host in (self.hosts if g == ALL else self.groups[g])]
        if not groups or name[:1] == "~" or _SPECIAL.intersection(name):
            found += filter(match, self.hosts)
        if not found and name in LOCAL:
            found = [name]
        if not found and not groups:
            self.unmatched[name] = None
        return [*dict.fromkeys(found)]


def _split(pattern: str) -> list[str]:
    """Return the parts of a pattern, which commas or colons outside of brackets separate.

    >>> _split("a[0:1]:&b"), _split("a, b:c"), _split("::1")
    (['a[0:1]', '&b'], ['a', 'b:c'], ['::1'])
    """
    if "," in pattern:
        parts = pattern.split(",")
    elif pattern in LOCAL:
        parts = [pattern]
    else:
        parts = re.findall(r"(?:[^\s:\[\]]|\[[^\]]*\])+", pattern)
    return [part for part in map(str.strip, parts) if part.lstrip("&!")]
