# SPDX-License-Identifier: Apache-2.0
"""What Celery logs while a broker is away is one line each."""

from __future__ import annotations

import logging

from applier.workers.celery_app import celery_app


def test_an_acknowledgement_that_fails_is_told_without_a_traceback(caplog):
    celery_app("amqp://guest@127.0.0.1:1//", ["site-a"])
    try:
        raise ConnectionError("connection already closed")
    except ConnectionError:
        logging.getLogger("celery.worker.request").critical("Couldn't ack 8", exc_info=True)
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info) == ("Couldn't ack 8", None)
