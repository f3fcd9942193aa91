# SPDX-License-Identifier: Apache-2.0
"""Reorders a rollback so that a host is enabled before instances move back to it. Pure.

A maintenance plan disables a host, then moves its instances away. If the actions were undone in
reverse order, the instances would move back while the host is still disabled, which a cloud
refuses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.graph import in_topological_order
from planner.model import Action, Effect, Touch

_Touches = Mapping[str, Sequence[Touch]]
_NONE: frozenset[str] = frozenset()


def enable_hosts_first(actions: Sequence[Action], touches: _Touches) -> tuple[Action, ...]:
    """Place each action that enables a host before the migrations to that host.

    ``actions`` are in topological order; ``touches`` are by uuid. The enabling action gets the
    predecessors of those migrations, and the migrations then need the enabling action. Raises
    ``networkx.NetworkXUnfeasible`` if two hosts would have to be enabled before each other.
    """
    late = _enabled_too_late(actions, touches)
    if not late:
        return tuple(actions)
    behind = _collect(late, actions, {a.uuid: a.before() for a in actions})
    moves: dict[str, list[Action]] = {}
    for action in actions:
        for enabler in late.get(action.uuid, _NONE):
            moves.setdefault(enabler, []).append(action)
    changed = []
    for action in actions:
        if action.uuid in moves:
            action = _before_moves(action, moves[action.uuid], behind)
        if action.uuid in late:
            action = _after_enablers(action, late[action.uuid])
        changed.append(action)
    return in_topological_order(changed)


def _enabled_too_late(actions: Sequence[Action], touches: _Touches) -> dict[str, frozenset[str]]:
    """Map each migration to the later actions that enable its destination."""
    enablers: dict[str, set[str]] = {}
    moves = defaultdict(list)
    for action in actions:
        for touch in touches.get(action.uuid, ()):
            if touch.effect is Effect.ENABLES:
                enablers.setdefault(touch.resource, set()).add(action.uuid)
            elif touch.effect is Effect.ENTERS:
                moves[touch.resource].append(action.uuid)
    hosts = [host for host in enablers if host in moves]
    followers = defaultdict(list)
    for action in actions:
        for uuid in action.before():
            followers[uuid].append(action.uuid)
    own = {uuid: frozenset({uuid}) for host in hosts for uuid in enablers[host]}
    followed_by = _collect(own, reversed(actions), followers)
    late: dict[str, frozenset[str]] = {}
    for host in hosts:
        for move in moves[host]:
            found = (followed_by[move] & enablers[host]) - {move}
            if found:
                late[move] = late.get(move, _NONE) | found
    return late


def _collect(
    own: Mapping[str, frozenset[str]],
    actions: Iterable[Action],
    links: Mapping[str, Sequence[str]],
) -> dict[str, frozenset[str]]:
    """Return, for each action, the union of its own set and the sets of all its linked actions.

    ``actions`` are ordered so that every link leads to an earlier one. Actions with equal sets
    share one object; otherwise a thousand actions behind a thousand hosts would take a million
    entries.
    """
    found: dict[str, frozenset[str]] = {}
    for action in actions:
        parts = {found[uuid] for uuid in links.get(action.uuid, ())}
        parts.add(own.get(action.uuid, _NONE))
        largest = max(parts, key=len)
        is_all = all(part <= largest for part in parts)
        found[action.uuid] = largest if is_all else _NONE.union(*parts)
    return found


def _before_moves(
    enabler: Action, moves: Iterable[Action], behind: Mapping[str, frozenset[str]]
) -> Action:
    """Return the enabling action, in which the migrations' predecessors replace the migrations."""

    def kept(uuids: Iterable[str]) -> list[str]:
        return [uuid for uuid in uuids if enabler.uuid not in behind[uuid]]

    needs = tuple(kept(enabler.needs))
    waited = [uuid for move in moves for uuid in move.before()]
    parents = dict.fromkeys(kept([*enabler.parents, *waited]))
    return replace(enabler, parents=tuple(u for u in parents if u not in needs), needs=needs)


def _after_enablers(move: Action, enablers: frozenset[str]) -> Action:
    """Return the migration with needs on the actions that enable its destination."""
    parents = tuple(uuid for uuid in move.parents if uuid not in enablers)
    return replace(move, parents=parents, needs=(*move.needs, *sorted(enablers)))
