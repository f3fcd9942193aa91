# SPDX-License-Identifier: Apache-2.0
"""A broker for tests, with an exchange and queues of their own: named at random, deleted again.

``ACTIONPLAN_TEST_RABBITMQ`` holds the URL of a server, ``ACTIONPLAN_TEST_REDIS`` of another kind.
One that is not there skips the test, and fails it where ``CI`` is set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tcp_proxy import Proxy, proxy

RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
#: The variable that names a server, and the server without it, by kind.
SERVERS = {
    "rabbitmq": ("ACTIONPLAN_TEST_RABBITMQ", RABBITMQ),
    "redis": ("ACTIONPLAN_TEST_REDIS", "redis://127.0.0.1:6379/0"),
}
#: For how long a server may be slow to answer. One that is not there refuses at once.
PATIENCE_S = 120


class Broker:
    """A server behind a proxy; ``options`` is a configuration for notifications over it."""

    def __init__(self, connection: Any, passage: Proxy, user: str) -> None:
        self._channel, self.proxy = connection.channel(), passage
        self._name = name = f"actionplan_test_{uuid4().hex}"
        self.url = f"rabbit://{user}@127.0.0.1:{passage.port}/{connection.virtual_host}"
        self.options = (
            f"[DEFAULT]\ntransport_url = {self.url}\ncontrol_exchange = {name}\n"
            f"[oslo_messaging_notifications]\ntopics = {name}\n"
            "[events]\nnotifications = true\n"
        )

    def messages(self, priority: str = "info") -> list[dict[str, Any]]:
        """Take the messages that have arrived."""
        found = []
        with suppress(self._channel.connection.client.channel_errors):
            while (raw := self._channel.basic_get(f"{self._name}.{priority}", True)) is not None:
                found.append(json.loads(json.loads(raw.body)["oslo.message"]))
        return found

    def delete(self) -> None:
        """Delete the queues and the exchange."""
        for priority in ("info", "error"):
            self._channel.queue_delete(f"{self._name}.{priority}")
        self._channel.exchange_delete(self._name)


def broker_for_tests(kind: str = "rabbitmq") -> str:
    """Return the URL of a server of a kind, or skip the test if it is not there."""
    import kombu

    variable, default = SERVERS[kind]
    url = os.environ.get(variable, default)
    try:
        with kombu.Connection(url, connect_timeout=PATIENCE_S) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE_S)
    except (OSError, kombu.exceptions.OperationalError) as reason:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"{kind}: {reason} (set {variable})")
    return url


@contextmanager
def scratch_broker() -> Iterator[Broker]:
    """Yield a broker with names of its own, or skip the test."""
    import kombu

    url = os.environ.get("ACTIONPLAN_TEST_RABBITMQ", RABBITMQ)
    parts = urlsplit(url)
    with kombu.Connection(url, connect_timeout=PATIENCE_S) as connection:
        try:
            connection.connect()
        except OSError as reason:
            say = pytest.fail if os.environ.get("CI") else pytest.skip
            say(f"RabbitMQ: {reason} (set ACTIONPLAN_TEST_RABBITMQ)")
        with proxy(parts.hostname or "", parts.port or 5672) as passage:
            broker = Broker(connection, passage, f"{parts.username}:{parts.password}")
            try:
                yield broker
            finally:
                broker.delete()
