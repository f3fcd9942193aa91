# SPDX-License-Identifier: Apache-2.0
"""Converts plans to rows of the tables, and rows to plans, without side effects.

Links (tuples of uuids) that many actions have in common are encoded once, and decoded once into one
tuple object. A thousand actions with the same thousand parents cost one tuple, not a thousand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from applier.contracts import Claimant, Report, Request, RunOptions
from applier.storage.schema import TABLES
from applier.storage.statements import Row, UnreadableValue
from applier.store import Attempt, PlanSummary
from applier.store.plans import PlanHead, PlannedAction
from planner import guards, safe_text
from planner.plan import place_rules
from planner.plan.model import Action, ActionPlan, Blocker, Trigger
from planner.plan.place_rules import HeldPlace
from planner.plan.states import ActionState, Outcome, PlanState, StateReason

Given = ParamSpec("Given")
Result = TypeVar("Result")
#: Bind parameters of a statement, by name.
Changes = dict[str, Any]

CLAIM_VALUES = ("heartbeat_at", "heartbeat_interval_s", "requests_before", "claimed_at")
#: Columns that hold JSON.
PLAN_LISTS = ("efficacy_indicators", "global_efficacy", "tolerances", "warnings")
ACTION_LINKS = ("parents", "needs", "tokens")
ACTION_JSON = (*ACTION_LINKS, "input_parameters", "needs_any", "triggers", "blocked_by")

#: How many bytes (UTF-8) of the output of an action are stored: the last ones.
OUTPUT_LIMIT = 64 * 1024
#: How many characters of a name, such as that of a user, are stored.
LINE = 255

#: Empty values, as JSON.
EMPTY, EMPTY_MAPPING = "[]", "{}"
_EMPTY: Mapping[str, Callable[[], Any]] = {EMPTY: tuple, EMPTY_MAPPING: dict}

_encode, _decoder = safe_text.compact_json, json.JSONDecoder()
#: The states by their names, which is quicker than a call of the class.
_STATES: Mapping[str, ActionState] = {str(state): state for state in ActionState}


def plan_row(plan: ActionPlan, *, creator: str | None = None) -> dict[str, Any]:
    """Return the row of a new plan, which has no claim and no requests."""
    columns = TABLES["actionplan_plan"]
    head = {key: getattr(plan, key) for key in ActionPlan.__dataclass_fields__ if key in columns}
    head |= {"guards": None if plan.guards == guards.NO_GUARDS else _encode(plan.guards.to_dict())}
    head |= {"places": _encode(place_rules.to_dict(plan.places)) if plan.places else None}
    head |= {key: _encode(list(getattr(plan, key))) for key in PLAN_LISTS}
    head |= {"digest": plan.digest, "creator": line(creator)}
    head |= {"limits": _encode(dict(plan.limits)), "state": str(plan.state)}
    doubtful = any(action.state is ActionState.UNKNOWN for action in plan.actions)
    head |= {"approvals": plan.guards.approvals, "doubtful": int(doubtful)}
    return head


def action_rows(plan: ActionPlan, waves: Mapping[str, int] = {}) -> Iterator[dict[str, Any]]:
    """Return the rows of a plan's actions in plan order, with ``position`` from 0.

    Each row has the columns of both tables, with the number of the action's wave in ``waves``.
    """
    texts: dict[tuple[str, ...], str] = {}

    def links(uuids: tuple[str, ...]) -> str:
        text = texts.get(uuids)
        if text is None:
            text = texts[uuids] = _encode(uuids)
        return text

    for position, a in enumerate(plan.actions):
        yield {
            "plan": plan.uuid,
            "uuid": a.uuid,
            "position": position,
            "name": a.name,
            "action_type": a.action_type,
            "resource_id": a.resource_id,
            "state": str(a.state),
            "outcome": a.outcome and str(a.outcome),
            "state_reason": a.state_reason and str(a.state_reason),
            "started_at": a.started_at,
            "ended_at": a.ended_at,
            "attempts": a.attempts,
            "estimate_s": a.estimate_s,
            "timeout_s": a.timeout_s,
            "retries": a.retries,
            "status_message": a.status_message,
            "description": a.description,
            "reason": a.reason,
            "input_parameters": _encode(a.input_parameters),
            "tokens": links(a.tokens),
            "parents": links(a.parents),
            "needs": links(a.needs),
            "needs_any": _encode(a.needs_any) if a.needs_any else EMPTY,
            "triggers": _encode(a.triggers) if a.triggers else EMPTY,
            "blocked_by": _encode(a.blocked_by) if a.blocked_by else None,
            "places": _encode(a.places) if a.places else None,
            "wave": waves.get(a.uuid),
        }


def reading(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function raise UnreadableValue in place of the errors that damaged values cause.

    These are ValueError, TypeError, KeyError, AttributeError and, if too deep, RecursionError.
    """

    @wraps(function)
    def read(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return function(*given, **named)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as reason:
            text = f"{reason} is missing" if isinstance(reason, KeyError) else str(reason)
            raise UnreadableValue(text) from reason

    return read


@reading
def plan_of(head: Row, members: Iterable[Row]) -> ActionPlan:
    """Return a plan from its row and those of its actions, which also have the columns of states.

    As all functions that convert rows, it raises UnreadableValue if one is damaged.
    """
    require_links(plan := part_of(head, members))
    require_digest(plan, head["digest"])
    return plan


@reading
def part_of(head: Row, members: Iterable[Row]) -> ActionPlan:
    """Return a plan of which actions may be left out, whatever its links and its digest."""
    known = {key: head[key] for key in ActionPlan.__dataclass_fields__ if key in head}
    known |= {key: tuple(_decoded(head[key])) for key in PLAN_LISTS}
    known |= {"limits": _decoded(head["limits"]), "state": PlanState(head["state"])}
    known |= {"guards": guards.of(_decode(head["guards"])) if head["guards"] else guards.NO_GUARDS}
    known |= {"places": place_rules.of(_decode(head["places"])) if head["places"] else {}}
    return ActionPlan(**known, actions=_actions(members))


def require_digest(plan: ActionPlan, saved: str) -> None:
    """Raise ValueError if the digest of a plan is not ``saved``."""
    if plan.digest != saved:
        raise ValueError("its content was changed after it was saved: its digest does not fit")


@reading
def require_links(plan: ActionPlan) -> None:
    """Raise ValueError for a link to an action that is not there; check shared tuples only once."""
    actions = plan.actions
    uuids = {action.uuid for action in actions}
    groups = {id(group): group for a in actions for group in (a.parents, a.needs, *a.needs_any)}
    for group in groups.values():
        if not uuids.issuperset(group):
            raise ValueError(f"a link to {min(set(group) - uuids)}, which is no action of the plan")
    for action in actions:
        for source, _ in (*action.triggers, *action.blocked_by):
            if source not in uuids:
                raise ValueError(f"a link to {source}, which is no action of the plan")


@reading
def refreshed(plan: ActionPlan, head: Row, states: Iterable[Row]) -> ActionPlan:
    """Return a copy of a plan with the states that are in its row and in those of its actions."""
    changes = {row["uuid"]: _state_of(row) for row in states}
    return replace(
        plan,
        **{key: head[key] for key in ("updated_at", "status_message", "start_at")},
        state=PlanState(head["state"]),
        actions=tuple(_changed(action, changes[action.uuid]) for action in plan.actions),
    )


def _changed(action: Action, values: Mapping[str, Any]) -> Action:
    same = all(getattr(action, key) == value for key, value in values.items())
    return action if same else replace(action, **values)


def _state_of(row: Row) -> dict[str, Any]:
    if not isinstance(row["attempts"], int):
        raise ValueError(f"attempts {row['attempts']!r} is not a number")
    return {
        "state": _STATES.get(row["state"]) or ActionState(row["state"]),
        "outcome": Outcome(row["outcome"]) if row["outcome"] else None,
        "state_reason": StateReason(row["state_reason"]) if row["state_reason"] else None,
        "status_message": row["status_message"],
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
        "attempts": row["attempts"],
    }


def _actions(rows: Iterable[Row]) -> tuple[Action, ...]:
    read: dict[str, tuple[str, ...]] = {}
    one_of: dict[tuple[str, ...], tuple[str, ...]] = {}

    def share(uuids: Iterable[str]) -> tuple[str, ...]:
        once = tuple(uuids)
        return one_of.setdefault(once, once)

    def links(text: str) -> tuple[str, ...]:
        uuids = read.get(text)
        if uuids is None:
            uuids = read[text] = share(_decode(text))
        return uuids

    def action(row: Row) -> Action:
        any_of = row["needs_any"]
        return Action(
            uuid=row["uuid"],
            name=row["name"],
            action_type=row["action_type"],
            resource_id=row["resource_id"],
            estimate_s=row["estimate_s"],
            timeout_s=row["timeout_s"],
            retries=row["retries"],
            description=row["description"],
            reason=row["reason"],
            input_parameters=_decoded(row["input_parameters"]),
            tokens=links(row["tokens"]),
            parents=links(row["parents"]),
            needs=links(row["needs"]),
            needs_any=() if any_of == EMPTY else tuple(map(share, _decode(any_of))),
            triggers=_events(Trigger, row["triggers"]),
            blocked_by=_events(Blocker, row["blocked_by"] or EMPTY),
            places=tuple(HeldPlace(*place) for place in _decoded(row["places"] or EMPTY)),
            **_state_of(row),
        )

    return tuple(map(action, rows))


def _decode(text: str) -> Any:
    """Decode JSON; raises ValueError."""
    value, end = _decoder.raw_decode(text)
    # The slower function also accepts white space after the value.
    return value if end == len(text) else _decoder.decode(text)


def _decoded(text: str) -> Any:
    """Decode JSON; an empty list, as in most columns, becomes a tuple without the decoder."""
    empty = _EMPTY.get(text)
    return _decode(text) if empty is None else empty()


@reading
def head_of(row: Row) -> PlanHead:
    """Return a plan without its actions from its row."""
    known = {key: row[key] for key in PlanHead._fields if key in row}
    known |= {key: tuple(_decoded(row[key])) for key in PLAN_LISTS[:2]}
    known |= {"state": PlanState(row["state"]), "host": row["claimant_host"]}
    return PlanHead(**known)


@reading
def planned_of(rows: Sequence[Row]) -> list[PlannedAction]:
    """Return actions from rows with the columns of both tables of actions and of their plans."""
    return [
        PlannedAction(
            uuid=action.uuid,
            plan=row["plan"],
            plan_state=PlanState(row["plan_state"]),
            plan_created_at=row["plan_created_at"],
            action=action,
        )
        for row, action in zip(rows, _actions(rows), strict=True)
    ]


def _events(kind: Callable[[str, tuple[Outcome, ...]], Result], text: str) -> tuple[Result, ...]:
    pairs = _decoded(text)
    return tuple([kind(source, tuple(map(Outcome, outcomes))) for source, outcomes in pairs])


def storable(text: str | None) -> str | None:
    r"""Return the end of a text, at most :data:`OUTPUT_LIMIT` bytes of UTF-8; None for None.

    NUL and lone surrogates, which databases refuse, are replaced. So any output of a command can be
    written.

    >>> storable("a\0b\ud800")
    'a�b?'
    """
    if text is None:
        return None
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return data[-OUTPUT_LIMIT:].decode("utf-8", "ignore")


def line(text: str | None) -> str | None:
    """Return a text as :func:`storable`, cut after :data:`LINE` characters; None for None."""
    return text and (storable(text) or "")[:LINE]


def report_values(report: Report) -> Changes:
    """Return the bind parameters for writing a report, except those of plan, action and time."""
    again = report.state is ActionState.PENDING
    return {
        "old_state": str(report.old),
        # When an action is retried, the attempt that just ended has FAILED.
        "new_state": str(ActionState.FAILED if again else report.state),
        "new_outcome": report.outcome and str(report.outcome),
        "new_reason": report.state_reason and str(report.state_reason),
        "new_message": storable(report.message),
        "new_output": storable(report.output),
        "given_up": int(report.given_up),
        "new_left_in": report.left_in and line(report.left_in),
    }


@reading
def attempt_of(row: Row) -> Attempt:
    """Return the attempt of a row."""
    known = {key: row[key] for key in Attempt._fields}
    if any(isinstance(value, bytes) for value in known.values()):
        raise ValueError(f"attempt {row['number']} has a message or output that is not a text")
    outcome = Outcome(row["outcome"]) if row["outcome"] else None
    return Attempt(**known | {"state": ActionState(row["state"]), "outcome": outcome})


@reading
def summary(head: Row, counts: Mapping[ActionState, int]) -> PlanSummary:
    """Return the summary of a plan from its row and the counts of its actions by state."""
    return PlanSummary(
        uuid=head["uuid"],
        name=head["name"],
        planner=head["planner"],
        state=PlanState(head["state"]),
        created_at=head["created_at"],
        updated_at=head["updated_at"],
        actions=counts,
        cloud=head["cloud"],
        digest=head["digest"],
        creator=head["creator"],
        start_at=head["start_at"],
        began_at=head["claimed_at"],
        approvals=head["approvals"],
    )


@reading
def counts_of(rows: Iterable[Row]) -> dict[str, dict[ActionState, int]]:
    """Return the number of actions by plan and state; each row has one number with its two keys."""
    counts: dict[str, dict[ActionState, int]] = {}
    for row in rows:
        counts.setdefault(row["plan"], {})[ActionState(row["state"])] = row["number"]
    return counts


def request_row(plan: str, number: int, request: Request, now: datetime) -> dict[str, Any]:
    """Return the row of a request."""
    same = {name: getattr(request, name) for name in ("verb", "who", "why", "action")}
    limits = _encode(dict(request.limits)) if request.limits else None
    return {"plan": plan, "number": number, **same, "created_at": now, "limits": limits}


@reading
def request_of(row: Row) -> Request:
    """Return the request of a row."""
    limits = _decoded(row["limits"] or EMPTY_MAPPING)
    # Whether they are high enough is decided by the run that is to follow them.
    if not (isinstance(limits, dict) and all(type(n) is int for n in limits.values())):
        raise ValueError("limits is not limits")
    return Request(**{key: row[key] for key in row if key != "plan"} | {"limits": limits})


def claimant_of(head: Row) -> Claimant | None:
    """Return the claimant of a plan from the plan's row; None if nobody runs it."""
    return None if head["claim"] is None else last_claimant_of(head)


def last_claimant_of(head: Row) -> Claimant | None:
    """Return who ran a plan last, from the plan's row; None if it was never run."""
    if head["claimant_host"] is None:
        return None
    return Claimant(
        **{key: head[f"claimant_{key}"] for key in ("host", "pid", "user", "jobs")},
        options=RunOptions(*_decode(options)) if (options := head["claimant_options"]) else None,
        **{key: head[key] for key in CLAIM_VALUES},
    )
