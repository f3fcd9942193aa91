# SPDX-License-Identifier: Apache-2.0
"""Which calls are made again, and what becomes of those that never succeed."""

from __future__ import annotations

import threading

import pytest
from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.cloud import OpenStackCloud
from applier.errors import ActionFailed, JobLost


def http(status: int, reason: str = "a reason") -> exceptions.HttpException:
    kinds = {404: exceptions.NotFoundException, 409: exceptions.ConflictException}
    kind = kinds.get(status, exceptions.HttpException)
    return kind(message=reason, http_status=status, details=reason)


class Cloud:
    """Raises these errors, one for each call, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.made = list(errors), 0

    def __call__(self) -> str:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "an answer"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return calls with a patience of three tries, which do not wait."""
    monkeypatch.setattr("applier.clouds.openstack.calls._FIRST_S", 0.001)
    return Calls(patience_s=10.0)


@pytest.fixture
def stop() -> threading.Event:
    """Return a stop signal."""
    return threading.Event()


TRANSIENT = [
    keystone.ConnectFailure("lost"),
    keystone.ConnectTimeout("no answer"),
    keystone.ServiceUnavailable("Keystone has no database"),
    http(500),
    http(502),
    http(503),
    http(504),
    http(409),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=str)
def test_what_is_transient_is_tried_again(calls, stop, error):
    for make in (lambda c: calls.read(c), lambda c: calls.change("the stop", c, stop)):
        cloud = Cloud(error, error)
        assert make(cloud) == "an answer"
        assert cloud.made == 3


def test_an_answer_of_the_cloud_is_not_asked_for_again(calls, stop):
    cloud = Cloud(http(400, "no  valid\nhost"))
    with pytest.raises(ActionFailed, match=r"^the move was refused: no valid host$"):
        calls.change("the move", cloud, stop)
    assert cloud.made == 1
    assert calls.read(Cloud(http(404))) is None
    with pytest.raises(ActionFailed, match=r"^not yours$"):
        calls.read(Cloud(http(403, "not yours")))


def test_a_change_that_has_begun_although_its_answer_was_lost_is_not_made_again(calls, stop):
    cloud, looks = Cloud(keystone.ConnectFailure("lost")), []

    def has_begun() -> bool:
        looks.append(cloud.made)
        return True

    assert calls.change("the move", cloud, stop, has_begun) is None
    assert (cloud.made, looks) == (1, [1])


def test_a_change_that_has_begun_is_not_refused_because_a_gateway_gave_up(stop):
    cloud = Cloud(http(504, "Gateway Timeout"))
    assert Calls(patience_s=0.0).change("the move", cloud, stop, lambda: cloud.made == 1) is None


def test_a_change_that_has_begun_is_not_refused_because_it_was_asked_for_again(calls, stop):
    cloud = Cloud(keystone.ConnectFailure("lost"), http(400, "not resized"))
    assert calls.change("the move", cloud, stop, lambda: cloud.made == 2) is None


def test_a_conflict_says_that_this_request_has_not_begun(calls, stop):
    cloud = Cloud(http(409), http(409))
    assert calls.change("the move", cloud, stop, lambda: True) == "an answer"


def test_a_change_whose_first_answer_was_lost_is_in_doubt_while_the_cloud_is_busy(
    stop, monkeypatch
):
    monkeypatch.setattr("applier.clouds.openstack.calls._FIRST_S", 0.001)
    cloud = Cloud(keystone.ConnectFailure("lost"), *[http(409, "it is migrating")] * 99)
    with pytest.raises(ConnectionError, match="the cloud answers: it is migrating"):
        Calls(patience_s=0.05).change("the move", cloud, stop)


@pytest.mark.parametrize(
    ("error", "of_read", "of_change"),
    [
        (keystone.ConnectFailure("lost"), ConnectionError, ConnectionError),
        (keystone.ServiceUnavailable("busy"), ConnectionError, ConnectionError),
        (http(502, "no answer"), ConnectionError, ConnectionError),
        (http(504, "no answer"), ConnectionError, ConnectionError),
        (http(503, "busy"), ConnectionError, ActionFailed),
        (http(409, "busy"), ActionFailed, ActionFailed),
    ],
)
def test_what_never_succeeds_ends_with_the_patience(stop, error, of_read, of_change):
    impatient = Calls(patience_s=0.0)
    with pytest.raises(of_read):
        impatient.read(Cloud(error))
    with pytest.raises(of_change):
        impatient.change("the move", Cloud(error), stop)


def test_what_is_told_of_a_lost_connection_names_the_address_once():
    pool = "HTTPSConnectionPool(host='x', port=5000): Max retries exceeded with url: /v3"
    lost = keystone.ConnectFailure(f"Unable to establish connection to https://x:5000/v3: {pool}")
    with pytest.raises(ConnectionError) as raised:
        Calls(patience_s=0.0).read(Cloud(lost))
    where = "Unable to establish connection to https://x:5000/v3"
    assert str(raised.value) == f"the cloud cannot be reached: {where}"


def test_a_stop_ends_the_tries_and_before_the_first_there_is_none(calls, stop):
    cloud = Cloud(*[http(503)] * 3)

    def ask() -> str:
        stop.set()
        return cloud()

    with pytest.raises(ActionFailed, match="the move was refused"):
        calls.change("the move", ask, stop)
    with pytest.raises(ActionFailed, match="the move was stopped before it began"):
        calls.change("the move", ask, stop)
    assert cloud.made == 1


UNREACHABLE = """
clouds:
  away:
    auth: {auth_url: "http://127.0.0.1:1/v3", username: operator, password: not-for-logs}
"""


def test_where_nobody_answers_a_question_fails_and_work_is_in_doubt(
    stop, tmp_path, monkeypatch, caplog
):
    path = tmp_path / "clouds.yaml"
    path.write_text(UNREACHABLE, encoding="utf-8")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    cloud = OpenStackCloud(cloud="away", reconnect_timeout_s=0.0)
    assert cloud.name == "openstack away (http://127.0.0.1:1/v3)"
    with caplog.at_level("DEBUG"):
        with pytest.raises(ActionFailed, match="the cloud cannot be reached") as failed:
            cloud.instance("s1")
        with pytest.raises(JobLost, match="the cloud cannot be reached") as lost:
            cloud.migrate("s1", None, True, stop)
    assert not lost.value.is_over
    assert "not-for-logs" not in f"{failed.value} {lost.value} {caplog.text}"
