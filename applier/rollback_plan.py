# SPDX-License-Identifier: Apache-2.0
"""Makes the plan that undoes the actions of another plan. Pure.

A maintenance plan disables a host, then moves its instances away. If the actions were undone in
reverse order, the instances would move back while the host is still disabled, which a cloud
refuses: so a host is enabled before instances move back to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from applier.contracts import REVERT
from applier.errors import PlanConflict
from planner.errors import short
from planner.plan.graph import in_topological_order, order_graph
from planner.plan.graph_algorithms import CycleError
from planner.plan.model import JOIN, Action, ActionPlan, Effect, Touch
from planner.plan.place_rules import PlaceRule
from planner.plan.states import ActionState, Outcome, PlanState

#: The name in the field ``planner`` of rollback plans.
PLANNER = "rollback"
#: Action types that only wait: there is nothing to undo.
_WAITS = frozenset({"pause", "sleep"})
_DONE = frozenset({Outcome.CHANGED, Outcome.CREATED})
_STANDS = frozenset({ActionState.SUCCEEDED, ActionState.REVERT_FAILED})
_RUNNING = frozenset({PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING})


def rollback(
    plan: ActionPlan,
    is_revertible: Callable[[Action], bool],
    touches: Callable[[Action], Sequence[Touch]],
    *,
    now: datetime,
    new_id: Callable[[], str],
) -> ActionPlan:
    """Return a RECOMMENDED plan that undoes the successful actions of a plan in reverse order.

    Limits, cloud, guards and ``on_failure`` are those of the plan. Actions that an earlier rollback
    undid are left out; those that it failed to undo are included. ``is_revertible`` returns whether
    an action can be undone, ``touches`` the resources that a revert touches. An action is undone
    after all its successors, and only if those that needed it were undone. But a host is enabled
    before instances move back to it. Warnings list the successful actions that
    cannot be undone. Raises PlanConflict if no action can be undone, or if the plan may still
    continue.
    """
    place = f"plan {short(plan.uuid)}"
    if plan.state in _RUNNING:
        way = "pause or cancel" if plan.state is PlanState.ONGOING else "cancel"
        text = f"it is {plan.state}: {way} it before it is rolled back"
        raise PlanConflict(plan.uuid, plan.state, f"{place}: {text}")
    done = [a for a in plan.actions if _did(a)]
    undone = {a.uuid for a in done if is_revertible(a)}
    warnings = tuple(_warnings(plan.actions, done, undone))
    if not undone:
        text = "nothing that it did can be undone"
        raise PlanConflict(plan.uuid, plan.state, f"{place}: {'; '.join([text, *warnings])}")
    actions: Sequence[Action] = tuple(_Reversal(plan, undone, new_id).actions())
    try:
        touched = {a.uuid: touches(a) for a in actions if a.action_type == REVERT}
        actions = enable_hosts_first(actions, touched)
    except CycleError:
        warnings += ("moves go back onto hosts that are disabled then: enable them by hand",)
    return ActionPlan(
        uuid=new_id(),
        planner=PLANNER,
        name=f"rollback of {plan.name or short(plan.uuid)}",
        created_at=now,
        actions=tuple(actions),
        cloud=plan.cloud,
        limits=plan.limits,
        places={token: PlaceRule(keep=rule.keep) for token, rule in plan.places.items()},
        on_failure=plan.on_failure,
        guards=plan.guards,
        warnings=warnings,
    )


def _did(action: Action) -> bool:
    did = action.state in _STANDS and action.outcome in _DONE
    return did and action.action_type != JOIN and action.action_type not in _WAITS


def _warnings(actions: Iterable[Action], done: Iterable[Action], undone: set[str]) -> Iterator[str]:
    for action in done:
        if action.uuid not in undone:
            yield f"{action.label} stays done: {action.action_type} cannot be undone"
    for action in actions:
        if action.state in (ActionState.UNKNOWN, ActionState.ONGOING):
            yield f"{action.label} is in doubt, and is not undone"


class _Share(NamedTuple):
    """A reversed set of links: its number of members, and the predecessors that all of them get."""

    members: int
    before: tuple[str, ...]


class _Reversal:
    """The reversed order graph of a plan.

    Actions that are not undone, and sets of links that many actions share, become joins, so that
    time and size are linear. A join is left out unless there are actions to undo both before and
    after it.
    """

    def __init__(self, plan: ActionPlan, undone: set[str], new_id: Callable[[], str]) -> None:
        self._plan, self._undone, self._new_id = plan.uuid, undone, new_id
        actions = plan.actions
        # Below, sets are identified by id(), so that a shared set is read only once.
        self._order = {a.uuid: [a.parents, tuple(t.action for t in a.triggers)] for a in actions}
        self._needs = {a.uuid: [a.needs, *a.needs_any] for a in actions}
        self._ordered = in_topological_order(actions)
        self._kept = self._between()
        self._uuids = {a.uuid: new_id() for a in actions if a.uuid in self._kept}
        self._joins: dict[int, Action] = {}

    def actions(self) -> Iterator[Action]:
        """Yield the reverts and joins in topological order."""
        order, needs = self._turned(self._order), self._turned(self._needs)
        for action in reversed(self._ordered):
            if action.uuid in self._kept:
                before, needed = order.get(action.uuid, ()), needs.get(action.uuid, ())
                yield from self._new_joins(before, "parents")
                yield from self._new_joins(needed, "needs")
                yield self._reversed(action, self._links(before), self._links(needed))

    def _between(self) -> set[str]:
        """Return the uuids of the actions to undo, and of all on paths between two of them."""
        import networkx as nx

        graph = order_graph(self._ordered)
        after = nx.bfs_layers(graph, self._undone)
        before = nx.bfs_layers(graph.reverse(copy=False), self._undone)
        return {*chain.from_iterable(after)} & {*chain.from_iterable(before)}

    def _turned(self, links: Mapping[str, list[tuple[str, ...]]]) -> dict[str, list[_Share]]:
        """Return, for each action, the sets of its successors, which become its predecessors.

        A link to one of several actions becomes a link to each of them.
        """
        groups: dict[int, tuple[str, ...]] = {}
        after: dict[int, list[str]] = {}
        for action in self._ordered:
            for group in links[action.uuid] if action.uuid in self._kept else ():
                groups[id(group)] = group
                after.setdefault(id(group), []).append(self._uuids[action.uuid])
        found: dict[str, list[_Share]] = {}
        for key, group in groups.items():
            members = [uuid for uuid in group if uuid in self._kept]
            share = _Share(len(members), tuple(after[key]))
            for member in members:
                found.setdefault(member, []).append(share)
        return found

    def _new_joins(self, shares: Iterable[_Share], kind: str) -> Iterator[Action]:
        for share in shares:
            if share.members > 1 and len(share.before) > 1 and id(share) not in self._joins:
                links = {kind: share.before}
                join = Action(uuid=self._new_id(), action_type=JOIN, **links)  # type: ignore[arg-type]
                self._joins[id(share)] = join
                yield join

    def _links(self, shares: Iterable[_Share]) -> tuple[str, ...]:
        links: dict[str, None] = {}
        for share in shares:
            join = self._joins.get(id(share))
            links.update(dict.fromkeys((join.uuid,) if join else share.before))
        return tuple(links)

    def _reversed(self, action: Action, before: tuple[str, ...], needs: tuple[str, ...]) -> Action:
        needed = set(needs)
        turned = Action(
            uuid=self._uuids[action.uuid],
            action_type=JOIN,
            parents=tuple(uuid for uuid in before if uuid not in needed),
            needs=needs,
        )
        if action.uuid not in self._undone:
            return turned
        what = {"action_type": action.action_type, "parameters": dict(action.input_parameters)}
        what["undoes"] = {"plan": self._plan, "action": action.uuid}
        return replace(
            turned,
            action_type=REVERT,
            name=f"revert-{action.label}",
            resource_id=action.resource_id,
            input_parameters=what,
            description=f"undo: {action.description or action.label}",
            tokens=action.tokens,
            places=action.places,
            estimate_s=action.estimate_s,
            timeout_s=action.timeout_s,
            retries=action.retries,
        )


_Touches = Mapping[str, Sequence[Touch]]
_NONE: frozenset[str] = frozenset()


def enable_hosts_first(actions: Sequence[Action], touches: _Touches) -> tuple[Action, ...]:
    """Place each action that enables a host before the migrations to that host.

    ``actions`` are in topological order; ``touches`` are by uuid. The enabling action gets the
    predecessors of those migrations, and the migrations then need the enabling action. Raises
    CycleError if two hosts would have to be enabled before each other.
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
