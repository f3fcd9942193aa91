# SPDX-License-Identifier: Apache-2.0
"""A plan under construction: planners add actions in order; the draft adds needs and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake, shown
from planner.plan import effects
from planner.plan.graph_algorithms import CycleError, once, reachable_pairs, topological_order
from planner.plan.model import JOIN, Action, ActionPlan, ProposedAction, Solution, Touch
from planner.planners import document_links


class Draft:
    """Actions with their parents, in the order in which a planner added them."""

    def __init__(self, planner: str, solution: Solution, surroundings: Surroundings) -> None:
        self._planner, self._solution = planner, solution
        self._surroundings = surroundings
        self._proposed: list[ProposedAction] = []
        self._parents: list[tuple[int, ...]] = []
        self._reasons: list[str] = []
        self._taken = {proposed.name for proposed in solution.actions}
        self._join_numbers = count(1)

    def __len__(self) -> int:
        return len(self._proposed)

    def add(self, proposed: ProposedAction, parents: tuple[int, ...], reason: str) -> int:
        """Add an action; return its position, which counts the actions from 0.

        ``parents`` are positions of actions that were added before. Actions to which the same tuple
        object is passed also share one tuple of parents in the plan. What the document says of the
        action, its ``needs`` and ``after``, is added by :meth:`plan`.
        """
        self._proposed.append(proposed)
        self._parents.append(parents)
        self._reasons.append(reason)
        return len(self._proposed) - 1

    def join(self, parents: tuple[int, ...], reason: str) -> int:
        """Add a join, an action that only waits for all its parents; return its position."""
        name = next(n for k in self._join_numbers if (n := f"join-{k}") not in self._taken)
        return self.add(ProposedAction(name=name, action_type=JOIN), parents, reason)

    def plan(
        self,
        *,
        limits: Mapping[str, int] | None = None,
        warnings: Sequence[str] = (),
    ) -> ActionPlan:
        """Return the plan, with the needs that follow from the effects of the actions.

        The links of the document are kept; InvalidInput is raised with the path of a cycle if the
        parents, or the effects of the actions, contradict them. A need that contradicts the parents
        or a more important need is dropped, and a warning names it. ``limits`` maps a token to the
        number of actions that may hold it at once. A plan without actions is SUCCEEDED.
        """
        said = document_links.of(self._proposed)
        order = self._order(said) if said else range(len(self._proposed))
        touches = effects.located([self._proposed[i].touches for i in order], self._solution.facts)
        needs = effects.find(touches)
        if said:
            needs = [
                need._replace(
                    needed=tuple([order[a] for a in need.needed]),
                    needing=tuple([order[b] for b in need.needing]),
                )
                for need in needs
            ]
        # What the document says is more important than any rule.
        asked = [
            effects.Need(needed, (i,), document_links.SAID, row=-1)
            for i, needed in enumerate(said.needs)
            if needed
        ]
        demands = [*asked, *needs]
        ordered = self._ordered(
            (b, a) for need in demands for b in need.needing for a in need.needed if b < a
        )
        parents = self._with_links(said)
        settled = effects.settle(parents, demands, ordered)
        if said and settled.dropped:
            pairs = {(a, b): n.why for n in needs for a in n.needed for b in n.needing}
            self._require_none(document_links.cycles(self._proposed, said, pairs))
        solution = self._solution
        uuid = self._surroundings.new_id()
        return self._surroundings.new_plan(
            self._planner,
            self._actions(settled, parents),
            uuid,
            name=solution.name,
            audit_uuid=solution.audit_uuid,
            strategy_name=solution.strategy_name,
            efficacy_indicators=tuple(solution.efficacy_indicators),
            global_efficacy=tuple(solution.global_efficacy),
            limits=dict(limits or {}),
            warnings=(*solution.warnings, *warnings, *map(self._dropped_text, settled.dropped)),
        )

    def _order(self, said: document_links.DocumentLinks) -> list[int]:
        """Return all positions in an order that parents and links allow.

        Raises InvalidInput if the parents contradict the links.
        """
        try:
            return topological_order(
                [(p, *said.both(i)) if p else said.both(i) for i, p in enumerate(self._parents)]
            )
        except CycleError:
            rule = f"so the planner {self._planner}"
            own = {(p, i): rule for i, parents in enumerate(self._parents) for p in parents}
            self._require_none(document_links.cycles(self._proposed, said, own))
            # The parents alone have a cycle: planner.plan.graph.validate reports it.
            return list(range(len(self._parents)))

    def _with_links(self, said: document_links.DocumentLinks) -> list[tuple[int, ...]]:
        """Return what each action comes after: its parents, and links that these do not imply."""
        implied = self._ordered((a, i) for i, after in enumerate(said.after) for a in after)
        found = []
        for i, parents in enumerate(self._parents):
            more = [a for a in said.after[i] if (a, i) not in implied]
            found.append((*parents, *more) if more else parents)
        return found

    def _ordered(self, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return those pairs of positions of which the first is an ancestor of the second."""
        before = [(parents,) for parents in self._parents]
        return set(reachable_pairs(range(len(before)), before.__getitem__, pairs))

    def _require_none(self, mistakes: Sequence[Mistake]) -> None:
        """Raise InvalidInput if there are mistakes; they name places in the document."""
        if not mistakes:
            return
        at = {action.name: i for i, action in enumerate(self._solution.actions)}
        raise InvalidInput(
            mistake._replace(
                path=("actions", at[self._proposed[int(position)].name], *place),
            )
            for mistake in mistakes
            for _, position, *place in (mistake.path,)
        )

    def _actions(
        self, settled: effects.Settled, parents: Sequence[tuple[int, ...]]
    ) -> tuple[Action, ...]:
        uuids = self._surroundings.new_ids(len(self._proposed))

        def uuids_of(positions: tuple[int, ...]) -> tuple[str, ...]:
            return tuple([uuids[p] for p in positions])

        links = once(uuids_of)
        return tuple(
            action_of(
                p,
                uuids[i],
                reason=_reason(self._reasons[i], p),
                parents=links(parents[i]),
                needs=links(settled.needs[i]),
            )
            for i in settled.order
            for p in (self._proposed[i],)
        )

    def _dropped_text(self, dropped: effects.Dropped) -> str:
        needed, needing = self._proposed[dropped.needed], self._proposed[dropped.needing]
        return (
            f"{needing.name} does not wait for {needed.name} ({dropped.why}): "
            f"the plan puts {needing.name} first"
        )


