# SPDX-License-Identifier: Apache-2.0
"""The Celery application that sends messages to workers: settings, log, a task, a command."""

from __future__ import annotations

import logging
import queue
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any

import redis
from amqp.exceptions import AccessRefused, NotAllowed
from celery import Celery
from celery.worker.consumer import Consumer
from celery.worker.control import control_command
from kombu.entity import Queue
from kombu.exceptions import KombuError

from applier.store.worker_jobs import AttemptKey
from applier.wording import one_line
from applier.workers.follower import JobDelivery

#: Libraries that log a traceback for each connection that breaks.
LIBRARIES = ("celery", "kombu", "amqp")


class OneLine(logging.Handler):
    """A handler that passes each record to the handlers of the root logger, as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on; its message ends with the exception, in place of a traceback."""
        text = record.getMessage()
        raised = record.exc_info[1] if record.exc_info else None
        if raised is not None and repr(raised) not in text:
            text = f"{text}: {raised!r}"
        record.msg, record.args = one_line(text), ()
        record.exc_info = record.exc_text = None
        logging.getLogger().handle(record)


def set_up_log() -> None:
    """Let the libraries log only warnings and errors, by OneLine; a second call changes nothing."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        if not any(isinstance(handler, OneLine) for handler in logger.handlers):
            logger.addHandler(OneLine())


def leave_log(**_: object) -> None:
    """Do nothing: with a receiver of ``setup_logging``, Celery leaves the log as it is."""


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


#: The beginning of the names of queues at the broker.
PREFIX = "actionplan."
_TASK, _LOOK = "actionplan.perform", "actionplan_look"
#: Seconds for which the broker keeps a message that no worker fetches; jobs are sent again sooner.
EXPIRES_S = 10.0
#: Seconds between two tries to reach the broker.
AGAIN_S = 0.5

#: The functions to call for the control command: none, or the one given to :func:`on_messages`.
_looks: list[Callable[[Sequence[AttemptKey]], None]] = []


def celery_app(broker: str, queues: Sequence[str], ca_file: str | None = None) -> Celery:
    """Return the Celery application for a broker; its workers serve these queues.

    ``ca_file`` holds the CA certificates that verify a broker with TLS; None means those of the
    system.
    """
    set_up_log()
    app = Celery("actionplan", broker=broker, set_as_current=False)
    is_redis = broker.startswith("redis")
    app.conf.update(
        # JSON only: a pickled message could make a worker execute any code.
        task_serializer="json",
        accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        # With late acknowledgements, RabbitMQ sends no message to a worker that has no free place.
        # A message that is delivered twice does no harm: its job can be taken only once. Over
        # Redis, an acknowledgement after an outage ends the worker; so messages are acknowledged
        # before the task there, and fetched for free places only.
        task_acks_late=not is_redis,
        worker_disable_prefetch=is_redis,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # RabbitMQ closes the channel of a message that is not acknowledged for half an hour.
        broker_channel_error_retry=True,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=4,
        broker_heartbeat=10,
        broker_transport_options=_REDIS if is_redis else {},
        broker_use_ssl=_tls(broker, ca_file),
        task_queues=[Queue(PREFIX + name, durable=True) for name in queues],  # type: ignore[no-untyped-call]
        task_default_queue=PREFIX + queues[0],
        task_create_missing_queues=True,
        task_default_delivery_mode=1,
        control_exchange=f"{PREFIX}control",
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=True,
        worker_consumer="applier.workers.celery_app:LastingConsumer",
    )
    return app


def _tls(broker: str, ca_file: str | None) -> dict[str, Any] | None:
    """Return the TLS options that verify a broker's certificate and host name; None without TLS.

    By default, the libraries verify no certificate over rediss://, and no host name over amqps://.
    """
    if broker.startswith("rediss"):
        return {
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
            "ssl_ca_certs": ca_file,
            "ssl_check_hostname": True,
        }
    if broker.startswith("amqps"):
        # The library takes the name from the address.
        return {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": ca_file, "server_hostname": None}
    return None


_REDIS = {
    "visibility_timeout": 3600,
    "socket_keepalive": True,
    "socket_connect_timeout": 4,
    "socket_timeout": 8,
}


def on_messages(
    app: Celery,
    perform: Callable[[AttemptKey], None],
    look: Callable[[Sequence[AttemptKey]], None],
) -> None:
    """Register the functions that the worker of this process calls for its messages.

    ``perform`` is called for each job that is sent to one of its queues. ``look`` is called with
    the keys of a broadcast of :meth:`CeleryDelivery.look`; a second registration replaces it.
    """

    @app.task(name=_TASK)  # type: ignore[untyped-decorator]
    def task(plan: str, action: str, attempt: int) -> None:
        perform(AttemptKey(plan, action, attempt))

    _looks[:] = [look]


@control_command(name=_LOOK, args=[("jobs", list)])  # type: ignore[untyped-decorator]
def _look_at(_state: Any, jobs: Sequence[Sequence[Any]]) -> None:
    for look in _looks:
        look([AttemptKey(*job) for job in jobs])


def refusal(app: Celery) -> str | None:
    """Return the error with which the broker rejects the user or virtual host; None without one.

    None is also returned if the broker cannot be reached: it may be started later. Blocks until the
    connection is made or fails.
    """
    with app.connection_for_write() as connection:
        try:
            connection.connect()
        except (AccessRefused, NotAllowed, redis.exceptions.AuthenticationError) as reason:
            return str(reason)
        except (OSError, KombuError, *connection.connection_errors):
            return None
    return None


class CeleryDelivery(JobDelivery):
    """Sends messages in a thread, over one connection.

    While the broker cannot be reached, messages are dropped. That does no harm: appliers send the
    jobs that wait in the record again, and workers read stops from the record.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._is_away = False
        self._messages: queue.SimpleQueue[tuple[str, AttemptKey] | list[AttemptKey] | None]
        self._messages = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="job-sender", daemon=True)
        self._thread.start()

    def send(self, queue: str, key: AttemptKey) -> None:
        self._messages.put((queue, key))

    def look(self, keys: Sequence[AttemptKey]) -> None:
        self._messages.put(list(keys))

    def close(self) -> None:
        """Send the queued messages if the broker can be reached, and end; wait for at most 2 s."""
        self._over.set()
        self._messages.put(None)
        self._thread.join(timeout=2.0)

    def _loop(self) -> None:
        while not self._over.is_set():
            try:
                self._send_all()
            except Exception as reason:  # noqa: BLE001
                # The libraries of brokers raise errors of many kinds. Without this thread, workers
                # would get no messages.
                if not self._is_away:
                    LOG.warning("The broker cannot be reached; retrying: %s", reason)
                self._is_away = True
                self._over.wait(AGAIN_S)
                self._drop()
            else:
                return

    def _send_all(self) -> None:
        with self._app.connection_for_write(heartbeat=0) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.1, timeout=4)
            producer = self._app.amqp.Producer(connection, auto_declare=False)
            mailbox = self._app.control.mailbox(connection)
            if self._is_away:
                LOG.info("The broker can be reached again")
            self._is_away = False
            while (message := self._messages.get()) is not None:
                if isinstance(message, list):
                    told = {"jobs": [tuple(key) for key in message]}
                    mailbox._broadcast(_LOOK, told, channel=connection.default_channel)
                    continue
                to_queue, key = message
                self._app.send_task(
                    _TASK,
                    tuple(key),
                    producer=producer,
                    queue=PREFIX + to_queue,
                    expiration=EXPIRES_S,
                    retry=False,
                    ignore_result=True,
                )

    def _drop(self) -> None:
        """Drop messages that wait: the jobs in the record are sent again."""
        while not self._messages.empty():
            if self._messages.get() is None:
                self._over.set()
