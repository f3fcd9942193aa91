# SPDX-License-Identifier: Apache-2.0
"""The interface of what brings messages to workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from applier.store.worker_jobs import AttemptKey


class JobDelivery(Protocol):
    """Tells workers that there may be something to do; a message may be lost, or come twice.

    No method waits for the broker or raises an error because of it.
    """

    def send(self, queue: str, key: AttemptKey) -> None:
        """Tell a worker of a queue about a job."""

    def look(self, keys: Sequence[AttemptKey]) -> None:
        """Tell the workers that hold these jobs to look whether they are to stop."""

    def close(self) -> None:
        """Close the connection to the broker, after what was sent."""
