# SPDX-License-Identifier: Apache-2.0
"""The part of a Celery worker that reads messages, which an outage of a broker does not end."""

from __future__ import annotations

import logging
from typing import Any

from celery.worker.consumer import Consumer

LOG = logging.getLogger(__name__)


class LastingConsumer(Consumer):  # type: ignore[misc]
    """Connects again whatever the libraries raise when a connection breaks.

    Seen with kombu 5.7 and Redis: it closes a connection that is closed, and that ends a worker
    with "'NoneType' object has no attribute 'hostname'". Other such errors are reported for both
    brokers (https://github.com/celery/celery/issues/4652, 9250).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.connection_errors: tuple[type[BaseException], ...]
        self.connection_errors = (*self.conninfo.connection_errors, AttributeError)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close the broken connection; a next one is made in any case."""
        try:
            super().on_connection_error_after_connected(exc)
        except self.connection_errors as reason:
            LOG.debug("The broken connection to the broker cannot be closed: %r", reason)
