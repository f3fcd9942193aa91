# SPDX-License-Identifier: Apache-2.0
"""The interface of what brings messages to workers."""

from __future__ import annotations

from typing import Protocol

from applier.store.worker_jobs import AttemptKey


class JobDelivery(Protocol):
    """Tells workers that there may be something to do; a message may be lost, or come twice.

    No method waits for the broker or raises an error because of it.
    """

    def send(self, queue: str, key: AttemptKey) -> None:
        """Tell a worker of a queue about a job."""

    def look(self, key: AttemptKey) -> None:
        """Tell the worker that holds a job to look whether it is to stop."""

    def close(self) -> None:
        """Close the connection to the broker, after what was sent."""
