# SPDX-License-Identifier: Apache-2.0
"""The errors of planning: each has its facts as attributes, and one sentence as its text.

::

    PlannerError
    ├── InvalidInput          all mistakes in one document, its options and its action types
    ├── UnknownPlugin         no planner or action type of that name
    ├── AmbiguousPlugin       two installed distributions offer the same name
    ├── BrokenPlugin          a plugin that cannot be imported, or breaks its contract
    ├── InvalidPlan           duplicate uuids or names; links that are unknown, duplicate or cyclic
    └── InvalidTransition     a change of state that is not allowed
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import NamedTuple

Path = tuple[str | int, ...]

#: If there are more accepted names than this, a message counts them instead of listing them.
_LISTED = 40
#: The most mistakes that a message shows; it counts the others.
MOST_SHOWN = 20
#: A value between quotation marks is shortened if it has more characters than this.
_LONGEST_VALUE = 100
#: The most characters of a whole message, and of a path in it; the rest is cut.
_LONGEST_TEXT, _LONGEST_PATH = 2000, 300
#: A text in quotation marks, as ``repr`` returns it. An apostrophe after a letter opens none.
_QUOTED = r"""(?s)(?<!\w)(['"])((?:(?!\1)[^\\]|\\.)*)\1"""


class PlannerError(Exception):
    """The base class of all errors of planning.

    The message names the mistake, its place, and the values that are accepted.
    """


def shown(items: Sequence[object], most: int = MOST_SHOWN) -> list[str]:
    """Return the first items as text, 20 by default, and after them how many more there are.

    >>> shown(range(22))[19:]
    ['19', 'and 2 more']
    """
    more = len(items) - most
    return [*map(str, items[:most]), *([f"and {more} more"] if more > 0 else ())]


def shortened(text: str) -> str:
    """Return a message with each long value in it shortened, followed by its length.

    >>> shortened(f"no node {'x' * 3000!r} here; did you mean 'a'?").replace("x" * 80, "x..x")
    "no node 'x..x...' (3000 characters) here; did you mean 'a'?"
    """
    return cut(re.sub(_QUOTED, _shortened_value, text), _LONGEST_TEXT)


def short(uuid: str) -> str:
    """Return the beginning of a uuid, by which messages name a plan or an action.

    >>> short("6a1f0c7e-5d2b-4c3a-9f10-b1a2c3d4e5f6")
    '6a1f0c7e'
    """
    return uuid[:8]


def cut(text: str, most: int) -> str:
    """Return a text; one of over ``most`` characters is cut to two thirds of that, plus length."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}... ({len(text)} characters)"


def _shortened_value(found: re.Match[str]) -> str:
    mark, value = found.groups()
    if len(value) <= _LONGEST_VALUE:
        return found[0]
    return f"{mark}{value[:80]}...{mark} ({len(value)} characters)"


def path_text(path: Path) -> str:
    """Return a path inside a document as text.

    >>> path_text(("actions", 3, "input_parameters", "flavor"))
    'actions[3].input_parameters.flavor'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def accepted(name: object, known: Iterable[str], told: Sized = ()) -> str:
    """Return the hint of a message: the most similar name, then all accepted names, sorted.

    Of more than 40 names, it has the three most similar, the number, and the first three. After 20
    mistakes that are ``told``, no similar name is looked for: it takes long among many names.

    >>> accepted("migrte", ["resize", "migrate"])
    "did you mean 'migrate'? Known: migrate, resize"
    >>> accepted("web-7x", [f"web-{i}" for i in range(500)])
    "did you mean 'web-7' or 'web-97' or 'web-87'? Known: 500 names, such as web-0, web-1, web-10"
    """
    import difflib

    if len(told) >= MOST_SHOWN:
        return "known names: see above"
    names = sorted(known)
    many = len(names) > _LISTED
    near = difflib.get_close_matches(str(name), names, n=3 if many else 1)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    if many:
        return f"{hint}Known: {len(names)} names, such as {', '.join(names[:3])}"
    return f"{hint}Known: {', '.join(names) or 'none'}"


class Mistake(NamedTuple):
    """One mistake in an input.

    ``path`` is the path of the value in the document, from its root. ``place`` is the file and line
    or the option (``plan.yaml:7``, ``[watcher_planners.weight] weights``), if that is known. The
    result of ``str()`` has long values shortened, ``text`` has not.

    >>> print(Mistake("no such flavor", ("actions", 3)))
    actions[3]: no such flavor
    """

    text: str
    path: Path = ()
    place: str | None = None

    def __str__(self) -> str:
        inside = cut(path_text(self.path), _LONGEST_PATH)
        place, text = shortened(self.place or ""), shortened(self.text)
        if place and inside:
            return f"{place}: {inside}: {text}"
        return f"{place or inside or 'document'}: {text}"


class InvalidInput(PlannerError):
    """All mistakes in a document and in the options given with it, in document order.

    ``mistakes`` is a tuple of :class:`Mistake`, never empty. The message shows the first 20.
    """

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes: Sequence[Mistake] = tuple(mistakes)
        super().__init__("\n".join(shown(self.mistakes)))

    def located(self, locate: Callable[[Path], str | None]) -> InvalidInput:
        """Return a copy of the error, with a place from ``locate`` for each mistake without one."""
        return InvalidInput(
            m if m.place else m._replace(place=locate(m.path)) for m in self.mistakes
        )


class UnknownPlugin(PlannerError):
    """No plugin of that name is installed. ``known`` lists the installed ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(sorted(known))
        super().__init__(f"no {what} {name!r}; {accepted(name, self.known)}")


class AmbiguousPlugin(PlannerError):
    """One name is offered more than once: ``targets`` are the classes, as ``module:Class``."""

    def __init__(self, what: str, name: str, targets: Iterable[str]) -> None:
        self.what, self.name, self.targets = what, name, tuple(sorted(targets))
        super().__init__(
            f"{what} {name!r} is offered by {' and '.join(self.targets)}; "
            "only one of them can be used"
        )


class BrokenPlugin(PlannerError):
    """An installed plugin cannot be imported, or breaks its contract: ``reason`` is the cause."""

    def __init__(self, what: str, name: str, reason: str) -> None:
        self.what, self.name, self.reason = what, name, reason
        super().__init__(f"{what} {name!r} cannot be used: {reason}")


class InvalidPlan(PlannerError):
    """The uuids, names or links of the actions of a plan are wrong.

    ``problems`` has one sentence for each problem. ``located`` has the same problems with their
    paths in the plan.
    """

    def __init__(self, located: Iterable[Mistake]) -> None:
        self.located = tuple(located)
        self.problems = tuple(problem.text for problem in self.located)
        super().__init__("; ".join(shown(self.problems)))


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
        super().__init__(f"{what} {short(uuid)} is {old}: {frm} can become {new}")
