# SPDX-License-Identifier: Apache-2.0
"""The commands that interrupted actions have left: what is known of them, and how they end."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from applier.contracts import ActionPlugin, Claimant, Report
from applier.contracts.attempt_machines import JobFound
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed
from applier.scheduling.resumption import TO_VERIFY, in_doubt
from planner.model import Action, ActionPlan
from planner.states import ActionState, StateReason

LOG = logging.getLogger(__name__)

#: The number of actions whose machines are asked at once.
AT_ONCE = 16


def described(actions: Iterable[Action], environment: ActionEnvironment) -> dict[str, str]:
    """Return what is known of the commands of ONGOING and UNKNOWN actions, by uuid."""
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda action: _described(action, environment), doubtful)
        return {a.uuid: text for a, text in zip(doubtful, found, strict=True) if text}


def end_commands(
    actions: Iterable[Action],
    environment: ActionEnvironment,
    *,
    before: Claimant | None = None,
    host: str = "",
) -> list[Report]:
    """End the commands of all ONGOING actions; return what became of these actions.

    One whose command was ended is CANCELLED, as in a run. Any other is UNKNOWN, with the reason.
    ``before`` is the claimant that ran them, ``host`` this host.
    """
    running = [a for a in actions if a.state is ActionState.ONGOING]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda action: _ended(action, environment, before, host), running))


def away(
    action: Action, plugin: type[ActionPlugin], before: Claimant | None, host: str
) -> str | None:
    """Return where a command of an action may run that cannot be seen from this host.

    Other hosts may have run the plan since an action became UNKNOWN; ``before`` is only the last.
    """
    if None not in runs_on(action, plugin):
        return None
    if action.state is ActionState.UNKNOWN:
        return f"its command may still run on another host; none was found on {host}"
    if before is None or before.host == host:
        return None
    return (
        f"its command may still run on {before.host}, where process {before.pid} started it, and "
        f"cannot be seen from {host}"
    )


def runs_on(action: Action, plugin: type[ActionPlugin]) -> Sequence[str | None]:
    """Return the machines on which an action runs commands; None is this one."""
    return plugin.runs_on(action.input_parameters)


def local(plan: ActionPlan, environment: ActionEnvironment) -> set[str]:
    """Return the ONGOING and UNKNOWN actions that run commands where they are carried out."""
    plugins = environment.plugins
    doubtful = [a for a in plan.actions if a.state in TO_VERIFY]
    return {a.uuid for a in doubtful if None in runs_on(a, plugins[a.action_type])}


def _described(action: Action, environment: ActionEnvironment) -> str | None:
    machines = environment.machines_of(action, action.attempts)
    if machines is None:
        return None
    try:
        jobs = machines.find(_places(action, environment))
    except (ActionFailed, OSError) as reason:
        return str(reason)
    return "; ".join(map(str, jobs)) or None


def _ended(
    action: Action, environment: ActionEnvironment, before: Claimant | None, host: str
) -> Report:
    machines = environment.machines_of(action, action.attempts)
    if machines is not None and machines.forbid():
        return _report(action, ActionState.CANCELLED, "aborted before it began")
    places = _places(action, environment)
    found: Sequence[JobFound] = ()
    try:
        if machines is not None:
            found = machines.find(places)
            machines.end(places)
            left = [job for job in machines.find(places) if _runs(job)]
            if not left and any(map(_runs, found)):
                return _report(action, ActionState.CANCELLED, "aborted: its command was ended")
            found = left or found
    except (ActionFailed, OSError) as reason:
        LOG.warning("The command of action %s was not ended: %s", action.label, reason)
        why = f"{reason}; its command may still run there"
    else:
        elsewhere = away(action, environment.plugins[action.action_type], before, host)
        why = "; ".join(map(str, found)) or elsewhere or "no command of it was found"
    message = f"its plan was cancelled without its applier; {why}; {in_doubt(action)}"
    return _report(action, ActionState.UNKNOWN, message)


def _runs(job: JobFound) -> bool:
    return job.age_s is not None or bool(job.left)


def _report(action: Action, state: ActionState, message: str) -> Report:
    reason = StateReason.ABORTED if state is ActionState.CANCELLED else None
    return Report(
        uuid=action.uuid, old=action.state, state=state, state_reason=reason, message=message
    )


def _places(action: Action, environment: ActionEnvironment) -> list[str | None]:
    """Return this machine and those on which the action runs commands."""
    on = runs_on(action, environment.plugins[action.action_type])
    return list(dict.fromkeys((None, *on)))
