# SPDX-License-Identifier: Apache-2.0
"""Decides what became of interrupted actions, by what their plugins found. Pure."""

from __future__ import annotations

from applier.contracts import Report, Verified
from applier.store import Attempt
from planner.plan.model import Action
from planner.plan.states import ActionState, Outcome

#: An action in one of these states is verified before its plan continues.
TO_VERIFY = frozenset({ActionState.ONGOING, ActionState.UNKNOWN})


def decide(
    action: Action,
    found: Verified,
    *,
    rerun_safe: bool,
    lost: str | None = None,
    elsewhere: str | None = None,
) -> Report | None:
    """Return the report for an ONGOING or UNKNOWN action, given the finding of its plugin.

    ``lost`` is a clause about the end of its command. ``elsewhere`` is a clause about a command of
    it that may still run: then it does not run again, but becomes UNKNOWN and is given up, unless
    its work is done. Return None for an action that stays UNKNOWN.

    >>> a = Action(uuid="a", action_type="nop", state=ActionState.ONGOING)
    >>> [str(decide(a, found, rerun_safe=False).state) for found in Verified]
    ['SUCCEEDED', 'PENDING', 'UNKNOWN']
    """
    how = "it was interrupted" if action.state is ActionState.ONGOING else "it was in doubt"
    if lost is not None and elsewhere is None:
        how = f"{how}: {lost}"
    if found is Verified.DONE:
        message = f"{how}; verified: its work is done"
        return _report(action, ActionState.SUCCEEDED, message, Outcome.CHANGED)
    if elsewhere is not None:
        report = _stays_in_doubt(action, f"{how}; {elsewhere}; {in_doubt(action.label)}")
        return report and report._replace(given_up=True)
    if found is Verified.NOT_DONE:
        message = f"{how}; verified: its work is not done, it runs again"
        return _report(action, ActionState.PENDING, message, Outcome.ERROR)
    if rerun_safe:
        message = f"{how}; it is not known whether its work is done, but it may safely run again"
        return _report(action, ActionState.PENDING, message, Outcome.ERROR)
    return _stays_in_doubt(action, f"{how}; {in_doubt(action.label)}")


def _stays_in_doubt(action: Action, message: str) -> Report | None:
    if action.state is ActionState.UNKNOWN:
        return None
    return _report(action, ActionState.UNKNOWN, message)


def going_on(action: Action) -> Report | None:
    """Return the report for an action with a command that goes on; None if it is ONGOING."""
    if action.state is ActionState.ONGOING:
        return None
    message = "its command was found, and is followed to its end"
    return _report(action, ActionState.ONGOING, message)


def runs_again(action: Action) -> Report:
    """Return the report for an ONGOING or UNKNOWN action whose last attempt had not begun."""
    message = "its start was recorded, but it had not begun: it runs again"
    return _report(action, ActionState.PENDING, message, Outcome.ERROR)


def in_doubt(label: str) -> str:
    """Return the message for an action that cannot be verified: how to set its state.

    ``label`` is its name, or the beginning of its uuid.
    """
    return (
        "it is not known whether its work is done: check, then set its state with: "
        "actionplan action set "
        f"PLAN {label} --state succeeded|failed --reason TEXT"
    )


def was_cut_off(attempts: list[Attempt]) -> bool:
    """Return whether the last attempt was interrupted, so that its effect is not known.

    Such an attempt has no outcome, because its applier died, or the outcome ``error``, because its
    connection was lost or it timed out.
    """
    return bool(attempts) and attempts[-1].outcome in (None, Outcome.ERROR)


def _report(
    action: Action, state: ActionState, message: str, outcome: Outcome | None = None
) -> Report:
    return Report(uuid=action.uuid, old=action.state, state=state, outcome=outcome, message=message)
