# SPDX-License-Identifier: Apache-2.0
"""How much of a cloud a plan may touch: bounds, and what it does touch, as values. Pure.

A bound is about ``hosts``, ``instances``, the members of each server group (``group``), or the
hosts with the same value of a label, such as ``rack``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from planner import ranges

if TYPE_CHECKING:
    from planner.model import Action

HOSTS, INSTANCES, GROUP = "hosts", "instances", "group"
#: What tokens of resources begin with, by what they are counted as.
TOKENS = {HOSTS: "node:", INSTANCES: "instance:"}
#: What the tokens of the limits begin with that hold for what is touched at once.
AT_ONCE = "at-once:"
_PERCENT = "(100|[1-9]?[0-9])%"
_NUMBER = "[0-9]{1,9}"
_KIND = r"[^\s=,:/]+"
#: The schema of bounds in a document: ``{hosts: 2, instances: 10%}``.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_KIND}$", "maxLength": 200},
    "additionalProperties": {
        "type": ["integer", "string", "array"],
        "title": "a number, a share such as 20%, or both",
        "minimum": 0,
        "maximum": ranges.MOST,
        "pattern": f"^{_PERCENT}$",
        "items": {
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": ranges.MOST,
            "pattern": f"^{_PERCENT}$",
        },
    },
}


class Bound(NamedTuple):
    """At most ``most`` of a kind, and at most ``percent`` of all of its kind."""

    kind: str
    most: int | None = None
    percent: int | None = None

    def allowed(self, total: int | None) -> int | None:
        """Return the largest number that is allowed of a total; None if that is not known.

        >>> Bound("hosts", percent=20).allowed(14), Bound("hosts", most=3).allowed(None)
        (2, 3)
        """
        if self.percent is None:
            return self.most
        if total is None:
            return None
        share = total * self.percent // 100
        return share if self.most is None else min(self.most, share)

    @property
    def words(self) -> str:
        """The bound in words: ``2``, ``20 %`` or ``2 and 20 %``."""
        share = None if self.percent is None else f"{self.percent} %"
        return " and ".join(str(part) for part in (self.most, share) if part is not None)


Bounds = tuple[Bound, ...]


class Share(NamedTuple):
    """How many of a kind a plan touches, and how many there are: ``rack/r1``, 2, 7."""

    name: str
    touched: int
    total: int


def bounds(value: str | Mapping[str, Any]) -> Bounds:
    """Read ``hosts=2, rack=50%``, or what fits :data:`SCHEMA`; raises ValueError.

    >>> bounds("hosts=2, rack=50%")
    (Bound(kind='hosts', most=2, percent=None), Bound(kind='rack', most=None, percent=50))
    """
    if isinstance(value, Mapping):
        lists = {k: v if isinstance(v, list | tuple) else [v] for k, v in value.items()}
        pairs = [(str(kind), str(one)) for kind, each in lists.items() for one in each]
    else:
        parts = [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
        pairs = [(kind.strip(), n.strip()) for kind, _, n in (p.partition("=") for p in parts)]
    found: Bounds = ()
    wrong = []
    for kind, text in pairs:
        if not re.fullmatch(_KIND, kind) or not re.fullmatch(f"{_NUMBER}|{_PERCENT}", text):
            told = f"{kind}={text}" if text else kind
            wrong.append(f"{told} is not hosts=N, instances=N, group=N or LABEL=N with N or N%")
        elif text.endswith("%"):
            found = stricter(found, (Bound(kind, percent=int(text[:-1])),))
        else:
            found = stricter(found, (Bound(kind, most=int(text)),))
    if wrong:
        raise ValueError("; ".join(wrong))
    return found


def to_dict(known: Bounds) -> dict[str, Any]:
    """Return bounds as JSON types, which fit :data:`SCHEMA`.

    >>> to_dict(bounds("hosts=2, hosts=20%, rack=1"))
    {'hosts': [2, '20%'], 'rack': 1}
    """
    found: dict[str, Any] = {}
    for bound in known:
        share = None if bound.percent is None else f"{bound.percent}%"
        parts = [part for part in (bound.most, share) if part is not None]
        found[bound.kind] = parts[0] if len(parts) == 1 else parts
    return found


def stricter(one: Bounds, other: Bounds) -> Bounds:
    """Return bounds that hold if, and only if, both hold."""
    found = {bound.kind: bound for bound in one}
    for bound in other:
        known = found.get(bound.kind, Bound(bound.kind))
        found[bound.kind] = Bound(
            bound.kind,
            _least(known.most, bound.most),
            _least(known.percent, bound.percent),
        )
    return tuple(found[kind] for kind in sorted(found))


def _least(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)


class Members:
    """What the facts of a cloud say: all hosts and instances, and what belongs together."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._of: dict[str, set[str]] = {}
        self._names: dict[str, list[str]] = {}
        for host, fact in (facts.get("hosts") or facts.get("services") or {}).items():
            token = f"{TOKENS[HOSTS]}{fact.get('name') or host}"
            self._add(HOSTS, token)
            for label, value in (fact.get("labels") or {}).items():
                for one in value if isinstance(value, list) else [value]:
                    self._add(f"{label}/{one}", token)
        for instance in facts.get("instances") or {}:
            self._add(INSTANCES, f"{TOKENS[INSTANCES]}{instance}")
        for known_as, group in (facts.get("server_groups") or {}).items():
            for member in group.get("members") or ():
                name = f"{GROUP}/{group.get('name') or known_as}"
                self._add(name, f"{TOKENS[INSTANCES]}{member}")
        for token, names in (facts.get("belongs_to") or {}).items():
            for kind in (k for k, begin in TOKENS.items() if token.startswith(begin)):
                for name in (kind, *names):
                    self._add(name, token)
        #: By name (``hosts``, ``rack/r1``) how many belong to it.
        self.totals = {name: len(tokens) for name, tokens in self._of.items()}
        self.totals.update(facts.get("totals") or {})
        #: Of what it is known which hosts or instances belong to it.
        self.kinds = {kind_of(name) for name in self.totals}
        if "server_groups" in facts:
            self.kinds.add(GROUP)

    def _add(self, name: str, token: str) -> None:
        self._of.setdefault(name, set()).add(token)
        self._names.setdefault(token, []).append(name)

    def names(self, token: str) -> Sequence[str]:
        """Return the names of all to which a token belongs; for others than hosts by its kind."""
        known = self._names.get(token)
        return known if known is not None else [k for k, b in TOKENS.items() if token.startswith(b)]


