# SPDX-License-Identifier: Apache-2.0
"""The commands that interrupted actions have left: what is known of them, and how they end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed
from applier.scheduling.resumption import TO_VERIFY
from planner.model import Action
from planner.states import ActionState

LOG = logging.getLogger(__name__)

#: The number of actions whose machines are asked at once.
AT_ONCE = 16


def described(actions: Iterable[Action], environment: ActionEnvironment) -> dict[str, str]:
    """Return what is known of the commands of ONGOING and UNKNOWN actions, by uuid."""
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda action: _described(action, environment), doubtful)
        return {a.uuid: text for a, text in zip(doubtful, found, strict=True) if text}


def end_commands(actions: Iterable[Action], environment: ActionEnvironment) -> None:
    """End the commands of all ONGOING actions; those that cannot be reached are logged."""
    running = [a for a in actions if a.state is ActionState.ONGOING]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda action: _end(action, environment), running))


def _described(action: Action, environment: ActionEnvironment) -> str | None:
    machines = environment.machines_of(action, action.attempts)
    if machines is None:
        return None
    try:
        jobs = machines.find(_places(action, environment))
    except (ActionFailed, OSError) as reason:
        return str(reason)
    return "; ".join(map(str, jobs)) or None


def _end(action: Action, environment: ActionEnvironment) -> None:
    machines = environment.machines_of(action, action.attempts)
    if machines is None:
        return
    try:
        machines.end(_places(action, environment))
    except (ActionFailed, OSError) as reason:
        LOG.warning("The command of action %s was not ended: %s", action.label, reason)


def _places(action: Action, environment: ActionEnvironment) -> list[str | None]:
    """Return this machine and those on which the action runs commands."""
    on = environment.plugins[action.action_type].runs_on(action.input_parameters)
    return list(dict.fromkeys((None, *on)))
