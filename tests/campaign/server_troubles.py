# SPDX-License-Identifier: Apache-2.0
"""What a database server does to appliers: it cuts connections, breaks deadlocks, and crashes."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from random import Random

from scratch_database import run

from applier.storage.connection import Connector, parse

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


def cut(url: str) -> None:
    """End all other connections to the database, whatever they do."""
    kind = parse(url).kind
    for number in run(url, OTHERS[kind]):
        # It may have ended by itself.
        with suppress(Connector(parse(url)).driver.Error):
            run(url, CUT[kind].format(number))


def deadlock(url: str, plan: str, chance: Random) -> None:
    """Lock rows of a plan's actions in any order, as a commit of an applier does in its own."""
    rows = "SELECT uuid FROM actionplan_action_state WHERE plan = %s"
    lock = "SELECT state FROM actionplan_action_state WHERE plan = %s AND uuid = %s FOR UPDATE"
    connector = Connector(parse(url))
    with closing(connector.open()) as database, closing(database.cursor()) as cursor:
        cursor.execute(rows, (plan,))
        uuids = [uuid for (uuid,) in cursor.fetchall()]
        cursor.execute("BEGIN")
        # The server ends one of the two transactions, perhaps this one.
        with suppress(connector.driver.Error):
            for uuid in chance.sample(uuids, min(LOCKED, len(uuids))):
                cursor.execute(lock, (plan, uuid))
                time.sleep(BETWEEN_S)
        with suppress(connector.driver.Error):
            cursor.execute("ROLLBACK")
