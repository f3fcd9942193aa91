# SPDX-License-Identifier: Apache-2.0
"""What Celery logs while a broker is away is one line each."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from celery.worker.consumer import Consumer

from applier.workers.celery_app import LastingConsumer, celery_app

LOG = logging.getLogger("celery.worker.loops")


def logged(caplog):
    """Return the messages and tracebacks that were logged; pytest may have caught one twice."""
    return {(record.getMessage(), record.exc_info, record.exc_text) for record in caplog.records}


@pytest.mark.parametrize(
    ("raised", "message", "line"),
    [
        ("it is closed", "Couldn't ack 8", "Couldn't ack 8: ConnectionError('it is closed')"),
        (
            "it is\nclosed",
            "After the loop: %r",
            r"After the loop: ConnectionError('it is\nclosed')",
        ),
    ],
)
def test_an_error_is_one_line_that_names_it_once(caplog, raised, message, line):
    for queue in ("site-a", "site-b"):
        celery_app("amqp://guest@127.0.0.1:1//", [queue])
    try:
        raise ConnectionError(raised)
    except ConnectionError as reason:
        LOG.exception(message, *[reason] * message.count("%r"))
    assert logged(caplog) == {(line, None, None)}


def test_a_broken_connection_that_cannot_be_closed_ends_no_worker(monkeypatch):
    """The library fails so with Redis, and would end the worker."""

    def close(*_given: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'hostname'")

    monkeypatch.setattr(Consumer, "on_connection_error_after_connected", close)
    app = celery_app("redis://127.0.0.1:1/0", ["site-a"])
    consumer = LastingConsumer(
        lambda _: None, app=app, controller=SimpleNamespace(use_eventloop=False), pool=None
    )
    consumer.on_connection_error_after_connected(ConnectionError("closed by server"))
    assert AttributeError in consumer.connection_errors
    assert app.conf.worker_consumer.endswith(f":{LastingConsumer.__name__}")
