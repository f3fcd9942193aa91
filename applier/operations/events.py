# SPDX-License-Identifier: Apache-2.0
"""Events for readers, which poll for events; to receivers, events are delivered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

#: The name of the subscription that all readers share.
READERS = "readers"


def read_on(store: SqlStore, *, now: datetime, keep_s: float) -> None:
    """Subscribe the readers, so that events are recorded from now on and for ``keep_s`` seconds."""
    store.subscribe(READERS, now=now, until=now + timedelta(seconds=keep_s))


def forget(store: SqlStore, *, now: datetime, keep_s: float) -> None:
    """Delete events that every receiver has got and that are older than ``keep_s`` seconds."""
    store.delete_events(before=now - timedelta(seconds=keep_s), now=now)
