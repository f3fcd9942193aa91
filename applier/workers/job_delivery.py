# SPDX-License-Identifier: Apache-2.0
"""The interface for sending messages to workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from applier.store.worker_jobs import AttemptKey


class JobDelivery(Protocol):
    """Sends messages to workers about jobs in the record; a message may be lost, or arrive twice.

    No method raises an error of the broker. Only :meth:`close` waits for it, for a limited time.
    """

    def send(self, queue: str, key: AttemptKey) -> None:
        """Send a message about a job to one of the workers that serve a queue."""

    def look(self, keys: Sequence[AttemptKey]) -> None:
        """Make the workers that hold these jobs read from the record whether they are to stop."""

    def close(self) -> None:
        """Close the connection to the broker, after what was sent."""
