# SPDX-License-Identifier: Apache-2.0
"""Lists damaged plans with the others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from applier.storage import damage, list_statements, rows, statements
from applier.storage.damaged_rows import escaped
from applier.storage.database import Database, plan_row
from applier.storage.database_errors import Damaged
from applier.storage.statements import UnreadableValue
from applier.store import TIMES, PlanSummary
from planner.plan.states import PlanState

T = TypeVar("T")


def listed(
    database: Database,
    wanted: Mapping[str, Any],
    asked: Mapping[str, Any],
    limit: int | None,
    after: str | None,
) -> list[PlanSummary]:
    """List plans like ``list_plans`` of the store, but read each by itself.

    So damaged plans are listed as well. ``asked`` are the parameters for the filters ``wanted``.
    """
    with database.read() as transaction:
        uuids = {r["number"]: r["uuid"] for r in transaction.read_unconverted(statements.NUMBERS)}
        numbers = sorted(uuids)
        if not wanted.keys().isdisjoint(TIMES):
            numbers = [row["number"] for row in transaction.read_unconverted(statements.MADE)]
    # An index may be damaged, too, and lack a plan.
    latest = [uuids[number] for number in reversed(numbers) if number in uuids]
    if after is not None:
        latest = latest[latest.index(after) + 1 :] if after in latest else []
    found = (_summary(database, uuid, tuple(wanted), asked) for uuid in latest)
    return list(islice(filter(None, found), limit))


def _summary(
    database: Database, uuid: str, names: tuple[str, ...], asked: Mapping[str, Any]
) -> PlanSummary | None:
    """Return the summary of a plan; None if it does not pass the filters of these names."""
    where = {**asked, "plan_uuid": uuid}
    try:
        with database.read() as transaction:
            head = plan_row(transaction, uuid)
            counts = transaction.read(list_statements.COUNTS, where)
            plan = rows.summary(head, rows.counts_of(counts).get(uuid, {}))
            return plan if transaction.read(list_statements.passing(names), where) else None
    except (UnreadableValue, Damaged):
        plan = _damaged(database, uuid)
    # What is not known of a plan passes no filter; but somebody has to look after it.
    passes = {"needs_you"}.issuperset(names)
    with suppress(Damaged), database.read() as transaction:
        passes = bool(transaction.read_unconverted(list_statements.passing(names), where))
    return plan if passes and set(TIMES).isdisjoint(names) else None


def _damaged(database: Database, uuid: str) -> PlanSummary:
    """Return the summary of a damaged plan, with name, planner and state if these can be read."""
    wrong, head = damage.problems(database.read, uuid), dict[str, Any]()
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
