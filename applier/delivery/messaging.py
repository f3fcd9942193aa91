# SPDX-License-Identifier: Apache-2.0
"""Sends events over oslo.messaging as notifications, from the same options as Watcher.

The Notifier of oslo.messaging logs a failure and goes on; so events are sent over its transport, as
its notification drivers do. RabbitMQ confirms each message. :mod:`applier.notifications.watcher`
makes the notification of an event.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from oslo_config import cfg
from oslo_service import backend

# Before the import of oslo.messaging, which would choose eventlet for good.
backend.init_backend(backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402

from applier.delivery.receivers import Away, Deliver, Receiver, SendingThread  # noqa: E402
from applier.errors import ConfigurationError  # noqa: E402
from applier.notifications.schema import Event  # noqa: E402
from applier.notifications.watcher import Notification, notification  # noqa: E402

#: The exchange, where ``[DEFAULT] control_exchange`` is not set: Watcher's.
EXCHANGE = "watcher"
#: Seconds until the broker must have confirmed a notification, and until a connection is closed.
ANSWER_S, CLOSE_S = 15.0, 5.0
#: The versions of the format of messages, by driver.
_VERSIONS = {"messagingv2": 2.0, "messaging": 1.0}
_SECTION = "oslo_messaging_notifications"


class Notifications(Receiver):
    """The receiver that sends events as notifications of Watcher, to a message broker.

    A batch of events has a connection of its own. Deliveries are repeated by
    :class:`applier.delivery.delivery.EventDelivery`, so ``retry`` of oslo.messaging has no effect.
    """

    name = "notifications"

    def __init__(self, conf: cfg.ConfigOpts, *, host: str | None = None) -> None:
        self._conf = conf
        self._publisher = f"infra-optim:{host or socket.gethostname()}"
        oslo_messaging.set_transport_defaults(EXCHANGE)
        try:
            self._transport().cleanup()
            options = conf[_SECTION]
            url = oslo_messaging.TransportURL.parse(conf, options.transport_url)
            self._topics, drivers = list(options.topics), list(options.driver)
        except cfg.Error as reason:
            raise ConfigurationError(str(reason)) from reason
        except (oslo_messaging.InvalidTransportURL, ValueError):
            # Without the address: it may hold a password. ValueError is of a port.
            raise ConfigurationError(
                "[DEFAULT] transport_url: accepted: rabbit://USER:PASSWORD@HOST:PORT/"
            ) from None
        except oslo_messaging.DriverLoadFailure as reason:
            text = f"[DEFAULT] transport_url: no transport {reason.driver!r}"
            raise ConfigurationError(text) from None
        if url.transport == "rabbit" and not url.hosts:
            raise ConfigurationError("[events] notifications: needs [DEFAULT] transport_url")
        self._version = _version(drivers)
        #: One try for each host of a cluster.
        self._retry = max(len(url.hosts) - 1, 0)
        #: The thread of the last block. It lives on only if the broker does not answer.
        self._thread: SendingThread | None = None

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        if self._thread is not None and self._thread.is_alive():
            raise Away("the broker has not answered yet")
        transport = self._transport()
        self._thread = thread = SendingThread(transport.cleanup)
        try:
            yield lambda event: self._deliver(transport, thread, event)
        finally:
            thread.end(CLOSE_S)

    def _transport(self) -> Any:
        """Return a transport. It connects when something is sent."""
        return oslo_messaging.get_notification_transport(self._conf)

    def _deliver(self, transport: Any, thread: SendingThread, event: Event) -> None:
        made = notification(event)
        if made is None:
            return
        for topic in self._topics:
            target = oslo_messaging.Target(topic=f"{topic}.{made.priority.lower()}")

            def send(target: Any = target) -> None:
                message = message_of(event, made, self._publisher)
                transport._send_notification(
                    target, {}, message, version=self._version, retry=self._retry
                )

            try:
                thread.call(send, ANSWER_S)
            except TimeoutError:
                raise Away(f"the broker does not answer within {ANSWER_S:g} s") from None
            except Exception as reason:  # noqa: BLE001
                # Its libraries raise errors of many classes, none of them because of the event.
                raise Away(str(reason) or type(reason).__name__) from None


def message_of(event: Event, made: Notification, publisher: str) -> dict[str, Any]:
    """Return a notification in its envelope; one that is sent again has the same ``message_id``.

    >>> event = {"plan": "6a1f", "number": 7, "at": "2026-01-02T03:04:05+00:00"}
    >>> found = message_of(event, Notification("action_plan.create", "INFO", {}), "infra-optim:h")
    >>> found["message_id"], found["timestamp"]
    ('1afe28e8-60b0-5bfa-b16d-5f35861fb789', '2026-01-02 03:04:05')
    """
    at = datetime.fromisoformat(event["at"]).astimezone(UTC).replace(tzinfo=None)
    return {
        "message_id": str(uuid5(NAMESPACE_URL, f"urn:uuid:{event['plan']}#{event['number']}")),
        "publisher_id": publisher,
        "event_type": made.event_type,
        "priority": made.priority,
        "payload": made.payload,
        "timestamp": str(at),
    }


def _version(drivers: list[str]) -> float:
    """Return the version of messages of the configured drivers; raises ConfigurationError."""
    known = [_VERSIONS[name] for name in drivers if name in _VERSIONS]
    if drivers and not known:
        accepted = ", ".join(_VERSIONS)
        raise ConfigurationError(f"[{_SECTION}] driver: accepted for [events]: {accepted}")
    return known[0] if known else _VERSIONS["messagingv2"]
