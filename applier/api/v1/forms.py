# SPDX-License-Identifier: Apache-2.0
"""Plans and actions as JSON of Watcher's API, with Watcher's names of states.

A state that Watcher does not have is replaced by the closest one; the status message then begins
with our name of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import falcon

from applier.api.v1 import versions
from applier.api.v1.requests import links
from applier.notifications import watcher
from applier.notifications.watcher import action_word
from applier.operations import hidden_parameters
from applier.store.plans import PlanHead, PlannedAction
from planner.making.registry import ActionTypes
from planner.plan.model import Action
from planner.plan.states import PlanState

#: The state shown for a plan whose row in the database cannot be read.
_DAMAGED = "FAILED"


def plan_word(state: PlanState | None) -> str:
    """Return Watcher's name of the state of a plan; FAILED for None: the state is not readable."""
    return _DAMAGED if state is None else watcher.plan_word(state)


def plan_form(
    head: PlanHead, request: falcon.Request, *, whole: bool = True, state: str | None = None
) -> dict[str, Any]:
    """Return a plan as JSON types; ``state``, if it is set, replaces the state of the plan.

    Without ``whole``, only the fields of a short list are included.
    """
    own = plan_word(head.state)
    form: dict[str, Any] = {
        "uuid": head.uuid,
        "audit_uuid": head.audit_uuid,
        "strategy_uuid": None,
        "strategy_name": head.strategy_name,
        "state": state or own,
        "efficacy_indicators": _numbers(head.efficacy_indicators),
        "global_efficacy": _numbers(head.global_efficacy),
        "updated_at": _time(head.updated_at),
        "links": links(request, "action_plans", head.uuid),
    }
    if whole:
        form |= {"hostname": head.host, "created_at": _time(head.created_at), "deleted_at": None}
        if versions.knows_messages(request):
            text = f"damaged: {head.damage}" if head.damage else head.status_message
            if head.state is not None and not head.damage:
                text = watcher.with_own_word(head.state, own, text)
            form["status_message"] = text
    return form


def action_form(
    planned: PlannedAction, types: ActionTypes, request: falcon.Request, *, whole: bool = True
) -> dict[str, Any]:
    """Return an action as JSON types, with secret parameter values replaced.

    Without ``whole``, only the fields of a short list are included.
    """
    action = planned.action
    state = action_word(action.state)
    form: dict[str, Any] = {
        "uuid": planned.uuid,
        "action_plan_uuid": planned.plan,
        "action_type": action.action_type,
        "state": state,
        "parents": parents(action),
        "links": links(request, "actions", planned.uuid),
    }
    if whole:
        shown = hidden_parameters.action_without(action, types)
        form |= {
            "description": action.description or "",
            "input_parameters": shown.input_parameters,
            "created_at": _time(planned.plan_created_at),
            "updated_at": _time(action.ended_at or action.started_at),
            "deleted_at": None,
        }
        if versions.knows_messages(request):
            own = watcher.with_own_word(action.state, state, action.status_message)
            form["status_message"] = own
    return form


def parents(action: Action) -> list[str]:
    """Return the uuids of all predecessors: parents, needs, triggers, and members of ``needs_any``.

    >>> parents(Action(uuid="d", action_type="nop", parents=("a",), needs_any=(("a", "b"), ("c",))))
    ['a', 'b', 'c']
    """
    groups = (uuid for group in action.needs_any for uuid in group)
    return list(dict.fromkeys((*action.before(), *groups)))


def _numbers(efficacy: Any) -> list[dict[str, Any]]:
    """Return the efficacy indicators that are mappings; a value that is no number becomes None.

    Watcher's client can format no others.
    """
    return [_indicator(each) for each in efficacy if isinstance(each, Mapping)]


def _indicator(known: Mapping[str, Any]) -> dict[str, Any]:
    form = {key: known.get(key) for key in ("name", "description", "unit", "value")}
    value = form["value"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return form if is_number else {**form, "value": None}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
