# SPDX-License-Identifier: Apache-2.0
"""Fields of plays with their templates filled in, rounded and read as Ansible does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, UndefinedError
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from planner.errors import Mistake, Path
from planner.plan.extent import listed
from planner.planners.numbers import finite

_TRUE, _FALSE = ("y", "yes", "on", "1", "true", "t"), ("n", "no", "off", "0", "false", "f", "")


class Fields:
    """The fields of one play; mistakes are appended to a list.

    ``known`` are the variables that may be used in them: of the document, the play, its imports.
    """

    def __init__(
        self, path: Path, play: Mapping[str, Any], known: Mapping[str, Any], mistakes: list[Mistake]
    ) -> None:
        self.path, self._play, self._mistakes = path, play, mistakes
        self._known = dict(known)
        self.learn(play.get("vars"))

    def learn(self, variables: Any) -> None:
        """Take over variables that are not known yet; one that needs more than these stays out."""
        for name, value in variables.items() if isinstance(variables, Mapping) else ():
            if name not in self._known:
                try:
                    self._known[name] = filled(value, self._known)
                except TemplateError:
                    continue  # whoever uses it is told

    def wrong(self, name: str, text: str) -> None:
        """Append a mistake in a field."""
        self._mistakes.append(Mistake(text, (*self.path, name)))

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value of a field, or its default if it has none, or a mistake."""
        raw = self._play.get(name)
        if raw is None:
            return default
        try:
            return filled(raw, self._known)
        except TemplateError as reason:
            self.wrong(name, f"{reason}: give in 'variables' what it needs")
            return default

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """Return the value of a field that has one of these values, or the first of them."""
        found = str(self.value(name) or known[0]).removeprefix("ansible.builtin.")
        if found not in known:
            self.wrong(name, f"{found!r} is not one of {', '.join(known)}")
        return found

    def batches(self, hosts: Sequence[str]) -> list[Sequence[str]]:
        """Return hosts cut by the field ``serial``: the last of its sizes is that of all others.

        A percentage is rounded down, by the arithmetic of floating-point numbers, as in Ansible.
        """
        sizes = [self._size(one, len(hosts)) for one in listed(self.value("serial"))] or [0]
        found: list[Sequence[str]] = []
        first = 0
        while first < len(hosts):
            size = sizes[min(len(found), len(sizes) - 1)]
            last = first + size if size > 0 else len(hosts)
            found.append(hosts[first:last])
            first = last
        return found

    def _size(self, value: Any, hosts: int) -> int:
        text = str(value)
        try:
            return int(int(text[:-1]) / 100.0 * hosts) or 1 if text.endswith("%") else int(text)
        except ValueError:
            self.wrong("serial", f"{text!r} is neither a number of hosts nor a percentage")
            return 0

    def tolerated(self, batches: Sequence[Sequence[str]]) -> list[int]:
        """Return, for each batch, how many of its hosts may fail without ending the run."""
        most = self.value("max_fail_percentage", 100)
        try:
            percent = 0 if truth(self.value("any_errors_fatal", False)) else finite(most)
        except ValueError as reason:
            self.wrong("max_fail_percentage", f"no percentage, or no any_errors_fatal: {reason}")
            percent = 0
        return [int(min(len(b) - 1, max(0, percent) * len(b) / 100)) for b in batches]


class _Environment(SandboxedEnvironment, NativeEnvironment):
    """Templates whose values keep their types."""


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """Return a value in which templates are filled in; raises jinja2.TemplateError.

    >>> filled(["{{ n | default('20%') }}", 3], {}), filled("{{ n }}", {"n": "2"})
    (['20%', 3], 2)
    """
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if not isinstance(value, str) or not ("{{" in value or "{%" in value):
        return value
    try:
        found = _TEMPLATES.from_string(value).render(known)
        if isinstance(found, Undefined):
            str(found)  # raises
    except TemplateError:
        raise
    except Exception as reason:  # a filter may raise anything
        raise UndefinedError(str(reason)) from reason
    return found


def truth(value: Any) -> bool:
    """Return a value as Ansible takes it for true or false; raises ValueError for others.

    >>> truth("yes"), truth(0), truth("False")
    (True, False, False)
    """
    text = str(value).strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(f"{value!r} is neither true nor false")
    return text in _TRUE


_TEMPLATES = _Environment(undefined=StrictUndefined)
_TEMPLATES.filters["bool"] = truth
