# SPDX-License-Identifier: Apache-2.0
"""Conditions of tasks: ``settings:storage.ceph == true and not (settings:a.b == 'x')``.

Comparisons (``==``, ``!=``, ``in``) of values, combined with ``not``, ``and``, ``or`` and
parentheses. A value is a quoted text, a number, ``true``, ``false``, ``null``, an unquoted word
(read as a text), or a path in the settings. A parser turns a condition into closures;
nothing is executed as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

#: Called with each path that is not in the settings.
Missing = Callable[[str], None]
_Value = Callable[[Mapping[str, Any], Missing], Any]

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<sign>==|!=|\(|\))
  | (?P<path>[A-Za-z_][\w-]*:[\w.-]+\??)
  | (?P<number>-?[0-9]{1,18}(?:\.[0-9]+)?(?![\w.-]))
  | (?P<text>'[^']*'|"[^"]*")
  | (?P<word>[A-Za-z_][\w.-]*)
  )""",
    re.VERBOSE,
)
_WORDS = {"true": True, "false": False, "null": None}
_KEYWORDS = ("and", "or", "not", "in")
#: How strongly operators bind; ``not`` stands between.
_BINDS, _NOT = {"or": 1, "and": 2, "==": 4, "!=": 4, "in": 4}, 3
#: The maximum nesting of parentheses and ``not``.
DEEPEST = 100


class InvalidCondition(ValueError):
    """A condition that cannot be parsed; the message describes the first error in it."""


class Condition:
    """A parsed condition; the constructor raises :class:`InvalidCondition`.

    >>> Condition("settings:a.b == 1 or not settings:a.c").holds({"a": {"b": 2, "c": False}})
    True
    >>> Condition("settings:a.b == 'x' and")
    Traceback (most recent call last):
    planner.planners.deployment.conditions.InvalidCondition: a value is expected at the end
    """

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = self._depth = 0
        self._value = self._read()
        if self._kind() != "end":
            raise InvalidCondition(f"'and', 'or' or the end is expected at {self._shown()}")

    def holds(self, settings: Mapping[str, Any], missing: Missing = lambda _: None) -> bool:
        """Return whether the condition is true.

        A path that is not in the settings has the value null. It is passed to ``missing``, unless
        it ends with ``?``.
        """
        return bool(self._value(settings, missing))

    def _kind(self) -> str:
        kind, text = self._tokens[self._at]
        return text if kind in ("sign", "keyword") else kind

    def _shown(self) -> str:
        text = self._tokens[self._at][1]
        return repr(text) if text else "the end"

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _read(self, least: int = 1) -> _Value:
        """Read values, and the operators between them that bind as ``least`` does or more."""
        most = 4
        if self._kind() == "not" and least <= _NOT:
            value, most = _not(self._nested(_NOT)), _NOT
        elif self._kind() == "(":
            value = self._nested(1)
            if self._kind() != ")":
                raise InvalidCondition(f"')' is expected at {self._shown()}")
            self._next()
        else:
            value = self._operand()
        while least <= (binds := _BINDS.get(self._kind(), 0)) <= most:
            sign, most = self._next(), min(binds, _NOT)  # a == b == c is no condition
            value = _joined(sign, value, self._read(binds + 1))
        return value

    def _operand(self) -> _Value:
        kind = self._kind()
        if kind not in ("path", "number", "text", "word"):
            raise InvalidCondition(f"a value is expected at {self._shown()}")
        text = self._next()
        if kind == "path":
            return _setting(text)
        constant: Any = text[1:-1] if kind == "text" else _WORDS.get(text, text)
        if kind == "number":
            constant = float(text) if "." in text else int(text)
        return lambda _, __: constant

    def _nested(self, least: int) -> _Value:
        """Read what follows a parenthesis or ``not``."""
        self._next()
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidCondition(f"parentheses are nested more than {DEEPEST} deep")
        value = self._read(least)
        self._depth -= 1
        return value


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidCondition(f"{text[at:].split()[0]!r} is not understood")
        kind = str(match.lastgroup)
        word = match[kind]
        found.append(("keyword" if kind == "word" and word in _KEYWORDS else kind, word))
        at = match.end()
    return [*found, ("end", "")]


def _setting(text: str) -> _Value:
    model, _, path = text.partition(":")
    if model != "settings":
        raise InvalidCondition(f"{text!r}: conditions read settings:PLACE, there is no {model!r}")
    optional, parts = path.endswith("?"), path.rstrip("?").split(".")

    def value(settings: Mapping[str, Any], missing: Missing) -> Any:
        found: Any = settings
        for part in parts:
            if not isinstance(found, Mapping) or part not in found:
                if not optional:
                    missing(".".join(parts))
                return None
            found = found[part]
        return found

    return value


def _equal(left: Any, right: Any) -> bool:
    # In Python True == 1; in settings they differ.
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _in(left: Any, right: Any) -> bool:
    if isinstance(right, str):
        return isinstance(left, str) and left in right
    return isinstance(right, list | tuple | Mapping) and any(_equal(left, r) for r in right)


def _not(inner: _Value) -> _Value:
    return lambda settings, missing: not inner(settings, missing)


def _joined(sign: str, left: _Value, right: _Value) -> _Value:
    if sign == "and":
        return lambda settings, missing: left(settings, missing) and right(settings, missing)
    if sign == "or":
        return lambda settings, missing: left(settings, missing) or right(settings, missing)
    compare = _COMPARE[sign]
    return lambda settings, missing: compare(left(settings, missing), right(settings, missing))


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "in": _in,
}
