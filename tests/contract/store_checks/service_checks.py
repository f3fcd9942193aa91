# SPDX-License-Identifier: Apache-2.0
"""Checks the list of services that report themselves to a store."""

# Tests are assertions.

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sample_plans import MADE

from applier.contracts import Claimant
from applier.storage.sql_store import SqlStore
from applier.store import Service
from store_checks.running_plans import (
    LATER,
    NOW,
)


class ServiceChecks:
    """Reports of services."""

    def test_services_are_kept_as_they_last_reported(self, store: SqlStore) -> None:
        """The latest heartbeat comes first; a service that was removed is not listed."""
        assert store.services() == []
        who = Claimant(host="db-7", pid=1, user="wanda")
        known: dict[str, Any] = {"host": who.host, "pid": who.pid, "user": who.user}
        known["started_at"] = MADE
        early = Service(uuid="a", heartbeat_at=NOW, cloud="west", **known)
        late = Service(uuid="b", heartbeat_at=LATER, plans=3, cloud="east", **known)
        for service in (late, early):
            store.report_service(service)
        assert store.services() == [late, early]
        early = early._replace(heartbeat_at=LATER + timedelta(seconds=1), plans=2)
        store.report_service(early)
        assert store.services() == [early, late]
        store.remove_service("a")
        store.remove_service("a")
        assert store.services() == [late]
