# SPDX-License-Identifier: Apache-2.0
"""The log of the libraries that bring messages: one line each, without tracebacks."""

from __future__ import annotations

import logging

from applier.wording import one_line

#: Libraries that log a traceback for each connection that breaks, which is no news to anybody.
LIBRARIES = ("celery", "kombu", "amqp")


class OneLine(logging.Handler):
    """Passes records on to the handlers of this program, each as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on; an exception is named in it instead of its traceback."""
        text = record.getMessage()
        raised = record.exc_info[1] if record.exc_info else None
        if raised is not None and repr(raised) not in text:
            text = f"{text}: {raised!r}"
        record.msg, record.args = one_line(text), ()
        record.exc_info = record.exc_text = None
        logging.getLogger().handle(record)


def set_up() -> None:
    """Have the libraries log so; a second call changes nothing."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        if not any(isinstance(handler, OneLine) for handler in logger.handlers):
            logger.addHandler(OneLine())
