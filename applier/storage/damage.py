# SPDX-License-Identifier: Apache-2.0
"""Finds invalid values and contradictions in rows as they are stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from applier.errors import PlanNotFound
from applier.storage import rows, schema, state_refusals, statements
from applier.storage.database_errors import Damaged
from applier.storage.schema import TABLES
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Transaction
from applier.store.plans import overview_of
from applier.store.worker_jobs import JobTask, StopReason, WorkerJobState
from planner import guards
from planner.errors import InvalidPlan, cut, short
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from planner.safe_text import TOO_DEEP, is_too_deep
from planner.schemas import ranges

#: A function that raises ValueError for an invalid value, with the rest of a sentence as its text.
Check = Callable[[Any], object]


def _text(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError("is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as reason:
        raise ValueError("is not UTF-8") from reason


def _that(fits: Callable[[Any], bool], what: str) -> Check:
    def check(value: Any) -> None:
        if not fits(value):
            raise ValueError(f"is not {what}")

    return check


_integer = _that(lambda value: isinstance(value, int) and value >= 0, "a whole number from 0")
_number = _that(lambda v: isinstance(v, int | float) and math.isfinite(v), "a number")
_process = _that(schema.is_process_id, "the number of a process")
_interval = _that(ranges.is_duration, "a number of seconds between two heartbeats")


def _seconds(value: Any) -> None:
    _number(value)
    if value < 0:
        raise ValueError("is not a number from 0")


def _moment(value: Any) -> None:
    if not isinstance(value, datetime):
        try:
            datetime.fromisoformat(value)
        except (TypeError, ValueError) as reason:
            raise ValueError("is not a time") from reason


def _word_of(words: Iterable[str]) -> Check:
    known = [str(word) for word in words]

    def check(value: Any) -> None:
        if value not in known:
            raise ValueError(f"is none of {', '.join(known)}")

    return check


def _json(fits: Callable[[Any], bool], what: str) -> Check:
    def check(value: Any) -> None:
        try:
            found = json.loads(value)
        except (TypeError, ValueError, RecursionError) as reason:
            raise ValueError(f"is not JSON: {reason}") from reason
        if is_too_deep(found):
            raise ValueError(TOO_DEEP)
        _that(fits, what)(found)

    return check


def _events(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(v, list) and len(v) == 2 and isinstance(v[0], str) and _outcomes(v[1])
        for v in value
    )


def _outcomes(value: Any) -> bool:
    return schema.is_texts(value) and set(value) <= {str(outcome) for outcome in Outcome}


def _is_guards(value: Any) -> bool:
    try:
        rows.reading(guards.of)(value)
    except UnreadableValue:
        return False
    return isinstance(value, dict)


def _is_rules(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(rule, dict)
        and isinstance(rule.get("keep"), bool)
        and isinstance(rule.get("stop_after"), int | None)
        and isinstance(rule.get("pause_after"), int | None)
        and isinstance(rule.get("widens"), list)
        for rule in value.values()
    )


_LIST = _json(lambda value: isinstance(value, list), "a list")
_MAPPING = _json(lambda value: isinstance(value, dict), "a mapping")
_TOLERANCES = _json(schema.is_tolerances, "a list of tolerances")
_TEXTS, _LIMITS = _json(schema.is_texts, "a list of texts"), _json(schema.is_limits, "limits")
_GROUPS = _json(
    lambda v: isinstance(v, list) and all(map(schema.is_texts, v)), "a list of lists of texts"
)
_EVENTS = _json(_events, "a list of actions with outcomes")
_POLICIES = ("skip_descendants", "pause", "continue", "only_after_failure")
#: By table and column: the check of a value. All other columns are checked by their types.
_COLUMNS: Mapping[str, Mapping[str, Check]] = {
    "actionplan_plan": {
        "state": _word_of(PlanState),
        "deleted_from": _word_of(PlanState),
        "on_failure": _word_of(_POLICIES),
        "efficacy_indicators": _LIST,
        "global_efficacy": _LIST,
        "tolerances": _TOLERANCES,
        "places": _json(_is_rules, "a mapping of rules"),
        "overview": overview_of,
        "warnings": _TEXTS,
        "limits": _LIMITS,
        "guards": _json(_is_guards, "a mapping of guards"),
        "claimant_pid": _process,
        "heartbeat_interval_s": _interval,
    },
    "actionplan_action": {
        "input_parameters": _MAPPING,
        **dict.fromkeys(rows.ACTION_LINKS, _TEXTS),
        "needs_any": _GROUPS,
        "triggers": _EVENTS,
        "blocked_by": _EVENTS,
        "places": _GROUPS,
        "estimate_s": _seconds,
        "timeout_s": _seconds,
    },
    "actionplan_action_state": {
        "state": _word_of(ActionState),
        "outcome": _word_of(Outcome),
        "state_reason": _word_of(StateReason),
    },
    "actionplan_answer": {"answer": _MAPPING},
    "actionplan_attempt": {"state": _word_of(ActionState), "outcome": _word_of(Outcome)},
    "actionplan_duration": {"seconds": _seconds},
    "actionplan_request": {"limits": _LIMITS},
    "actionplan_event": {"data": _MAPPING},
    "actionplan_subscription": {"held_back": _MAPPING, "away": _MAPPING},
    "actionplan_dead_event": {"event": _MAPPING},
    "actionplan_worker_job": {
        "state": _word_of(WorkerJobState),
        "task": _word_of(JobTask),
        "stop": _word_of(StopReason),
        "payload": _MAPPING,
        "result": _MAPPING,
    },
    "actionplan_service": {"pid": _process},
    "actionplan_worker": {"pid": _process, "queues": _TEXTS, "types": _TEXTS},
}
#: The checks by the kinds of columns.
_KINDS: Mapping[str, Check] = {
    "moment": _moment,
    "double": _number,
    "integer": _integer,
    "text": _text,
}
#: What every claim says of its process.
_OF_A_CLAIM = (
    *("claimant_host", "claimant_pid", "claimant_user"),
    *("heartbeat_interval_s", "requests_before"),
)
#: States of plans that have ended with all of their actions.
_ENDED = (PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED)


def of_row(table: str, row: Row) -> Iterator[str]:
    """Yield a message for each value of a row that ActionPlan cannot have written.

    Columns that the row lacks are not checked.
    """
    checks = _COLUMNS.get(table, {})
    for name, value in row.items():
        column = TABLES[table][name]
        check = checks.get(name) or _KINDS[column.kind]
        if value is None and column.nullable:
            continue
        try:
            check(value)
        except ValueError as wrong:
            # Parameters of actions may contain secrets.
            seen = "" if name in rows.ACTION_JSON else f" {cut(repr(value), 60)}"
            yield f"{name}{seen} {wrong}"


def of_plan(head: Row, planned: Sequence[Row], states: Sequence[Row]) -> list[str]:
    """List the problems of a plan, from its row, the rows of its actions, and their states.

    Links, the digest, and states taken together are checked only if all single values are valid.
    """
    found = list(of_row("actionplan_plan", head))
    labels = {row["uuid"]: f"action {row['name'] or short(str(row['uuid']))}" for row in planned}
    for table, members in (("actionplan_action", planned), ("actionplan_action_state", states)):
        for row in members:
            label = labels.get(row["uuid"], f"action {row['uuid']}")
            found += [f"{label}: {wrong}" for wrong in of_row(table, row)]
    stated = {row["uuid"] for row in states}
    found += [f"{label}: it has no state" for uuid, label in labels.items() if uuid not in stated]
    found += [f"action {uuid}: it has only a state" for uuid in stated if uuid not in labels]
    if len({row["position"] for row in planned}) != len(planned):
        found.append("two actions have one position")
    if not found:
        found += [*_links(head, planned, states), *_together(head, states)]
    return found


def _links(head: Row, planned: Sequence[Row], states: Sequence[Row]) -> Sequence[str]:
    # The module takes long to import, and most uses of the record need no check.
    from planner.plan import graph

    stated = {row["uuid"]: row for row in states}
    members = [{**row, **stated[row["uuid"]]} for row in planned]
    try:
        rows.require_links(plan := rows.part_of(head, members))
        graph.validate(plan.actions)
        rows.require_digest(plan, head["digest"])
    except InvalidPlan as wrong:
        return wrong.problems
    except (UnreadableValue, ValueError) as wrong:
        return [str(wrong)]
    return ()


def _together(head: Row, states: Sequence[Row]) -> Iterator[str]:
    """Yield the contradictions between the state of a plan, its claim and its actions' states."""
    state = PlanState(head["state"])
    claimed = head["claim"] is not None
    if claimed is state_refusals.ends_claim(state):
        yield f"it is {state}, and {'' if claimed else 'not '}claimed by a process"
    missing = [name for name in _OF_A_CLAIM if head[name] is None]
    if claimed and missing:
        yield f"it is claimed by a process, and {' and '.join(missing)} is missing"
    guarded = guards.of(json.loads(head["guards"])) if head["guards"] else guards.NO_GUARDS
    if head["approvals"] != guarded.approvals:
        yield "the number of approvals differs from that of its guards"
    if not head["doubtful"] and any(row["state"] == ActionState.UNKNOWN for row in states):
        yield "an action is in doubt, which the plan does not say"
    for row in states:
        if state in _ENDED and row["state"] in (ActionState.PENDING, ActionState.ONGOING):
            yield f"it is {state}, and its action {short(row['uuid'])} is {row['state']}"


def problems(read: Callable[[], AbstractContextManager[Transaction]], uuid: str) -> list[str]:
    """Return the problems of the rows of a plan and its actions; an empty list if they are sound.

    Raises PlanNotFound.
    """
    where = {"plan_uuid": uuid}
    try:
        with read() as transaction:
            heads = transaction.read_unconverted(statements.PLAN, where)
            planned = transaction.read_unconverted(statements.ACTIONS, where)
            states = transaction.read_unconverted(statements.STATES, where)
    except Damaged as error:
        return [f"a part of it cannot be read: {error.__cause__ or error}"]
    if not heads:
        raise PlanNotFound(uuid)
    return of_plan(heads[0], planned, states)
