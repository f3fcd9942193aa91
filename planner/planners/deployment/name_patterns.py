# SPDX-License-Identifier: Apache-2.0
"""Patterns for task names and roles: a plain name, a regular expression, or one in slashes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import cache

from planner.errors import MOST_SHOWN

Test = Callable[[str], object]

#: A pattern of only these characters matches nothing but itself, even as a regular expression.
_PLAIN = re.compile(r"[\w:@/ -]*")


@cache
def compiled(pattern: str, form: str = "{}") -> Test:
    """Return a function that tells whether a text has a match of a regular expression.

    ``form`` says where: ``^(?:{})$`` is all of the text. It takes time linear in the text. Raises
    ``re.error``, also for what cannot be found in that time: look-around, references to groups.

    >>> compiled("^(primary-)?database$")("primary-database"), compiled("(a+)+b")("a" * 1000)
    (True, False)
    """
    import jsonschema_rs  # most documents have plain names alone

    try:
        re.compile(pattern)  # which says best what is wrong
    except (OverflowError, RecursionError) as reason:
        raise re.error(str(reason)) from None
    linear = jsonschema_rs.RegexOptions()
    try:
        return jsonschema_rs.Draft202012Validator(
            {"pattern": form.format(pattern)}, pattern_options=linear
        ).is_valid
    except ValueError:
        text = "it uses look-around, a reference to a group, or what JavaScript does not know"
        raise re.error(text) from None


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
                self._tests[pattern] = compiled(pattern[1:-1], "^(?:{})")
            else:
                whole = compiled(pattern, "^(?:{})$")
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


def near(name: str, known: Iterable[str], told: Sized = ()) -> str:
    """Return a "did you mean" with the most similar known name, or an empty text.

    After 20 of what is ``told`` already, none is looked for: it takes long among many names.

    >>> near("netconfg", ["hiera", "netconfig"])
    "; did you mean 'netconfig'?"
    """
    found = difflib.get_close_matches(name, known, n=1) if len(told) < MOST_SHOWN else ()
    return f"; did you mean {found[0]!r}?" if found else ""
