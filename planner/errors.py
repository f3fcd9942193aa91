# SPDX-License-Identifier: Apache-2.0
"""The errors of planning: each has its facts as attributes, and one sentence as its text.

::

    PlannerError
    ├── InvalidInput          all mistakes in one document, its options and its action types
    ├── UnknownPlugin         no planner or action type of that name
    ├── AmbiguousPlugin       two installed distributions offer the same name
    ├── BrokenPlugin          a plugin that cannot be imported, or breaks its contract
    ├── InvalidPlan           actions with links that are unknown, duplicate or on a cycle
    └── InvalidTransition     a change of state that is not allowed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

Path = tuple[str | int, ...]

#: If there are more accepted names than this, a message counts them instead of listing them.
_LISTED = 40


class PlannerError(Exception):
    """The base class of all errors of planning.

    The message says what is wrong, where it is, and which values are accepted.
    """


def path_text(path: Path) -> str:
    """Write a path inside a document as text.

    >>> path_text(("actions", 3, "input_parameters", "flavor"))
    'actions[3].input_parameters.flavor'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def accepted(name: object, known: Iterable[str]) -> str:
    """Return the hint of a message: the most similar name, then all accepted names, sorted.

    If there are very many names, only the three most similar and the number are given.

    >>> accepted("migrte", ["resize", "migrate"])
    "did you mean 'migrate'? Known: migrate, resize"
    >>> accepted("web-7x", [f"web-{i}" for i in range(500)])
    "did you mean 'web-7' or 'web-97' or 'web-87'? Known: 500 names, such as web-0, web-1, web-10"
    """
    import difflib

    names = sorted(known)
    many = len(names) > _LISTED
    near = difflib.get_close_matches(str(name), names, n=3 if many else 1)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    if many:
        return f"{hint}Known: {len(names)} names, such as {', '.join(names[:3])}"
    return f"{hint}Known: {', '.join(names) or 'none'}"


@dataclass(frozen=True)
class Mistake:
    """One mistake in an input.

    ``path`` is the path of the value in the document, from its root. ``place`` is the file and line
    or the option (``plan.yaml:7``, ``[watcher_planners.weight] weights``), if that is known.

    >>> print(Mistake("no such flavor", ("actions", 3)))
    actions[3]: no such flavor
    """

    text: str
    path: Path = ()
    place: str | None = None

    def __str__(self) -> str:
        inside = path_text(self.path)
        if self.place and inside:
            return f"{self.place}: {inside}: {self.text}"
        return f"{self.place or inside or 'document'}: {self.text}"


class InvalidInput(PlannerError):
    """All mistakes in a document and in the options given with it, in document order.

    ``mistakes`` is a tuple of :class:`Mistake`, never empty.
    """

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes: Sequence[Mistake] = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))

    def located(self, locate: Callable[[Path], str | None]) -> InvalidInput:
        """Return the same error, with a place from ``locate`` for each mistake that has none."""
        return InvalidInput(
            m if m.place else replace(m, place=locate(m.path)) for m in self.mistakes
        )


class UnknownPlugin(PlannerError):
    """No plugin of that name is installed. ``known`` lists the installed ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(sorted(known))
        super().__init__(f"no {what} {name!r}; {accepted(name, self.known)}")


class AmbiguousPlugin(PlannerError):
    """Several installed distributions offer the same name."""

    def __init__(self, what: str, name: str, distributions: Iterable[str]) -> None:
        self.what, self.name, self.distributions = what, name, tuple(sorted(distributions))
        super().__init__(
            f"{what} {name!r} is offered by {' and '.join(self.distributions)}; "
            "uninstall one of them"
        )


class BrokenPlugin(PlannerError):
    """An installed plugin cannot be used. ``reason`` says why."""

    def __init__(self, what: str, name: str, reason: str) -> None:
        self.what, self.name, self.reason = what, name, reason
        super().__init__(f"{what} {name!r} cannot be used: {reason}")


class InvalidPlan(PlannerError):
    """The links of a plan are wrong. ``problems`` holds one sentence for each problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class InvalidTransition(PlannerError):
    """A change of state that is not allowed.

    ``what`` and ``uuid`` name the plan or action. ``accepted`` are the states that may
    become ``new``.
    """

    def __init__(
        self, what: str, uuid: str, old: str, new: str, accepted: Iterable[str], who: str
    ) -> None:
        self.what, self.uuid, self.old, self.new, self.who = what, uuid, old, new, who
        self.accepted = tuple(accepted)
        frm = f"only {', '.join(self.accepted)}" if self.accepted else "nothing"
        super().__init__(f"{what} {uuid[:8]} is {old}: {frm} can become {new}")