def _reason(reason: str, proposed: ProposedAction) -> str:
    rules: dict[str, list[str]] = {}
    for name in dict.fromkeys((*proposed.needs, *proposed.after)):
        rules.setdefault(proposed.because.get(name, document_links.SAID), []).append(name)
    after = (f", after {', '.join(shown(names))}: {rule}" for rule, names in rules.items())
    return "".join((reason, *after))


def action_of(proposed: ProposedAction, uuid: str, **fields: Any) -> Action:
    """Return the action of a plan that a proposed one becomes; ``fields`` are its links and more.

    It holds the tokens of its type and of what it touches, a join none.
    """
    is_join = proposed.action_type == JOIN
    own: dict[str, Any] = {
        "name": proposed.name,
        "action_type": proposed.action_type,
        "resource_id": proposed.resource_id,
        "input_parameters": proposed.input_parameters,
        "description": proposed.description,
        "tokens": () if is_join else tokens(proposed.action_type, proposed.touches),
        "estimate_s": proposed.estimate_s,
        "timeout_s": proposed.timeout_s,
        "retries": proposed.retries,
    }
    return Action(uuid=uuid, **{**own, **fields})


def tokens(action_type: str, touches: Sequence[Touch], *more: str) -> tuple[str, ...]:
    """List the tokens that an action holds while it runs: its type, what it touches, and more.

    >>> tokens("migrate", [Touch("instance:i1"), Touch("node:c1"), Touch("node:c1")])
    ('type:migrate', 'instance:i1', 'node:c1')
    """
    touched = [resource for resource, _ in touches]
    return tuple(dict.fromkeys([f"type:{action_type}", *touched, *more]))
