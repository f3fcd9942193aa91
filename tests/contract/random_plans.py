# SPDX-License-Identifier: Apache-2.0
"""Random plans, the same for the same seed, and the expected ends of their actions."""

# Random numbers vary plans; they protect nothing.

from __future__ import annotations

import random
from collections.abc import Callable, Container, Mapping

from applier.errors import ActionFailed
from applier.scheduling.failures import OnFailure
from applier.scheduling.verdict import ActionEnd
from planner.plan.model import JOIN, Action, ActionPlan, Blocker, Trigger
from planner.plan.states import WELL, ActionState, Outcome, PlanState

#: Returns the end that an action has if it runs, given its uuid.
Fate = Callable[[str], ActionEnd]

_LIMITS = {"type:a": 2, "node:*": 1, "node:0": 2}
#: The outcomes of actions that fail.
FAILURES = (Outcome.FAILED, Outcome.ERROR)
_OUTCOMES = (Outcome.CHANGED, Outcome.OK, Outcome.FAILED)


def random_plan(seed: int, size: int = 40) -> ActionPlan:
    """Return a PENDING plan of at least ``size`` actions, with every kind of link, limit and join.

    The actions of a layer mostly have all actions of the layer before as parents.
    """
    chance = random.Random(seed)
    actions: list[Action] = []
    layer: tuple[str, ...] = ()
    while len(actions) < size:
        uuids = [f"a{len(actions) + i:03}" for i in range(chance.randint(1, 8))]
        earlier = [a.uuid for a in actions]
        actions += [_action(chance, uuid, layer, earlier) for uuid in uuids]
        layer = tuple(uuids)
    return ActionPlan(
        uuid=f"plan-{seed}",
        planner="random",
        actions=tuple(actions),
        state=PlanState.PENDING,
        limits=_LIMITS,
    )


def _action(chance: random.Random, uuid: str, layer: tuple[str, ...], earlier: list[str]) -> Action:
    def some(most: int) -> tuple[str, ...]:
        return tuple(chance.sample(earlier, min(len(earlier), chance.randint(1, most))))

    action_type = JOIN if chance.random() < 0.1 else "nop"
    parents = layer if chance.random() < 0.8 else some(3)
    tokens = ("type:a", f"node:{chance.randint(0, 3)}", f"free:{uuid}")
    return Action(
        uuid=uuid,
        name=f"the {uuid}",
        action_type=action_type,
        parents=parents,
        needs=layer if chance.random() < 0.3 else some(2) if chance.random() < 0.4 else (),
        needs_any=(some(3),) if earlier and chance.random() < 0.15 else (),
        triggers=tuple(
            Trigger(source, tuple(chance.sample(_OUTCOMES, chance.randint(1, 2))))
            for source in (some(3) if chance.random() < 0.2 else ())
        ),
        blocked_by=tuple(
            Blocker(source, (chance.choice(FAILURES),))
            for source in (parents[:2] if chance.random() < 0.1 else ())
        ),
        tokens=() if action_type == JOIN else tuple(t for t in tokens if chance.random() < 0.5),
    )


def random_fate(seed: int, failing: float = 0.08) -> Fate:
    """Return a function that returns the end of an action: FAILED with probability ``failing``."""

    def fate(uuid: str) -> ActionEnd:
        chance = random.Random(f"{seed} {uuid}")
        if chance.random() < failing:
            return ActionEnd(ActionState.FAILED, chance.choice(FAILURES))
        return ActionEnd(ActionState.SUCCEEDED, chance.choice((Outcome.CHANGED, Outcome.OK)))

    return fate


def carry_out(end: ActionEnd) -> Outcome:
    """Return the outcome of a successful end, or raise the error of a failed one."""
    if end.outcome is Outcome.ERROR:
        raise RuntimeError("fate")
    if end.outcome is None or end.state is ActionState.FAILED:
        raise ActionFailed("fate")
    return end.outcome


def expected_ends(
    plan: ActionPlan,
    fate: Fate,
    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS,
    *,
    skipped: Container[str] = (),
    ended: Mapping[str, ActionEnd] | None = None,
) -> dict[str, ActionEnd]:
    """Return the end of each action, computed from the documented rules, one action at a time.

    ``skipped`` are the uuids of actions that an operator skips. ``ended`` are the ends of actions
    that had ended before the run.
    """
    ends = dict(ended or {})
    for action in plan.actions:
        if action.uuid not in ends:
            ends[action.uuid] = _expected_end(action, ends, fate, on_failure, skipped)
    return ends


def _expected_end(
    action: Action,
    ends: Mapping[str, ActionEnd],
    fate: Fate,
    on_failure: OnFailure,
    skipped: Container[str],
) -> ActionEnd:
    def well(uuid: str) -> bool:
        return on_failure is OnFailure.CONTINUE or ends[uuid].state in WELL

    if action.uuid in skipped:
        return ActionEnd(ActionState.SKIPPED)
    if not all(well(u) for u in action.needs):
        return ActionEnd(ActionState.FAILED_DEPENDENCIES)
    if not all(any(well(u) for u in group) for group in action.needs_any):
        return ActionEnd(ActionState.FAILED_DEPENDENCIES)
    stopped = any(ends[b.action].outcome in b.outcomes for b in action.blocked_by)
    if stopped and on_failure is not OnFailure.CONTINUE:
        return ActionEnd(ActionState.FAILED_DEPENDENCIES)
    fired = any(ends[t.action].outcome in t.outcomes for t in action.triggers)
    if action.triggers and not fired:
        sources_well = all(well(t.action) for t in action.triggers)
        return ActionEnd(ActionState.SKIPPED if sources_well else ActionState.FAILED_DEPENDENCIES)
    return ActionEnd(ActionState.SUCCEEDED) if action.action_type == JOIN else fate(action.uuid)
