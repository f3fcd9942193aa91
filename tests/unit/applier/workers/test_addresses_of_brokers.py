# SPDX-License-Identifier: Apache-2.0
"""Which addresses of message brokers are accepted."""

from __future__ import annotations

import sys

import pytest

from applier import configuration
from applier.errors import ConfigurationError
from applier.workers import workers_section

RECORD = "[actionplan]\nconnection = postgresql://actionplan@db/plans\n"


def required(folder, broker):
    path = folder / "watcher.conf"
    path.write_text(f"{RECORD}[workers]\nbroker = {broker}\n", encoding="utf-8")
    workers_section.require(configuration.load([str(path)]))


@pytest.mark.parametrize(
    "broker",
    [
        "amqp://user:secret@rabbit7//",
        "amqp://rabbit7:5671/plans",
        "amqps://rabbit7//",
        "redis://rabbit7",
        "rediss://rabbit7:6380/1",
    ],
)
def test_a_broker_with_a_host_is_accepted(tmp_path, broker):
    required(tmp_path, broker)


@pytest.mark.parametrize(
    "broker",
    [
        "",
        "rabbit7",
        "http://rabbit7",
        "amqp://",
        "redis://:6379",
        "amqp://rabbit7:0//",
        "amqp://rabbit7:x//",
    ],
)
def test_what_is_no_address_of_one_is_refused_without_being_repeated(tmp_path, broker):
    with pytest.raises(ConfigurationError) as refused:
        required(tmp_path, broker)
    assert "[workers] broker: " in str(refused.value)
    assert "rabbit7" not in str(refused.value)


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "applier.workers.celery_app", None)
    monkeypatch.delattr("applier.workers.celery_app", raising=False)
    with pytest.raises(ConfigurationError, match="needs the extra 'workers'"):
        required(tmp_path, "redis://rabbit7")
