# SPDX-License-Identifier: Apache-2.0
"""The operations of operators on plans, as functions that the command line and the HTTP API share.

A function returns when its change, or its request to the process that runs the plan, is committed.
It raises an error if it refuses. It passes sentences about what it did to the operator, so that all
callers show the same texts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from applier.contracts import HistoryEntry, Once

Tell = Callable[[str], None]


class Operator(NamedTuple):
    """The person who requests an operation, and the functions that receive its messages.

    ``name`` is written into the history. ``say`` is called with each sentence about what was done,
    ``note`` with each one about a delay or a problem meanwhile. ``project``, ``address`` and
    ``request_id`` are set for requests over HTTP; with ``once``, the change happens once, and with
    ``after``, only if the history of the plan has no later entry than that number.
    """

    name: str
    say: Tell
    note: Tell
    project: str | None = None
    address: str | None = None
    request_id: str | None = None
    once: Once | None = None
    after: int | None = None

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
            once=self.once,
            after=self.after,
        )
