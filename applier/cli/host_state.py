# SPDX-License-Identifier: Apache-2.0
"""``show --node``: which instances left a host, which remain, and whether it can be powered off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from applier.wording import count
from planner.errors import InvalidInput, Mistake, accepted
from planner.model import Action, ActionPlan
from planner.states import ActionState

_OPEN = (ActionState.PENDING, ActionState.ONGOING)
#: Why an instance is still there, by the state of its move.
_WHY = {
    ActionState.PENDING: "its move has not started",
    ActionState.ONGOING: "it is being moved",
    ActionState.SUCCEEDED: "it came back after its move",
    ActionState.UNKNOWN: "its move is in doubt",
}


def compare_with_facts(plan: ActionPlan, host: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the actions of a plan that concern one host with the facts of the cloud.

    The result has ``host, power, service, left, remains, safe_to_power_off, not_safe_because``, as
    JSON types. ``left`` has the instances that the plan moves away and that are not on the host,
    ``remains`` those that are on it. Raises InvalidInput if there is no such host.
    """
    known = {**facts["hosts"], **facts["services"]}
    if host not in known:
        text = f"there is no such host; {accepted(host, known)}"
        raise InvalidInput([Mistake(text, place=f"--node {host}")])
    moves = {a.resource_id: a for a in plan.actions if _leaves(a, host)}
    there = {i: at for i, at in facts["instances"].items() if at["host"] == host}
    service = facts["services"].get(host)
    because = [
        *([f"{count(len(there), 'instance')} on it"] if there else []),
        *(
            ["its service is enabled, so that instances may come"]
            if service and service["status"] == "enabled"
            else []
        ),
        *(f"{a.label} is {a.state}" for a in plan.actions if _comes(a, host)),
    ]
    return {
        "host": host,
        "power": facts["hosts"].get(host, {}).get("power"),
        "service": service,
        "left": [
            {
                "id": uuid,
                "name": action.input_parameters.get("resource_name"),
                "host": facts["instances"].get(uuid, {}).get("host"),
                "exists": uuid in facts["instances"],
            }
            for uuid, action in moves.items()
            if uuid not in there
        ],
        "remains": [
            {"id": i, "name": at["name"], "status": at["status"], "why": _why(moves.get(i))}
            for i, at in there.items()
        ],
        "safe_to_power_off": not because,
        "not_safe_because": because,
    }


def lines(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result of :func:`compare_with_facts` as lines of text."""
    service = state["service"]
    power = [f"power {state['power']}"] if state["power"] else []
    yield ", ".join([state["host"], *power, *(_service(service) if service else ())])
    yield f"Left: {count(len(state['left']), 'instance')}"
    for left in state["left"]:
        where = f"on {left['host'] or 'no host'}" if left["exists"] else "does not exist any more"
        yield f"  {left['name'] or left['id']}  {where}"
    yield f"Remains: {count(len(state['remains']), 'instance')}"
    for remaining in state["remains"]:
        yield f"  {remaining['name']}  {remaining['status']}: {remaining['why']}"
    because = state["not_safe_because"]
    yield f"Safe to power off: {'no: ' + '; '.join(because) if because else 'yes'}"


def _service(service: Mapping[str, Any]) -> Iterator[str]:
    why = f" ({service['reason']})" if service["reason"] else ""
    yield f"service {service['status']}{why} and {service['state']}"


def _leaves(action: Action, host: str) -> bool:
    return action.action_type == "migrate" and action.input_parameters.get("source_node") == host


def _comes(action: Action, host: str) -> bool:
    """Return whether an open action moves an instance to the host, or changes one that is there."""
    works = any(token.startswith("instance:") for token in action.tokens)
    open_here = action.state in _OPEN and f"node:{host}" in action.tokens
    return open_here and works and not _leaves(action, host)


def _why(move: Action | None) -> str:
    if move is None:
        return "no action of the plan moves it"
    message = f": {move.status_message}" if move.status_message else ""
    return _WHY.get(move.state, f"its move is {move.state}{message}")
