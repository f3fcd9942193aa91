# SPDX-License-Identifier: Apache-2.0
"""Log lines say which plan and which action they are about."""

from __future__ import annotations

import json
import logging

import pytest
from oslo_config import cfg
from oslo_log import formatters, log

from applier import log_fields
from applier.service.log_file import FieldRecord


def record(**more: str) -> logging.LogRecord:
    """Return a record as a logger makes it."""
    made = FieldRecord("applier", logging.INFO, __file__, 1, "it ends", (), None)
    made.__dict__.update(more)
    return made


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    """Return the options of oslo.log."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    conf([])
    return conf


def test_a_line_of_a_plan_has_its_fields(conf: cfg.ConfigOpts) -> None:
    with log_fields.about(plan="p-1"):
        about = record(action="a-1")
    assert json.loads(formatters.JSONFormatter().format(about))["extra"] == {
        "plan": "p-1",
        "action": "a-1",
    }
    text = formatters.ContextFormatter(config=conf)
    assert text.format(about).endswith("[plan: p-1] [action: a-1] it ends")


def test_other_lines_have_none(conf: cfg.ConfigOpts) -> None:
    assert json.loads(formatters.JSONFormatter().format(record()))["extra"] == {}
    assert formatters.ContextFormatter(config=conf).format(record()).endswith("[-] it ends")
