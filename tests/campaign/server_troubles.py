# SPDX-License-Identifier: Apache-2.0
"""What a database server does to appliers: it cuts connections, breaks deadlocks, and crashes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import sqlalchemy as sa

from applier.storage.connection import make_engine, parse

#: All connections to the database of this one, without it, by the kind of server.
OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist"
    " WHERE db = database() AND id <> connection_id()",
}
CUT = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}
#: How many rows a transaction locks that provokes a deadlock, and how long it waits between two.
LOCKED, BETWEEN_S = 4, 0.01


@contextmanager
def connected(url: str) -> Iterator[tuple[sa.Connection, str]]:
    """Connect to the server of a record; yield the connection and the kind of server."""
    known = parse(url)
    engine = make_engine(known)
    try:
        with engine.connect() as database:
            yield database, known.get_backend_name()
    finally:
        engine.dispose()


def cut(url: str) -> None:
    """End all other connections to the database, whatever they do."""
    with connected(url) as (database, kind):
        for number in database.execute(sa.text(OTHERS[kind])).scalars().all():
            # It may have ended by itself.
            with suppress(sa.exc.DBAPIError):
                database.execute(sa.text(CUT[kind].format(number)))


def deadlock(url: str, plan: str, chance: Random) -> None:
    """Lock rows of a plan's actions in any order, as a commit of an applier does in its own."""
    rows = sa.text("SELECT uuid FROM actionplan_action_state WHERE plan = :plan")
    lock = sa.text(
        "SELECT state FROM actionplan_action_state WHERE plan = :plan AND uuid = :uuid FOR UPDATE"
    )
    with connected(url) as (database, _):
        uuids = database.execute(rows, {"plan": plan}).scalars().all()
        database.execute(sa.text("BEGIN"))
        # The server ends one of the two transactions, perhaps this one.
        with suppress(sa.exc.DBAPIError):
            for uuid in chance.sample(uuids, min(LOCKED, len(uuids))):
                database.execute(lock, {"plan": plan, "uuid": uuid})
                time.sleep(BETWEEN_S)
        with suppress(sa.exc.DBAPIError):
            database.execute(sa.text("ROLLBACK"))
