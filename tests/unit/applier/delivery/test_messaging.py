# SPDX-License-Identifier: Apache-2.0
"""What the options of notifications mean, and which are refused before anything is sent.

``tests/contract/test_receivers.py`` sends notifications.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys

import pytest

from applier import configuration
from applier.delivery import delivery_service
from applier.delivery.receivers import Away
from applier.errors import ConfigurationError

ON = "[events]\nnotifications = true\n"
EVENT = {
    "version": "1.0",
    "type": "plan.state",
    "number": 1,
    "at": "2026-01-02T03:04:05+00:00",
    "plan": "p1",
    "data": {"state": "ONGOING", "message": None},
}


@pytest.fixture
def made(tmp_path):
    def made(text):
        file = tmp_path / "watcher.conf"
        file.write_text(text + ON)
        told = []
        found = delivery_service.receivers(configuration.load([str(file)], warn=told.append))
        assert told == []
        return found

    return made


def test_the_options_of_watcher_are_accepted(made):
    (receiver,) = made(
        "[DEFAULT]\ntransport_url = rabbit://me:pass@a:5672,me:pass@b:5672/\n"
        "[oslo_messaging_notifications]\ndriver = messagingv2\ndriver = log\n"
        "topics = one,two\nretry = 3\n"
        "[oslo_messaging_rabbit]\nrabbit_quorum_queue = true\n"
    )
    assert receiver.name == "notifications"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "[events] notifications: needs [DEFAULT] transport_url"),
        (
            "[DEFAULT]\ntransport_url = rabbit://me:hidden@a:x/\n",
            "[DEFAULT] transport_url: accepted: rabbit://USER:PASSWORD@HOST:PORT/",
        ),
        ("[DEFAULT]\ntransport_url = carrot://a/\n", "[DEFAULT] transport_url: no transport"),
        (
            "[DEFAULT]\ntransport_url = rabbit://a/\n"
            "[oslo_messaging_notifications]\ndriver = noop\n",
            "[oslo_messaging_notifications] driver",
        ),
    ],
)
def test_what_cannot_work_is_refused_without_its_secrets(made, text, why):
    with pytest.raises(ConfigurationError) as raised:
        made(text)
    assert why in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_a_missing_library_is_told_in_a_sentence(made, monkeypatch):
    monkeypatch.delitem(sys.modules, "applier.delivery.messaging", raising=False)
    monkeypatch.setitem(sys.modules, "oslo_messaging", None)
    with pytest.raises(ConfigurationError) as raised:
        made("")
    assert "'notifications'" in str(raised.value)


def test_a_broker_without_a_listener_is_away_and_the_password_is_not_logged(made, caplog):
    caplog.set_level(logging.DEBUG)
    with socket.socket() as taken:  # bound and not listening: nothing answers here
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        (receiver,) = made(f"[DEFAULT]\ntransport_url = rabbit://me:hidden@127.0.0.1:{port}/\n")
        with pytest.raises(Away, match="refused") as raised, receiver.opened() as deliver:
            deliver(EVENT)
    assert "hidden" not in str(raised.value) + caplog.text


def test_an_event_without_a_notification_needs_no_broker(made):
    (receiver,) = made("[DEFAULT]\ntransport_url = rabbit://me:hidden@127.0.0.1:1/\n")
    with receiver.opened() as deliver:
        deliver({**EVENT, "type": "plan.history"})


@pytest.mark.slow
def test_eventlet_is_not_imported():
    script = (
        "import applier.service.main, applier.delivery.messaging, taskflow.engines, sys\n"
        "print(sys.modules['eventlet'])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("None\n", "")
