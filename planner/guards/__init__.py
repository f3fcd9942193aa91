# SPDX-License-Identifier: Apache-2.0
"""The guards of a plan: the conditions under which it may start and continue. Pure.

They come from the field ``guards`` of a document, and ``--set`` replaces single ones. The
configuration may add guards; of two the stricter one holds. :mod:`applier.guarding` enforces them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from planner.guards import blast_radius, failure_budget, windows
from planner.guards.blast_radius import Bounds, Share
from planner.schemas import ranges

#: The largest number of approvals that can be demanded.
MOST_APPROVALS = 100
#: The kinds of rules in ``approvals_for``: for a planner, a number of actions, a label.
PLANNER, SIZE, LABEL = "planner", "size", "label"


class Guards(NamedTuple):
    """The guards of a plan, or of a site; the defaults demand nothing.

    ``approvals`` is the number of people who must have approved a plan; with
    ``approval_by_another`` its creator is not one of them. ``approval_max_age_s`` is the largest
    age of its facts at its first start. ``labels`` are words for which the configuration may demand
    more approvals. ``blast_radius`` bounds what a plan may touch in all, ``blast_radius_at_once``
    what it may touch at one time, which its limits ensure. An action starts only while one window
    of each group in ``windows`` is open. Once more actions fail than ``failure_budget`` allows, no
    more actions start. ``extent`` is not a guard: it is how much a plan touches, if its facts were
    read from a cloud.
    """

    approvals: int = 0
    approval_by_another: bool = False
    approval_max_age_s: float | None = None
    labels: tuple[str, ...] = ()
    blast_radius: Bounds = ()
    blast_radius_at_once: Bounds = ()
    windows: tuple[tuple[str, ...], ...] = ()
    failure_budget: tuple[str, ...] = ()
    extent: tuple[Share, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as JSON types.

        >>> Guards(approvals=1, labels=("prod",)).to_dict()
        {'approvals': 1, 'labels': ['prod']}
        """
        pairs = zip(self._fields, self, NO_GUARDS, strict=True)
        return {
            name: _WRITERS[name](value) if name in _WRITERS else value
            for name, value, none in pairs
            if value != none
        }

    def demands(self) -> dict[str, Any]:
        """Return the fields that demand something, as JSON types: all but ``extent``."""
        return self._replace(extent=()).to_dict()

    @property
    def by_words(self) -> str:
        """The demanded approvals in words.

        >>> Guards(approvals=2, approval_by_another=True).by_words
        '2 approvals by others than its creator'
        """
        plural = "" if self.approvals == 1 else "s"
        another = "somebody else" if self.approvals == 1 else "others"
        who = f" by {another} than its creator" if self.approval_by_another else ""
        return f"{self.approvals} approval{plural}{who}"


#: The functions that convert fields to JSON types; the values of other fields have them already.
_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "labels": list,
    "blast_radius": blast_radius.to_dict,
    "blast_radius_at_once": blast_radius.to_dict,
    "failure_budget": list,
    # A plan itself has one group of windows.
    "windows": lambda groups: list(groups[0]),
    "extent": lambda shares: {share.name: [share.touched, share.total] for share in shares},
}
#: The guards of a plan that demands nothing.
NO_GUARDS = Guards()

_LABEL = {"type": "string", "pattern": r"^[^\s=,]+$", "maxLength": 255, "title": "a label: a word"}
#: The schema of the part ``guards`` of a document, and of a plan.
SCHEMA: dict[str, Any] = {
    "description": "What must hold before this runs; the configuration may demand more.",
    **ranges.mapping(
        approvals={
            **ranges.COUNT,
            "maximum": MOST_APPROVALS,
            "description": "How many people must approve it.",
        },
        approval_by_another={
            "type": "boolean",
            "description": "The creator of the plan cannot approve it.",
        },
        approval_max_age_s={
            **ranges.POSITIVE_SECONDS_OR_NULL,
            "description": "How old its facts may be when it starts.",
        },
        labels=ranges.list_of(_LABEL, description="Words that say what kind of plan it is."),
        blast_radius={
            **blast_radius.SCHEMA,
            "description": "How much it may touch in all: of hosts, instances, a group, a label.",
        },
        blast_radius_at_once={
            **blast_radius.SCHEMA,
            "description": "How much it may touch at once; it becomes limits of the plan.",
        },
        failure_budget={
            **failure_budget.SCHEMA,
            "description": "How many may fail before the plan is paused.",
        },
        windows={**windows.SCHEMA, "description": "When its actions may start, if not always."},
    ),
}
_EXTENT = ranges.by_token(
    ranges.list_of(ranges.COUNT, minItems=2, maxItems=2),
    description="How many of what it touches, and of how many.",
)
#: The schema of the field ``guards`` of a plan.
SCHEMA_OF_A_PLAN: dict[str, Any] = {
    **SCHEMA,
    "properties": {**SCHEMA["properties"], "extent": _EXTENT},
}


def of(value: Mapping[str, Any]) -> Guards:
    """Convert a mapping that fits :data:`SCHEMA_OF_A_PLAN` to guards; raises TypeError, ValueError.

    >>> of({"approvals": 1}) == Guards(approvals=1)
    True
    """
    return Guards(
        **{name: _READERS[name](one) if name in _READERS else one for name, one in value.items()}
    )


