# SPDX-License-Identifier: Apache-2.0
"""Patterns for task names and roles: a plain name, a regular expression, or one in slashes."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

Test = Callable[[str], object]

#: A pattern of only these characters matches nothing but itself, even as a regular expression.
_PLAIN = re.compile(r"[\w:@/ -]*")


#: A repeated group, or the flag with which spaces may stand before the repetition.
_REPEATED_GROUP = re.compile(r"\)[*+{]|\(\?\w*x")
#: The most ways through the alternatives of a regular expression.
_MOST_CHOICES = 1 << 16


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression; raises ``re.error`` also for one that may take for ever.

    >>> compiled("^(primary-)?database$").match("primary-database")
    <re.Match object; span=(0, 16), match='primary-database'>
    >>> compiled("(a+)+b")
    Traceback (most recent call last):
    re.error: it repeats a group, which may take for ever
    """
    if _REPEATED_GROUP.search(pattern):
        raise re.error("it repeats a group, which may take for ever")
    if choices(pattern) > _MOST_CHOICES:
        raise re.error("it has too many alternatives ('?', '|'), and may take for ever")
    return re.compile(pattern)


def choices(pattern: str) -> int:
    """Return how many ways there are at most through the alternatives of a regular expression.

    >>> choices("(a|b|c)?(d|e)")
    12
    """
    return math.prod(1 + part.count("|") for part in pattern.split("(")) << pattern.count("?")


class Patterns:
    """Compiles patterns; one that :func:`compiled` does not accept raises ``re.error``.

    ``/x/`` is Fuel's form: the expression has to match at the start of the name, and the name may
    go on after the match. A pattern without slashes has to equal the name, or to match all of it as
    an expression; with ``exact`` it has to be equal.

    >>> names = ["db", "db-check", "primary-db", "db+api"]
    >>> [Patterns().among(names, p) for p in ("/db/", "db", ".*db", "/.*db$/", "db+api")]
    [['db', 'db-check', 'db+api'], ['db'], ['db', 'primary-db'], ['db', 'primary-db'], ['db+api']]
    >>> Patterns(exact=True).among(names, ".*db")
    []
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self._tests: dict[str, Test] = {}

    def test(self, pattern: str) -> Test:
        """Return a function that returns a true value for each name that matches the pattern."""
        if pattern not in self._tests:
            if self.is_plain(pattern):
                self._tests[pattern] = pattern.__eq__
            elif pattern[0] == pattern[-1] == "/":
                self._tests[pattern] = compiled(pattern[1:-1]).match
            else:
                whole = compiled(pattern).fullmatch
                self._tests[pattern] = lambda name: name == pattern or whole(name)
        return self._tests[pattern]

    def is_plain(self, pattern: str) -> bool:
        """Return whether a pattern can match no name but itself."""
        if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
            return False
        return self._exact or pattern == "*" or _PLAIN.fullmatch(pattern) is not None

    def among(self, names: Iterable[str], pattern: str) -> list[str]:
        """List the names that match, in their order."""
        test = self.test(pattern)
        return [name for name in names if test(name)]

    def index(self, names: Mapping[str, object]) -> Callable[[str], Sequence[str]]:
        """Return a function that lists the names that match a pattern; each is searched once."""

        @cache
        def matching(pattern: str) -> Sequence[str]:
            if self.is_plain(pattern):
                return [pattern] if pattern in names else []
            return self.among(names, pattern)

        return matching


def near(name: str, known: Iterable[str]) -> str:
    """Return a "did you mean" with the most similar known name, or an empty text.

    >>> near("netconfg", ["hiera", "netconfig"])
    "; did you mean 'netconfig'?"
    """
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
