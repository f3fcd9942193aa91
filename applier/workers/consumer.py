# SPDX-License-Identifier: Apache-2.0
"""The part of a Celery worker that reads messages, which an outage of a broker does not end."""

from __future__ import annotations

import logging
from typing import Any

from celery.worker.consumer import Consumer

LOG = logging.getLogger(__name__)


class LastingConsumer(Consumer):  # type: ignore[misc]
    """Reconnects also after an AttributeError, which kombu may raise for a broken connection.

    Seen with kombu 5.7 and Redis: a connection is closed a second time, which raises "'NoneType'
    object has no attribute 'hostname'", and Celery's own consumer ends the worker then. Similar
    errors are reported for both brokers (https://github.com/celery/celery/issues/4652, 9250).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.connection_errors: tuple[type[BaseException], ...]
        self.connection_errors = (*self.conninfo.connection_errors, AttributeError)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close the broken connection; log an error of that, because a new one is made anyway."""
        try:
            super().on_connection_error_after_connected(exc)
        except self.connection_errors as reason:
            LOG.debug("The broken connection to the broker cannot be closed: %r", reason)