def _group(value: str | Sequence[str]) -> tuple[tuple[str, ...], ...]:
    found = windows.windows(value)
    return (found,) if found else ()


#: The functions that read fields from JSON types or, all but the last two, from a text.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "blast_radius": blast_radius.bounds,
    "blast_radius_at_once": blast_radius.bounds,
    "failure_budget": failure_budget.budgets,
    "windows": _group,
    "labels": lambda labels: tuple(dict.fromkeys(map(str, labels))),
    "extent": lambda shares: tuple(Share(name, *share) for name, share in shares.items()),
}


def both(one: Guards, other: Guards) -> Guards:
    """Combine guards so that both hold: the stricter values, and all labels, windows and budgets.

    >>> both(Guards(approvals=1, approval_max_age_s=9), Guards(approval_max_age_s=5))
    Guards(approvals=1, approval_by_another=False, approval_max_age_s=5, labels=(), \
blast_radius=(), blast_radius_at_once=(), windows=(), failure_budget=(), \
extent=())
    """
    ages = [s for s in (one.approval_max_age_s, other.approval_max_age_s) if s is not None]
    return Guards(
        approvals=max(one.approvals, other.approvals),
        approval_by_another=one.approval_by_another or other.approval_by_another,
        approval_max_age_s=min(ages, default=None),
        labels=tuple(dict.fromkeys((*one.labels, *other.labels))),
        blast_radius=blast_radius.stricter(one.blast_radius, other.blast_radius),
        blast_radius_at_once=blast_radius.stricter(
            one.blast_radius_at_once, other.blast_radius_at_once
        ),
        windows=tuple(dict.fromkeys((*one.windows, *other.windows))),
        failure_budget=tuple(dict.fromkeys((*one.failure_budget, *other.failure_budget))),
        extent=one.extent or other.extent,
    )


def approvals_for(text: str | Mapping[str, object]) -> dict[str, int]:
    """Parse rules for the number of approvals; raises ValueError that names each wrong part.

    ``size:100=2`` demands 2 approvals of a plan with 100 actions or more.

    >>> approvals_for("planner:events=1, size:100=2, label:prod=1")
    {'planner:events': 1, 'size:100': 2, 'label:prod': 1}
    """
    expected = "planner:NAME=N, size:ACTIONS=N or label:LABEL=N with N of 0 to"
    return dict(ranges.pairs(text, _rule, f"{expected} {MOST_APPROVALS}"))


def _rule(what: str, number: str) -> tuple[str, int] | None:
    kind, _, name = what.partition(":")
    is_size = kind == SIZE and ranges.whole_number(name) is not None
    has_kind = bool(name) and (kind in (PLANNER, LABEL) or is_size)
    if not (has_kind and re.fullmatch("[0-9]{1,3}", number)) or int(number) > MOST_APPROVALS:
        return None
    return what, int(number)


def approvals_of(
    rules: Mapping[str, int], *, planner: str, size: int, labels: Iterable[str]
) -> int:
    """Return how many approvals the rules demand of a plan: the largest number that applies.

    >>> rules = {"planner:events": 1, "size:100": 2, "label:prod": 3}
    >>> [approvals_of(rules, planner="events", size=n, labels=()) for n in (99, 100)]
    [1, 2]
    """
    words = {f"{PLANNER}:{planner}", *(f"{LABEL}:{label}" for label in labels)}
    found = [
        number
        for what, number in rules.items()
        if what in words or (what.startswith(f"{SIZE}:") and size >= int(what[len(SIZE) + 1 :]))
    ]
    return max(found, default=0)


def labels_of(rules: Mapping[str, int]) -> list[str]:
    """Return the labels that the rules of :func:`approvals_for` name, in their order.

    >>> labels_of({"size:100": 2, "label:prod": 3, "label:rack/r1": 1})
    ['prod', 'rack/r1']
    """
    return [what.removeprefix(f"{LABEL}:") for what in rules if what.startswith(f"{LABEL}:")]


#: The guards that ``--set`` may replace, with the form of their values in messages.
SETTABLE = {
    "approvals": f"a whole number of 0 to {MOST_APPROVALS}",
    "approval_by_another": "true or false",
    "approval_max_age_s": "a number of seconds above 0",
    "blast_radius": blast_radius.EXPECTED,
    "blast_radius_at_once": blast_radius.EXPECTED,
    "windows": windows.EXPECTED,
    "failure_budget": failure_budget.EXPECTED,
}


def read_setting(name: str, text: str) -> Any:
    """Parse the value of one guard, a key of SETTABLE, from ``--set``; raises ValueError.

    >>> read_setting("approvals", "2"), read_setting("approval_by_another", "true")
    (2, True)
    """
    if name == "approvals" and re.fullmatch("[0-9]{1,3}", text) and int(text) <= MOST_APPROVALS:
        return int(text)
    if name == "approval_by_another" and text in ("true", "false"):
        return text == "true"
    if name in _READERS:
        return _READERS[name](text)
    seconds = float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text) else 0.0
    if name == "approval_max_age_s" and 0 < seconds <= ranges.LONGEST_S:
        return seconds
    raise ValueError(f"{text!r} is not {SETTABLE[name]}")
