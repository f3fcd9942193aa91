# SPDX-License-Identifier: Apache-2.0
"""Sets up the log of the service, which goes on if the file of the log cannot be written."""

from __future__ import annotations

import logging
import sys
from typing import Any

from oslo_config import cfg
from oslo_log import log

from applier import log_fields
from applier.errors import ConfigurationError
from planner.safe_text import VisibleRecord, with_visible_errors


class FieldRecord(VisibleRecord):
    """A log record with the plan and the action that it is about, for JSON and for text.

    The plan is that of the thread; lines about an action are logged with ``extra={"action": ...}``.
    The formatters of oslo.log read the attributes ``extra`` and ``instance``.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._about = dict(log_fields.current())

    @property
    def extra(self) -> dict[str, str]:
        """The fields for JSON."""
        action = self.__dict__.get("action")
        return {**self._about, "action": action} if action else self._about

    @property
    def instance(self) -> str:
        """The fields for text."""
        return "".join(f"[{name}: {value}] " for name, value in self.extra.items())

    @instance.setter
    def instance(self, value: str) -> None:
        """Store the text that the formatter makes of the fields, where its format reads it."""
        self.__dict__["instance"] = value


def set_up(conf: cfg.ConfigOpts, name: str) -> None:
    """Set up logging by the configuration; raise ConfigurationError if that fails."""
    conf.set_default("use_stderr", True)
    try:
        log.setup(conf, name)
    except OSError as reason:
        text = f"the log {reason.filename} cannot be written: {reason.strerror}"
        raise ConfigurationError(text) from reason
    except log.LogConfigError as reason:
        raise ConfigurationError(f"log_config_append: {' '.join(str(reason).split())}") from reason
    logging.setLogRecordFactory(FieldRecord)
    for handler in logging.getLogger().handlers:
        if handler.formatter is not None:
            with_visible_errors(handler.formatter)
        if isinstance(handler, logging.FileHandler):
            _go_on_without(handler)


def _go_on_without(handler: logging.FileHandler) -> None:
    """Write to standard error, once, that the file cannot be written; raise and print no error.

    The handlers of Python print a trace for each message, or raise the error where it is logged.
    """
    write, is_told = handler.emit, False

    def tell(_record: logging.LogRecord) -> None:
        nonlocal is_told
        if not is_told:
            reason = sys.exc_info()[1]
            why = reason.strerror if isinstance(reason, OSError) else reason
            sys.stderr.write(f"The log {handler.baseFilename} cannot be written: {why}\n")
        is_told = True

    def emit(record: logging.LogRecord) -> None:
        try:
            write(record)
        except OSError:
            tell(record)

    handler.__dict__.update(emit=emit, handleError=tell)
