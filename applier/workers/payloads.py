# SPDX-License-Identifier: Apache-2.0
"""Converts an attempt to the JSON payload of a job, and the JSON result of a job to a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

from applier.contracts import JobOffer, Report
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import ActionTask, task_maker
from applier.errors import ActionFailed
from applier.store.worker_jobs import AttemptKey
from planner.errors import PlannerError, UnknownPlugin
from planner.plan.model import Action
from planner.plan.states import ActionState, Outcome, StateReason, Who, sources

#: The form of the payloads that this release writes, and the newest that it reads.
FORMAT = 1
#: The types of the values of a payload, by key.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "release": str,
    "cloud": str,
    "name": (str, NoneType),
    "action_type": str,
    "input_parameters": dict,
    "limit_s": (int, float, NoneType),
    "cut_off": bool,
}


def payload_of(task: ActionTask, cloud: str, release: str) -> dict[str, Any]:
    """Return the payload of the job of an attempt, from which a worker makes the task again.

    ``cloud`` is the name of the applier's cloud, ``release`` the release of ActionPlan there.
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
    payload: Mapping[str, Any], environment: ActionEnvironment, cloud: str | None, release: str
) -> None:
    """Raise ActionFailed if a worker with this environment cannot carry out an attempt.

    It is also raised for a damaged payload, which may lack any key.
    """
    known = payload.get("format")
    if isinstance(known, int) and known > FORMAT:
        other = payload.get("release")
        raise ActionFailed(f"it has ActionPlan {release}, older than {other} of the applier")
    wrong = (key for key, kind in _TYPES.items() if not isinstance(payload.get(key, ...), kind))
    if (first := next(wrong, None)) is not None or not isinstance(known, int):
        raise ActionFailed(f"its job on record is damaged: {first or 'format'} is missing or wrong")
    kind = payload["action_type"]
    try:
        plugin = environment.plugins[kind]
    except (KeyError, UnknownPlugin):
        raise ActionFailed(f"no plugin there offers the action type {kind}") from None
    except PlannerError as reason:  # it is installed there, and cannot be used
        raise ActionFailed(str(reason)) from None
    if payload["cloud"] != cloud and plugin.USES_CLOUD:
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

    ``continued_s`` is None for a new attempt. If commands of an attempt were found, it is how many
    seconds ago they began.
    """
    action = action_of(key, payload)
    begun = {} if continued_s is None else {key.action: continued_s}
    before = action if begun else replace(action, attempts=key.attempt - 1)
    cut_off = [key.action] if payload["cut_off"] else []
    task: ActionTask = task_maker([before], environment, cut_off, begun)(key.action)
    task.limit_s = payload["limit_s"]
    return task


_TEXTS = ("state", "outcome", "state_reason", "message", "output", "left_in")


def result_of(report: Report) -> dict[str, Any]:
    """Return the result that a worker writes at the end of a job whose attempt has this report."""
    values = {key: getattr(report, key) for key in _TEXTS}
    texts = {key: None if value is None else str(value) for key, value in values.items()}
    return {**texts, "given_up": report.given_up}


def report_of(action: str, offer: JobOffer, result: Mapping[str, Any]) -> Report:
    """Return the report of an action from the result of its job.

    The state PENDING in a result means that a verified attempt is to be repeated. Its report is
    FAILED with ``again``, so that another attempt follows. Raises ValueError for a result of
    another form: whoever has the database account of a worker may write anything.
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
        left_in=result["left_in"],
    )


def process_of(worker: str | None) -> str:
    """Return the process of a worker, ``HOST:PID``; words for it if its name is not known.

    >>> process_of("cmp1:4711:a1b2c3")
    'cmp1:4711'
    """
    return worker.rpartition(":")[0] if worker else "an unknown process"
