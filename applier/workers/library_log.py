# SPDX-License-Identifier: Apache-2.0
"""Sends the warnings of the messaging libraries to the log of this program, one line each."""

from __future__ import annotations

import logging

from applier.wording import one_line

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


def set_up() -> None:
    """Let the libraries log only warnings and errors, by OneLine; a second call changes nothing."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        if not any(isinstance(handler, OneLine) for handler in logger.handlers):
            logger.addHandler(OneLine())


def leave(**_: object) -> None:
    """Do nothing: with a receiver of ``setup_logging``, Celery leaves the log as it is."""
