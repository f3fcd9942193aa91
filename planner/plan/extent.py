# SPDX-License-Identifier: Apache-2.0
"""Counts the hosts and instances of a cloud that the actions of a plan touch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.guards.blast_radius import (
    AT_ONCE,
    GROUP,
    HOSTS,
    INSTANCES,
    TOKENS,
    Bounds,
    Share,
    kind_of,
    touched_as,
)
from planner.plan.model import Action


def listed(value: Any) -> Sequence[Any]:
    """Return the values of a label or a field: a list, or the entries of one; None has no value."""
    return value if isinstance(value, list) else [] if value is None else [value]


def labelled(facts: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Return the hosts of facts that have all these labels, by their ids.

    A host may have several values of a label, as it is in several aggregates.
    """
    return {
        known_as: fact
        for known_as, fact in (facts.get("hosts") or {}).items()
        if all(v in listed((fact.get("labels") or {}).get(k)) for k, v in labels.items())
    }


class Members:
    """The hosts and instances in the facts of a cloud, and the groups that they are members of.

    Members are tokens, such as ``node:c1``. The names of the groups are ``hosts``, ``instances``,
    ``group/NAME`` for a server group, and ``LABEL/VALUE`` for hosts with a label.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._of: dict[str, set[str]] = {}
        self._names: dict[str, list[str]] = {}
        for host, fact in (facts.get("hosts") or facts.get("services") or {}).items():
            token = f"{TOKENS[HOSTS]}{fact.get('name') or host}"
            self._add(HOSTS, token)
            for label, value in (fact.get("labels") or {}).items():
                for one in listed(value):
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
        #: The number of members of each group, by its name: ``hosts``, ``rack/r1``.
        self.totals = {name: len(tokens) for name, tokens in self._of.items()}
        self.totals.update(facts.get("totals") or {})
        #: The kinds of groups whose members are known: ``hosts``, ``rack``.
        self.kinds = {kind_of(name) for name in self.totals}
        if "server_groups" in facts:
            self.kinds.add(GROUP)

    def _add(self, name: str, token: str) -> None:
        self._of.setdefault(name, set()).add(token)
        self._names.setdefault(token, []).append(name)

    def names(self, token: str) -> Sequence[str]:
        """Return the names of the groups that a token is a member of.

        A host or instance that is not in the facts is a member of ``hosts`` or ``instances`` only,
        any other token of no group.
        """
        known = self._names.get(token)
        return known if known is not None else [k for k, b in TOKENS.items() if token.startswith(b)]


def extent(actions: Iterable[Action], members: Members) -> tuple[Share, ...]:
    """Return, for each group that actions touch, how many of its members they touch.

    A known kind of which no group is touched is returned by its kind alone: ``rack``, 0, 0.
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
    """Return actions with a token for each bounded group that they touch, and the tokens' limits.

    The limits ensure the bounds in ``known`` for the members that are touched at once. An action
    that touches several members of a group holds one token for all of them, so the limit is the
    bound divided by the largest number that one action touches. A limit of 0 means that no limit
    can ensure the bound: one action touches more, or the members or their total are not known.
    """
    by_kind = {bound.kind: bound for bound in known}
    unknown = by_kind.keys() - members.kinds - TOKENS.keys()
    held_tokens = {token for action in actions for token in action.tokens}
    touched = {k for k, b in TOKENS.items() if any(token.startswith(b) for token in held_tokens)}
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
    limits = {}
    for name, each in most.items():
        allowed = by_kind[kind_of(name)].allowed(members.totals.get(name))
        limits[f"{AT_ONCE}{name}"] = 0 if allowed is None else allowed // each
    return tuple(made), {**limits, **impossible}
