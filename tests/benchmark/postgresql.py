# SPDX-License-Identifier: Apache-2.0
"""What a record in PostgreSQL costs for each action of a run.

Run it as a program: ``python tests/benchmark/postgresql.py``. ``ACTIONPLAN_TEST_POSTGRESQL`` is the
URL of a database whose user may create others. A plan of 1,000 actions that do nothing runs with 4
workers. Commits do not wait for the disk (``synchronous_commit = off``): that time is the disk's.
The floor sends the statements of the same commits with psycopg, without an engine. Runs alternate,
and what is printed are medians of the time on the wall and of this process's processor time.

The limit is half of what an action took when each of its statements was sent by itself: 705 us.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
from engine import CLAIMANT, Took, limit, medians, now, run
from plans import layers

from applier.contracts import Report
from applier.storage import schema_version, statements
from applier.storage.connection import parse
from applier.storage.sql_store import SqlStore
from applier.storage.state_changes import writes_of
from applier.storage.statements import Write
from planner.plan.model import ActionPlan

# The databases of tests are made by a module of the tests.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scratch_database import POSTGRESQL, connected, scratch_database

MOST_US = 352


class Noted(SqlStore):
    """Notes what is committed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.batches: list[list[Report]] = []

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], **named: Any) -> None:
        """Note the reports, then commit them."""
        self.batches.append(list(reports))
        super().commit(uuid, claim, reports, **named)


def claimed(store: SqlStore, plan: ActionPlan) -> tuple[ActionPlan, str]:
    """Save a plan under another uuid, and claim it."""
    plan = replace(plan, uuid=str(uuid.uuid4()))
    store.save_plan(plan)
    claim = store.claim_plan(plan.uuid, CLAIMANT, now=now())
    return store.load_plan(plan.uuid), claim


def record(url: str, plan: ActionPlan) -> Took:
    """Run a plan with a record in PostgreSQL."""
    with closing(SqlStore(url)) as store:
        plan, claim = claimed(store, plan)
        return run(plan, store, claim)


def committed(url: str, plan: ActionPlan) -> list[list[Report]]:
    """Return the reports of each commit of a run."""
    with closing(Noted(url)) as store:
        plan, claim = claimed(store, plan)
        run(plan, store, claim)
        return store.batches


def floor(url: str, plan: ActionPlan, batches: Sequence[Sequence[Report]]) -> Took:
    """Send the statements of these commits."""
    with closing(SqlStore(url)) as store:
        plan, claim = claimed(store, plan)
        commits = [_sent(store, plan.uuid, claim, reports) for reports in batches]
    address = parse(url).with_password()
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        began, used = time.perf_counter(), time.process_time()
        for sent in commits:
            connection.execute("BEGIN")
            with connection.pipeline():
                for text, parameters in sent:
                    connection.execute(text, parameters)
            connection.commit()
        return Took(time.perf_counter() - began, time.process_time() - used)


def _sent(store: SqlStore, plan: str, claim: str, reports: Sequence[Report]) -> list[Any]:
    """Return the text and the parameters of each statement of a commit."""
    held = {"plan_uuid": plan, "held": claim, "now": now(), "write": str(uuid.uuid4())}
    held["publishes"] = 0
    writes = [Write(statements.HOLD_CLAIM, held, 1), *writes_of(plan, reports, now(), 1)]
    compiled = store._database._transactions._compiled
    return [
        (compiled(write.statement).text, compiled(write.statement).parameters(write.parameters))
        for write in writes
    ]


def main() -> None:
    """Print a line."""
    plan = layers(1000)
    with scratch_database(os.environ.get("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL)) as url:
        with connected(url) as database:
            database.execute(f"ALTER DATABASE {parse(url).database} SET synchronous_commit = off")
        schema_version.upgrade(url)
        batches = committed(url, plan)
        least, ours = medians(partial(floor, url, plan, batches), partial(record, url, plan))
    each = [took / len(plan.actions) * 1e6 for took in (ours.wall, ours.processor, least.wall)]
    print(
        f"{len(plan.actions)} actions, {len(batches)} commits to PostgreSQL: {each[0]:.0f} us an "
        f"action {limit(each[0], MOST_US, ' us')}, {each[1]:.0f} us of a processor; the statements "
        f"alone take {each[2]:.0f} us"
    )


if __name__ == "__main__":
    main()
