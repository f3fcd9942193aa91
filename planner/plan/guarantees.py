# SPDX-License-Identifier: Apache-2.0
"""What a plan with places guarantees, and who holds them by the stored states. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.plan.model import Action, ActionPlan
from planner.plan.states import OPEN, WELL, ActionState


def guarantees(plan: ActionPlan) -> list[str]:
    """Return a sentence for each token of places: how many of its members are under way at most.

    >>> from planner.plan.place_rules import HeldPlace, PlaceRule
    >>> actions = [Action(uuid=node, action_type="nop", places=(HeldPlace("serial:patch", node),))
    ...            for node in ("a", "b", "c")]
    >>> rules = {"serial:patch": PlaceRule(stop_after=0, widens=((1, 2),))}
    >>> plan = ActionPlan(uuid="p", planner="rollout", actions=tuple(actions), places=rules,
    ...                   limits={"serial:patch": 1})
    >>> guarantees(plan)
    ['Never more than 1, then 2 of 3 nodes out of service (patch); none begins after 1 failed.']
    """
    found, held = [], _held(plan)
    for token, rule in plan.places.items():
        members = held.get(token, ())
        numbers = (plan.limits[token], *(w for _, w in rule.widens))
        widths = ", then ".join(str(min(number, len(members))) for number in numbers)
        what = "out of service" if rule.keep else "in progress, besides those that failed"
        name, most = token.partition(":")[2], rule.stop_after
        if most is not None and plan.limits[token] >= len(members):
            of = f"{most + 1} of {len(members)} nodes"
            found.append(f"After {of} failed, no other of them begins ({name}).")
            continue
        stop = "" if most is None else f"; none begins after {most + 1} failed"
        pause = f"; the plan pauses after {rule.pause_after}" if rule.pause_after else ""
        found.append(
            f"Never more than {widths} of {len(members)} nodes {what} ({name}){pause}{stop}."
        )
    return found


def holders(plan: ActionPlan, token: str) -> list[str]:
    """Return the members that hold a place by the stored states, in plan order.

    Those have begun, and have open actions or, where the rule says that they keep their place, did
    not end well.
    """
    keeps = plan.places[token].keep
    return [
        member
        for member, own in _begun(_held(plan).get(token, {})).items()
        if any(a.state in OPEN or (keeps and a.state not in WELL) for a in own)
    ]


def half_done(plan: ActionPlan) -> dict[str, bool]:
    """Return the members that have begun and did not end well, in plan order.

    The value is whether a member has open actions.
    """
    found: dict[str, bool] = {}
    for members in _held(plan).values():
        for member, own in _begun(members).items():
            if any(a.state not in WELL for a in own):
                found[member] = found.get(member, False) or any(a.state in OPEN for a in own)
    return found


def _held(plan: ActionPlan) -> dict[str, dict[str, list[Action]]]:
    """Return the actions of each member, by token, all in plan order."""
    found: dict[str, dict[str, list[Action]]] = {}
    for action in plan.actions:
        for token, member in action.places:
            found.setdefault(token, {}).setdefault(member, []).append(action)
    return found


def _begun(members: Mapping[str, Sequence[Action]]) -> dict[str, Sequence[Action]]:
    """Return the members that have begun."""
    return {
        member: own
        for member, own in members.items()
        if any(a.attempts or a.state is ActionState.ONGOING for a in own)
    }


def awaits_a_look(plan: ActionPlan) -> str | None:
    """Return why a plan is to pause if nobody has looked at it since; None if it is not.

    True from the end of the last node of ``pause_after`` until another begins.
    """
    held = _held(plan)
    for token, rule in plan.places.items():
        begun = _begun(held.get(token, {})).values()
        if rule.pause_after == len(begun) and all(a.state in WELL for own in begun for a in own):
            return canary_text(token, len(begun))
    return None


def canary_text(token: str, number: int) -> str:
    """Return why a plan pauses when so many members have ended well.

    >>> canary_text("serial:patch", 1)
    '1 node of patch ended well: look at it before others begin'
    """
    nodes = "1 node" if number == 1 else f"{number} nodes"
    return f"{nodes} of {token.partition(':')[2]} ended well: look at it before others begin"


def width(plan: ActionPlan, token: str) -> int:
    """Return how many members may be under way by now: a limit may widen as members end well."""
    members = _held(plan).get(token, {}).values()
    well = sum(all(a.state in WELL for a in own) for own in members)
    widens = reversed(plan.places[token].widens)
    return next((w for after, w in widens if after <= well), plan.limits[token])
