# SPDX-License-Identifier: Apache-2.0
"""What an applier and a worker tell each other about an attempt, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from applier.contracts import JobOffer, Report
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import ActionTask, task_maker
from applier.errors import ActionFailed
from applier.store.worker_jobs import AttemptKey
from planner.model import Action
from planner.states import ActionState, Outcome, StateReason, Who, sources

#: The form of the payloads that this release writes, and the newest that it reads.
FORMAT = 1


def payload_of(task: ActionTask, cloud: str, release: str) -> dict[str, Any]:
    """Return what a worker needs to carry out an attempt.

    ``cloud`` is the name of the cloud that it works on, ``release`` that of this release.
    """
    action = task.action
    return {
        "format": FORMAT,
        "release": release,
        "cloud": cloud,
        "name": action.name,
        "action_type": action.action_type,
        "input_parameters": dict(action.input_parameters),
        "limit_s": task.limit_s,
        "cut_off": task.cut_off,
    }


def require_able(
    payload: Mapping[str, Any], environment: ActionEnvironment, cloud: str, release: str
) -> None:
    """Raise ActionFailed if a worker with this environment cannot carry out an attempt."""
    if payload["format"] > FORMAT:
        other = payload["release"]
        raise ActionFailed(f"it has ActionPlan {release}, older than {other} of the applier")
    kind = payload["action_type"]
    if kind not in environment.plugins:
        raise ActionFailed(f"no plugin there offers the action type {kind}")
    if payload["cloud"] != cloud and environment.plugins[kind].USES_CLOUD:
        raise ActionFailed(f"it is configured for the cloud {cloud!r}, not {payload['cloud']!r}")


def action_of(key: AttemptKey, payload: Mapping[str, Any]) -> Action:
    """Return the action of a job, which is ONGOING."""
    return Action(
        uuid=key.action,
        name=payload["name"],
        action_type=payload["action_type"],
        input_parameters=payload["input_parameters"],
        state=ActionState.ONGOING,
        attempts=key.attempt,
    )


def task_of(
    key: AttemptKey,
    payload: Mapping[str, Any],
    environment: ActionEnvironment,
    continued_s: float | None = None,
) -> ActionTask:
    """Return the task of a job, for the plugins, cloud and machines of a worker.

    ``continued_s`` is how many seconds ago the attempt began that goes on; None for a new one.
    """
    action = action_of(key, payload)
    begun = {} if continued_s is None else {key.action: continued_s}
    before = action if begun else replace(action, attempts=key.attempt - 1)
    cut_off = [key.action] if payload["cut_off"] else []
    task: ActionTask = task_maker([before], environment, cut_off, begun)(key.action)
    task.limit_s = payload["limit_s"]
    return task


_TEXTS = ("state", "outcome", "state_reason", "message", "output")


def result_of(report: Report) -> dict[str, Any]:
    """Return the result of a job."""
    return {
        "state": str(report.state),
        "outcome": None if report.outcome is None else str(report.outcome),
        "state_reason": None if report.state_reason is None else str(report.state_reason),
        "message": report.message,
        "output": report.output,
        "given_up": report.given_up,
    }


def report_of(action: str, offer: JobOffer, result: Mapping[str, Any]) -> Report:
    """Return the report of an action from the result of its job.

    A job that was verified, and whose work was not done, ends PENDING: it runs again. Raises
    ValueError if it is no result of a worker: who gets hold of an account may write anything.
    """
    if set(result) != {*_TEXTS, "given_up"}:
        raise ValueError(f"it has not the keys {', '.join(_TEXTS)}, given_up")
    for key in _TEXTS:
        if not isinstance(result[key], str) and (key == "state" or result[key] is not None):
            raise ValueError(f"its {key} is no text")
    if not isinstance(result["given_up"], bool):
        raise ValueError("its given_up is neither true nor false")
    state, outcome = ActionState(result["state"]), result["outcome"]
    if ActionState.ONGOING not in sources(state, Who.ENGINE):
        raise ValueError(f"no attempt ends {state}")
    reason, again = result["state_reason"], state is ActionState.PENDING
    return Report(
        uuid=action,
        old=ActionState.ONGOING,
        state=ActionState.FAILED if again else state,
        outcome=None if outcome is None else Outcome(outcome),
        state_reason=None if reason is None else StateReason(reason),
        message=result["message"],
        output=result["output"],
        job=offer,
        again=again,
        given_up=result["given_up"],
    )
