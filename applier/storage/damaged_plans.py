# SPDX-License-Identifier: Apache-2.0
"""Damaged plans: lists them with the others, finds their problems, and deletes one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from itertools import islice
from typing import Any

from applier.contracts import HistoryEntry
from applier.errors import DamagedRecord, PlanConflict, PlanNotFound
from applier.storage import damage, list_statements, rows, statements
from applier.storage.database import Database, plan_row
from applier.storage.database_errors import Damaged
from applier.storage.state_changes import note
from applier.storage.statements import UnreadableValue
from applier.storage.transactions import Transaction
from applier.store import TIMES, PlanSummary
from planner.errors import short
from planner.plan.states import ActionState, PlanState


def listed(
    database: Database, wanted: Mapping[str, Any], limit: int | None, after: str | None
) -> list[PlanSummary]:
    """List plans like ``list_plans`` of the store, but read each by itself.

    So damaged plans are listed as well.
    """
    with database.read() as transaction:
        uuids = {r["number"]: r["uuid"] for r in transaction.read_unconverted(statements.NUMBERS)}
        by_time = not wanted.keys().isdisjoint(TIMES)
        numbers = _by_time(transaction) if by_time else sorted(uuids, reverse=True)
    # An index may be damaged, too, and lack a plan.
    latest = [uuids[number] for number in numbers if number in uuids]
    if after is not None:
        latest = latest[latest.index(after) + 1 :] if after in latest else []
    found = (_summary(database, uuid) for uuid in latest)
    return list(islice((plan for plan in found if passes(plan, wanted)), limit))


def _by_time(transaction: Transaction) -> list[int]:
    """Return the numbers of the plans whose time of creation can be read, the latest first."""
    made: list[tuple[datetime, int]] = []
    for row in transaction.read_unconverted(statements.MADE):
        with suppress(UnreadableValue):
            at = transaction.typed("actionplan_plan", statements.MADE, row)["created_at"]
            made += [(at, row["number"])] if at else []
    return [number for _, number in sorted(made, reverse=True)]


def passes(plan: PlanSummary, wanted: Mapping[str, Any]) -> bool:
    """Return whether a plan passes all filters of a list; a missing field passes no filter.

    Removed plans pass only with a filter on their state.
    """
    if plan.state is PlanState.DELETED and "state" not in wanted:
        return False
    since, until = (wanted.get(name) for name in TIMES)
    made = plan.created_at
    if (since and not (made and made >= since)) or (until and not (made and made < until)):
        return False
    if "search" in wanted and wanted["search"].lower() not in (plan.name or "").lower():
        return False
    if "needs_you" in wanted and not (plan.damage or _may_need(plan, wanted["needs_you"])):
        return False
    texts = (name for name in wanted if name not in (*TIMES, "search", "needs_you"))
    return all(getattr(plan, name) == wanted[name] for name in texts)


def _may_need(plan: PlanSummary, demanded: int) -> bool:
    """Return whether a plan may wait for a person, if a site demands up to so many approvals."""
    if plan.state in (PlanState.RECOMMENDED, PlanState.FAILED, PlanState.CANCELLED):
        return bool(plan.approvals + demanded) or ActionState.UNKNOWN in plan.actions
    return plan.state is PlanState.PAUSED or (
        plan.state is PlanState.ONGOING and ActionState.UNKNOWN in plan.actions
    )


def _summary(database: Database, uuid: str) -> PlanSummary:
    try:
        with database.read() as transaction:
            head = plan_row(transaction, uuid)
            counts = transaction.read(list_statements.COUNTS, {"plan_uuid": uuid})
        return rows.summary(head, rows.counts_of(counts).get(uuid, {}))
    except (UnreadableValue, Damaged):
        return _damaged(database, uuid)


def _damaged(database: Database, uuid: str) -> PlanSummary:
    """Return the summary of a damaged plan, with name, planner and state if these can be read."""
    from applier.storage.damaged_rows import escaped

    wrong, head = problems(database.read, uuid), dict[str, Any]()
    with suppress(ValueError, Damaged), database.read() as transaction:
        (found,) = transaction.read_unconverted(statements.PLAN, {"plan_uuid": uuid})
        head.update(found)
    state, name, planner = (head.get(key) for key in ("state", "name", "planner"))
    return PlanSummary(
        uuid=uuid,
        name=escaped(name) if isinstance(name, str) else None,
        planner=escaped(planner) if isinstance(planner, str) else "",
        state=PlanState(state) if state in set(map(str, PlanState)) else None,
        created_at=None,
        updated_at=None,
        actions={},
        damage=wrong[0] if wrong else "its rows cannot be read",
    )


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
    return damage.of_plan(heads[0], planned, states)


def explained(database: Database, uuid: str, otherwise: DamagedRecord) -> DamagedRecord:
    """Return a DamagedRecord with all problems of a plan; ``otherwise`` if none is found now."""
    found = database.tried(lambda: problems(database.read, uuid))
    return DamagedRecord(f"plan {short(uuid)}", found) if found else otherwise


def remove(database: Database, uuid: str, history: HistoryEntry | None) -> None:
    """Delete all rows of a damaged plan except events, and write the history entry of that.

    Raises PlanNotFound, PlanConflict for a sound plan.
    """
    if not problems(database.read, uuid):
        raise PlanConflict(uuid, "sound", f"plan {short(uuid)} is not damaged")
    with database.write() as transaction:
        for statement in statements.ALL_OF_A_PLAN:
            transaction.write(statement, {"plan_uuid": uuid})
        if history is not None:
            note(transaction, uuid, history, at=history.at)
