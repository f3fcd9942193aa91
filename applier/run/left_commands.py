# SPDX-License-Identifier: Apache-2.0
"""Finds, describes and ends the commands that interrupted actions have left on machines."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from applier.contracts import ActionPlugin, Claimant, Report
from applier.contracts.attempt_machines import JobFound
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed
from applier.scheduling.resumption import TO_VERIFY, in_doubt
from planner.model import Action, ActionPlan
from planner.states import ActionState, StateReason

LOG = logging.getLogger(__name__)

#: The number of actions whose machines are searched in parallel.
AT_ONCE = 16


def described(actions: Iterable[Action], environment: ActionEnvironment) -> dict[str, str]:
    """Return a description of the commands of each ONGOING or UNKNOWN action, by uuid.

    It is the reason if a machine cannot be reached. Actions without commands are left out.
    """
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
    folder: str | None = None,
) -> list[Report]:
    """End the commands of all ONGOING actions; return a report for each of these actions.

    An action whose command was ended, or whose attempt had not begun, is CANCELLED, as in a run.
    Any other is UNKNOWN, with the reason. The reports are not written to the store. ``before`` is
    the claimant that ran the actions, ``host`` this host, ``folder`` that of the jobs here.
    """
    running = [a for a in actions if a.state is ActionState.ONGOING]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = partial(_ended, environment=environment, before=before, host=host, folder=folder)
        return list(pool.map(ended, running))


def unseen_command_text(
    action: Action,
    plugin: type[ActionPlugin],
    before: Claimant | None,
    host: str,
    folder: str | None = None,
) -> str | None:
    """Return a clause about a command that may run and cannot be seen from here, or None.

    The command of an action that runs on its applier's host cannot be seen from another host, nor
    by a user whose jobs are in another ``folder``. Other hosts may have run the plan since an
    action became UNKNOWN; ``before`` is only the last.
    """
    if None not in runs_on(action, plugin):
        return None
    if action.state is ActionState.UNKNOWN:
        return f"its command may still run on another host; none was found on {host}"
    if before is None:
        return None
    if before.host == host:
        if None in (before.jobs, folder) or before.jobs == folder:
            return None
        return (
            f"its command may still run: process {before.pid} of {before.user} left it in "
            f"{before.jobs}, and the commands of this user are in {folder}"
        )
    return (
        f"its command may still run on {before.host}, where process {before.pid} started it, and "
        f"cannot be seen from {host}"
    )


def runs_on(action: Action, plugin: type[ActionPlugin]) -> Sequence[str | None]:
    """Return the machines on which an action runs commands; None is this one."""
    return plugin.runs_on(action.input_parameters)


def is_found_there(action: Action, plugin: type[ActionPlugin]) -> bool:
    """Return whether only the machine that began an action can tell if it is still at work.

    It runs commands there, or another attempt cannot join its work.
    """
    return None in runs_on(action, plugin) or not plugin.joins_work(action.input_parameters)


def found_there(
    plan: ActionPlan, jobs: Collection[str], environment: ActionEnvironment
) -> set[str]:
    """Return the actions with ``jobs`` of which only the machine of their worker can tell."""
    plugins, with_jobs = environment.plugins, [a for a in plan.actions if a.uuid in jobs]
    return {a.uuid for a in with_jobs if is_found_there(a, plugins[a.action_type])}


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
    action: Action,
    environment: ActionEnvironment,
    before: Claimant | None,
    host: str,
    folder: str | None,
) -> Report:
    machines = environment.machines_of(action, action.attempts)
    if machines is not None and machines.withdraw_permit():
        return _report(action, ActionState.CANCELLED, "aborted before it began")
    places = _places(action, environment)
    found: Sequence[JobFound] = ()
    try:
        if machines is not None:
            found = machines.find(places)
            machines.end(places)
            left = [job for job in machines.find(places) if job.is_running]
            if not left and any(job.is_running for job in found):
                return _report(action, ActionState.CANCELLED, "aborted: its command was ended")
            found = left or found
    except (ActionFailed, OSError) as reason:
        LOG.warning("The command of action %s was not ended: %s", action.label, reason)
        why = f"{reason}; its command may still run there"
    else:
        elsewhere = unseen_command_text(
            action, environment.plugins[action.action_type], before, host, folder
        )
        why = "; ".join(map(str, found)) or elsewhere or "no command of it was found"
    message = f"its plan was cancelled without its applier; {why}; {in_doubt(action.label)}"
    return _report(action, ActionState.UNKNOWN, message)._replace(given_up=True)


def _report(action: Action, state: ActionState, message: str) -> Report:
    reason = StateReason.ABORTED if state is ActionState.CANCELLED else None
    return Report(
        uuid=action.uuid, old=action.state, state=state, state_reason=reason, message=message
    )


def _places(action: Action, environment: ActionEnvironment) -> list[str | None]:
    """Return this machine and those on which the action runs commands."""
    on = runs_on(action, environment.plugins[action.action_type])
    return list(dict.fromkeys((None, *on)))
