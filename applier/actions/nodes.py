# SPDX-License-Identifier: Apache-2.0
"""Functions for the action types that work on a node: they choose the machine.

An action without ``node`` and ``address`` runs on this machine, one with an ``address`` over SSH.
A ``node`` without ``address`` is simulated: the action only waits ``duration_s`` seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from applier.actions import schemas
from applier.actions.parameters import one_line, text, touch
from applier.contracts import ActionPlugin, Machine, Machines, StopSignal, Verified
from applier.errors import ActionFailed
from applier.machines import OpenMachines
from applier.machines.address import PATTERN, host_of
from planner import ranges
from planner.model import Touch
from planner.states import Outcome

#: The parameters that select the machine of an action.
WHERE: Mapping[str, schemas.Schema] = {
    "node": {**schemas.RESOURCE, "description": "uid of the node it is for"},
    "address": {
        **ranges.ARGUMENT,
        "title": "an address, [user@]host[:port]",
        "pattern": PATTERN,
        "description": "where the node is reached over SSH; without it a node is simulated",
        "examples": ["root@10.0.0.3:22"],
    },
    "duration_s": {
        **ranges.SECONDS,
        "default": 0,
        "description": "seconds that it takes on a simulated node",
    },
    **schemas.ANY_RESOURCE,
}
#: The machines of an action whose context has none.
OWN: Machines = OpenMachines()


def parameters(
    required: Mapping[str, schemas.Schema],
    optional: Mapping[str, schemas.Schema],
    *examples: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the schema of ``input_parameters`` for an action type that works on a node.

    A task that names a ``node`` may lack the ``required`` parameters, because published task
    sets do; :func:`check` refuses such a task unless it is simulated.
    """
    made = schemas.parameters(
        {},
        optional={**required, **optional, **WHERE},
        examples=[*examples, {"node": "3", "duration_s": 0.5}],
    )
    if required:
        made["anyOf"] = [{"required": list(required)}, {"required": ["node"]}]
    return made


def node_of(given: Mapping[str, Any]) -> str | None:
    """Return the name of the node, or None for this machine.

    >>> node_of({"node": "3"}), node_of({"address": "root@10.0.0.3:22"}), node_of({})
    ('3', '10.0.0.3', None)
    """
    return text(given, "node") or host_of(given.get("address"))


def is_simulated(given: Mapping[str, Any]) -> bool:
    """Return True if the parameters name a node and no address."""
    return text(given, "node") is not None and text(given, "address") is None


def touches(parameters: Mapping[str, Any]) -> tuple[Touch, ...]:
    """Return the touch of the node, so that no two plans work on it at once."""
    return touch("node", node_of(parameters))


def runs_on(parameters: Mapping[str, Any]) -> Sequence[str | None]:
    """Return the address of the node (None: this machine); nothing if the node is simulated."""
    return () if is_simulated(parameters) else (text(parameters, "address"),)


def works_outside(parameters: Mapping[str, Any]) -> bool:
    """Return True unless the node is simulated."""
    return not is_simulated(parameters)


def estimate(parameters: Mapping[str, Any]) -> float | None:
    """Return the seconds that it takes on a simulated node; None for any other."""
    seconds = parameters.get("duration_s", 0) if is_simulated(parameters) else None
    return float(seconds) if ranges.is_duration(seconds) else None


def described(what: str, given: Mapping[str, Any]) -> str:
    """Return a description with the node added.

    >>> described("reboot", {"node": "3"})
    'reboot on node 3'
    """
    node = node_of(given)
    return f"{what} on node {one_line(node, 40)}" if node else what


def check(action: ActionPlugin, *required: str) -> None:
    """Raise ActionFailed if a parameter is missing, unless the node is simulated."""
    lacking = [name for name in required if action.parameters.get(name) is None]
    if lacking and not is_simulated(action.parameters):
        names = " and ".join(map(repr, lacking))
        raise ActionFailed(f"this {action.TYPE} cannot run: it has no {names}")


def perform(action: ActionPlugin, work: Callable[[Machine], Outcome], stop: StopSignal) -> Outcome:
    """Return the outcome of ``work`` on the machine of the action, or simulate it.

    Raises ActionFailed if ``stop`` is set before it begins.
    """
    given = action.parameters
    if stop.is_set():
        raise ActionFailed("stopped before it began")
    machines = action.context.machines or OWN
    if not is_simulated(given):
        return work(machines.machine(given.get("address"), stop))
    node = given["node"]
    task = (action.context.name or action.TYPE).removeprefix(f"{node}/")
    return machines.simulate(node, task, given.get("duration_s", 0), stop)


def verified(action: ActionPlugin, look: Callable[[Machine], Verified]) -> Verified:
    """Return the result of ``look`` on the machine; IN_DOUBT if it cannot be reached.

    A simulated task is NOT_DONE: simulating it again does no harm.
    """
    if is_simulated(action.parameters):
        return Verified.NOT_DONE
    machines = action.context.machines or OWN
    try:
        return look(machines.machine(action.parameters.get("address"), threading.Event()))
    except (ActionFailed, OSError):
        return Verified.IN_DOUBT
