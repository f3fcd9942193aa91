# SPDX-License-Identifier: Apache-2.0
"""What operators do with the plans of a record: one function for each operation, for every edge.

A function raises if it refuses, and returns when the record is changed. What was done is told in
sentences, so that every edge tells the same.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from applier.contracts import HistoryEntry

Tell = Callable[[str], None]


class Operator(NamedTuple):
    """Who asks for an operation, and who is told about it.

    ``name`` is written into the record. ``say`` is called with each sentence about what was done,
    ``note`` with each one about what was noticed meanwhile. ``project``, ``address`` and
    ``request_id`` are known of requests over HTTP.
    """

    name: str
    say: Tell
    note: Tell
    project: str | None = None
    address: str | None = None
    request_id: str | None = None

    def entry(self, verb: str, why: str | None = None, action: str | None = None) -> HistoryEntry:
        """Return the entry for the history about a change that this operator makes now."""
        from applier.contracts import HistoryEntry

        return HistoryEntry(
            verb=verb,
            who=self.name,
            at=datetime.now(UTC),
            why=why,
            action=action,
            project=self.project,
            address=self.address,
            request_id=self.request_id,
        )
