# SPDX-License-Identifier: Apache-2.0
"""Lists plans of which some cannot be read, and says what is wrong with a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from applier.errors import DamagedRecord, PlanNotFound
from applier.storage import damage, list_statements, rows, statements
from applier.storage.compiled import UnreadableValue
from applier.storage.database import Database
from applier.storage.refusals import Damaged
from applier.storage.transactions import Transaction
from applier.store import TIMES, PlanSummary
from planner.errors import short
from planner.states import PlanState


def listed(database: Database, wanted: Mapping[str, Any], limit: int | None) -> list[PlanSummary]:
    """List plans as the store does, but read one by one, so that none hides the others."""
    with database.read() as transaction:
        numbers = transaction.read_unconverted(statements.NUMBERS)
    found: list[PlanSummary] = []
    for row in sorted(numbers, key=lambda row: row["number"], reverse=True):
        if len(found) == limit:
            break
        summary = _summary(database, row["uuid"])
        if passes(summary, wanted):
            found.append(summary)
    return found


def passes(plan: PlanSummary, wanted: Mapping[str, Any]) -> bool:
    """Return whether a plan, of which not all may be known, passes all filters of a list."""
    if plan.state is PlanState.DELETED and "state" not in wanted:
        return False
    since, until = (wanted.get(name) for name in TIMES)
    made = plan.created_at
    if (since and not (made and made >= since)) or (until and not (made and made < until)):
        return False
    texts = (name for name in wanted if name not in TIMES)
    return all(getattr(plan, name) == wanted[name] for name in texts)


def _summary(database: Database, uuid: str) -> PlanSummary:
    try:
        with database.read() as transaction:
            (head,) = transaction.read(statements.PLAN, {"plan_uuid": uuid})
            counts = transaction.read(list_statements.COUNTS, {"plan_uuid": uuid})
        return rows.summary(head, rows.counts_of(counts).get(uuid, {}))
    except (UnreadableValue, Damaged):
        return _damaged(database, uuid)


def _damaged(database: Database, uuid: str) -> PlanSummary:
    """Return the summary of a damaged plan, with what can be read of its row."""
    wrong, head = problems(database.read, uuid), dict[str, Any]()
    with suppress(ValueError, Damaged), database.read() as transaction:
        (found,) = transaction.read_unconverted(statements.PLAN, {"plan_uuid": uuid})
        head.update(found)
    state, name, planner = (head.get(key) for key in ("state", "name", "planner"))
    return PlanSummary(
        uuid=uuid,
        name=name if isinstance(name, str) else None,
        planner=planner if isinstance(planner, str) else "",
        state=PlanState(state) if state in set(map(str, PlanState)) else None,
        created_at=None,
        updated_at=None,
        actions={},
        damage=wrong[0] if wrong else "its rows cannot be read",
    )


def problems(read: Callable[[], AbstractContextManager[Transaction]], uuid: str) -> list[str]:
    """List what is wrong with a plan and its actions, with all that can be read of them."""
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
    """Return the error that names everything that is wrong with a plan."""
    found = database.tried(lambda: problems(database.read, uuid))
    return DamagedRecord(f"plan {short(uuid)}", found) if found else otherwise
