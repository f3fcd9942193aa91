# SPDX-License-Identifier: Apache-2.0
"""What ``list`` costs as the record grows: the newest 25 plans, among 1,000 and 1,000,000 actions.

Run it as a program: ``python tests/benchmark/listing.py``. Plans have 20 actions each; both records
are SQLite files, and what is compared are medians in processor time. One plan in a thousand is of
another creator, planner and state; each filter is measured as well.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from applier.storage import rows
from applier.storage.sql_store import SqlStore
from applier.store import PlanFilters
from planner.plan.states import PlanState

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from sample_plans import MADE, new_plan

SHOWN, OF_A_PLAN, ROUNDS = 25, 20, 31
MOST = 1.5
RARE = {"creator": "bob", "planner": "events", "state": "FAILED"}
COMMON = {"creator": "ada", "planner": "weight", "state": "SUCCEEDED"}
FILTERS: tuple[PlanFilters, ...] = (
    {},
    {"creator": "ada"},
    {"planner": "weight"},
    {"state": PlanState.SUCCEEDED},
    {"since": MADE - timedelta(days=1)},
)


def filled(folder: str, number: int) -> SqlStore:
    """Make a record with so many actions."""
    store = SqlStore(f"sqlite:///{folder}/{number}.sqlite")
    plan = new_plan(*map(str, range(OF_A_PLAN)))
    head, members = (
        rows.plan_row(plan) | {"overview": None, "requests": 0},
        list(rows.action_rows(plan)),
    )
    for first in range(0, number // OF_A_PLAN, 1000):
        uuids = [f"plan-{i}" for i in range(first, min(first + 1000, number // OF_A_PLAN))]
        with store._database.write() as transaction:
            heads = [
                head | (RARE if i % 1000 == 30 else COMMON) for i in range(first, first + 1000)
            ]
            named = [{**row, "uuid": uuid} for row, uuid in zip(heads, uuids, strict=False)]
            transaction.insert("actionplan_plan", *named)
            of_plans = [{**member, "plan": uuid} for uuid in uuids for member in members]
            transaction.insert("actionplan_action", *of_plans)
            transaction.insert("actionplan_action_state", *of_plans)
    return store


def main() -> None:
    """Print a line about each list."""
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 1_000_000]
    with tempfile.TemporaryDirectory() as folder:
        stores = [filled(folder, size) for size in sizes]
        for filters in FILTERS:
            compare(stores, sizes, filters)
        for store in stores:
            store.close()


def compare(stores: Sequence[SqlStore], sizes: Sequence[int], filters: PlanFilters) -> None:
    """Print a line about one list."""
    took: list[list[float]] = [[] for _ in sizes]
    for _ in range(ROUNDS):
        for store, found in zip(stores, took, strict=True):
            began = time.process_time()
            listed = store.list_plans(limit=SHOWN, **filters)
            found.append(time.process_time() - began)
            if len(listed) != SHOWN or sum(listed[0].actions.values()) != OF_A_PLAN:
                raise SystemExit("not what is on record")
    small, large = (statistics.median(found) * 1e3 for found in (took[0], took[-1]))
    ratio = large / small
    missed = f", MISSED by {ratio / MOST - 1:.0%}" if ratio > MOST else ""
    what = f"list of {SHOWN} plans by {', '.join(filters) or 'nothing'}"
    times = f"{small:.2f} ms among {sizes[0]} actions, {large:.2f} ms among {sizes[-1]}"
    print(f"{what}: {times}: {ratio:.2f}x (at most {MOST:g}x{missed})")


if __name__ == "__main__":
    main()
