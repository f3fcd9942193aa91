# SPDX-License-Identifier: Apache-2.0
"""How much of a cloud the actions of a plan touch, by the facts of the cloud. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.blast_radius import (
    AT_ONCE,
    GROUP,
    HOSTS,
    INSTANCES,
    TOKENS,
    Bound,
    Bounds,
    Share,
    kind_of,
    touched_as,
)
from planner.model import Action


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
