# SPDX-License-Identifier: Apache-2.0
"""What ``list`` costs as the record grows: the newest 25 plans, among 1,000 and 1,000,000 actions.

Run it as a program: ``python tests/benchmark/listing.py``. Plans have 20 actions each; both records
are SQLite files, and what is compared are medians in processor time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

import sqlalchemy as sa

from applier.storage import rows
from applier.storage.sql import SqlStore
from applier.storage.tables import action_states, actions, plans
from applier.testing.sample_plans import new_plan

SHOWN, OF_A_PLAN, ROUNDS = 25, 20, 31
MOST = 1.5


def filled(folder: str, number: int) -> SqlStore:
    """Make a record with so many actions."""
    store = SqlStore(f"sqlite:///{folder}/{number}.sqlite", synchronous="NORMAL")
    plan = new_plan(*map(str, range(OF_A_PLAN)))
    head, members = rows.plan_row(plan), list(rows.action_rows(plan))
    for first in range(0, number // OF_A_PLAN, 1000):
        uuids = [f"plan-{i}" for i in range(first, min(first + 1000, number // OF_A_PLAN))]
        with store._database.engine.begin() as database:
            database.execute(sa.insert(plans), [{**head, "uuid": uuid} for uuid in uuids])
            of_plans = [{**member, "plan": uuid} for uuid in uuids for member in members]
            for table in (actions, action_states):
                columns = table.c.keys()
                found = [{key: row[key] for key in columns} for row in of_plans]
                database.execute(sa.insert(table), found)
    return store


def main() -> None:
    """Print a line."""
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 1_000_000]
    with tempfile.TemporaryDirectory() as folder:
        stores = [filled(folder, size) for size in sizes]
        took: list[list[float]] = [[] for _ in sizes]
        for _ in range(ROUNDS):
            for store, found in zip(stores, took, strict=True):
                began = time.process_time()
                listed = store.list_plans(limit=SHOWN)
                found.append(time.process_time() - began)
                if len(listed) != SHOWN or sum(listed[0].actions.values()) != OF_A_PLAN:
                    raise SystemExit("not what is on record")
        for store in stores:
            store.close()
    small, large = (statistics.median(found) * 1e3 for found in (took[0], took[-1]))
    missed = f", MISSED by {large / small / MOST - 1:.0%}" if large / small > MOST else ""
    print(
        f"list of {SHOWN} plans: {small:.2f} ms among {sizes[0]} actions, {large:.2f} ms among "
        f"{sizes[-1]}: {large / small:.2f}x (at most {MOST:g}x{missed})"
    )


if __name__ == "__main__":
    main()