def extent(actions: Iterable[Action], members: Members) -> tuple[Share, ...]:
    """Return how much actions touch of all that belongs together and is touched at all.

    A kind that is known, and of which nothing is touched, is there without a name: ``rack``, 0, 0.
    """
    touched: dict[str, int] = dict.fromkeys((HOSTS, INSTANCES), 0)
    for token in {token for action in actions for token in action.tokens}:
        for name in members.names(token):
            touched[name] = touched.get(name, 0) + 1
    found = [
        Share(name, number, members.totals[name])
        for name, number in touched.items()
        if name in members.totals
    ]
    untouched = members.kinds - {kind_of(share.name) for share in found}
    return (*found, *(Share(kind, 0, 0) for kind in sorted(untouched)))


def kind_of(name: str) -> str:
    """Return the kind of a bound that is about a share: of ``rack/r1`` it is ``rack``."""
    return name.partition("/")[0]


def touched_as(kind: str) -> str:
    """Return what the members of a kind are: hosts, or instances.

    >>> touched_as("rack"), touched_as("group"), touched_as("instances")
    ('hosts', 'instances', 'instances')
    """
    return INSTANCES if kind in (GROUP, INSTANCES) else HOSTS


def limited(
    actions: Sequence[Action], members: Members, known: Bounds
) -> tuple[tuple[Action, ...], dict[str, int]]:
    """Return actions with tokens for what they touch at once, and the limits of these tokens.

    An action that touches several of a kind holds one token for all of them, so the limit is
    divided by the most that one action touches. A limit of 0 means that the bound cannot hold.
    What has to be bounded, and of which it is not known what belongs to it, has that limit.
    """
    by_kind = {bound.kind: bound for bound in known}
    unknown = by_kind.keys() - members.kinds - TOKENS.keys()
    touched = {kind for kind, begin in TOKENS.items() if _touches(actions, begin)}
    impossible = {f"{AT_ONCE}{kind}": 0 for kind in unknown if touched_as(kind) in touched}
    most: dict[str, int] = {}
    held: dict[tuple[str, ...], tuple[str, ...]] = {}
    made = []
    for action in actions:
        tokens = held.get(action.tokens)
        if tokens is None:
            names = [n for token in action.tokens for n in members.names(token)]
            ours = [n for n in names if kind_of(n) in by_kind]
            for name in set(ours):
                most[name] = max(most.get(name, 0), ours.count(name))
            tokens = (*action.tokens, *(f"{AT_ONCE}{n}" for n in dict.fromkeys(ours)))
            held[action.tokens] = tokens
        made.append(replace(action, tokens=tokens) if tokens != action.tokens else action)
    return tuple(made), {**dict(_limits(most, members, by_kind)), **impossible}


def _touches(actions: Iterable[Action], begin: str) -> bool:
    return any(token.startswith(begin) for action in actions for token in action.tokens)


def _limits(
    most: Mapping[str, int], members: Members, by_kind: Mapping[str, Bound]
) -> Iterator[tuple[str, int]]:
    for name, each in most.items():
        allowed = by_kind[kind_of(name)].allowed(members.totals.get(name))
        yield f"{AT_ONCE}{name}", 0 if allowed is None else allowed // each
