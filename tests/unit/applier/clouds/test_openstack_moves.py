# SPDX-License-Identifier: Apache-2.0
"""Moves between two changes that Nova makes one after another: the task, the record, its status.

A real Nova makes them within milliseconds, so it is scripted here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from keystoneauth1 import exceptions as keystone
from openstack import exceptions

from applier.actions.instance_moves import Migrate, Resize
from applier.clouds.openstack import moves
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.moves import Moves
from applier.clouds.openstack.server_fields import view
from applier.contracts import ActionContext
from applier.errors import ActionFailed, AlreadyDone

pytestmark = pytest.mark.usefixtures("quick")


class Nova:
    """One server, whose move to cmp2 was requested; each list is one step of Nova."""

    def __init__(self, *steps: Callable[[Nova], None], **values: object) -> None:
        self.task, self.host, self.status = "migrating", "cmp1", None
        self.kind, self.at_rest, self.flavor, self.old_status = (
            *("live-migration", "ACTIVE", "m1.small", "completed"),
        )
        self.__dict__.update(values)
        self.requests: list[str] = []
        self.steps = list(steps)

    def _step(self) -> None:
        if self.steps:
            self.steps.pop(0)(self)

    def get_server(self, server_id: str) -> SimpleNamespace:
        return SimpleNamespace(
            id=server_id,
            name="web-1",
            status="MIGRATING" if self.task else self.at_rest,
            task_state=self.task,
            compute_host=self.host,
            updated_at="2026-01-01T00:00:00Z",
            power_state=1,
            flavor={"original_name": self.flavor},
        )

    def find_flavor(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(id="f1", name=name)

    def servers(self, **_: object) -> list[SimpleNamespace]:
        self._step()
        return [self.get_server("s")]

    def migrations(self, **_: object) -> list[SimpleNamespace]:
        self._step()
        old = SimpleNamespace(
            id=6, migration_type=self.kind, status=self.old_status, dest_compute="cmp1"
        )
        new = {"id": 7, "migration_type": self.kind, "dest_compute": "cmp2"}
        return [old] if self.status is None else [old, SimpleNamespace(**new, status=self.status)]

    def server_migrations(self, _server_id: str) -> list[SimpleNamespace]:
        self._step()
        return [SimpleNamespace(id=7, status=self.status)]

    def server_actions(self, _server_id: str) -> list[object]:
        return []

    def live_migrate_server(self, *_: object, **__: object) -> None:
        self.requests.append("live_migrate_server")
        self.task = "migrating"

    def migrate_server(self, *_: object, **__: object) -> None:
        self.requests.append("migrate_server")
        self.task = "resize_prep"

    def resize_server(self, *_: object) -> None:
        self.requests.append("resize_server")

    def confirm_server_resize(self, _server_id: str) -> None:
        self.requests.append("confirm_server_resize")
        if self.status != "finished":
            text = "Instance has not been resized."
            raise exceptions.BadRequestException(message=text, http_status=400)
        self.status = "confirming"

    def abort_server_migration(self, *_: object) -> None:
        self.requests.append("abort_server_migration")
        self.status, self.task = "cancelled", None


def becomes(**values: object) -> Callable[[Nova], None]:
    return lambda nova: nova.__dict__.update(values)


def nothing(_: Nova) -> None:
    pass


ENDS = becomes(status="completed", task=None, host="cmp2")


def migrate(
    nova: Nova, stop: threading.Event, destination: str | None = "cmp2", live: bool = True
) -> str:
    made = Moves(Compute(nova, Calls(patience_s=1.0)))
    return made.migrate("s", destination, live, stop, lambda _: None)


@pytest.mark.parametrize("destination", ["cmp2", None])
@pytest.mark.parametrize(
    "steps",
    [
        [nothing, nothing, nothing, becomes(status="accepted"), becomes(status="running"), ENDS],
        [nothing, nothing, nothing, ENDS],
    ],
    ids=["record later", "ended at once"],
)
def test_a_move_without_a_record_yet_is_not_begun_again(steps, destination):
    """As after a kill -9 of the applier, right after its request."""
    nova = Nova(*steps)
    assert migrate(nova, threading.Event(), destination) == "cmp2"
    assert nova.requests == []


def test_a_move_without_a_record_yet_that_goes_elsewhere_is_left_alone():
    nova = Nova(nothing, nothing, becomes(status="accepted"), ENDS)
    with pytest.raises(ActionFailed, match="moved to cmp2 already"):
        migrate(nova, threading.Event(), "cmp3")
    assert nova.requests == []


def test_a_stop_reaches_a_move_for_which_nova_has_chosen_no_host_yet():
    stop = threading.Event()
    stop.set()
    nova = Nova(
        becomes(status="accepted"), nothing, nothing, nothing, becomes(status="running"), nothing
    )
    with pytest.raises(ActionFailed, match="was stopped: Nova cancelled migration 7"):
        migrate(nova, stop)
    assert nova.requests == ["abort_server_migration"]


def test_a_stop_of_a_move_that_ends_before_it_can_be_cancelled():
    stop = threading.Event()
    stop.set()
    nova = Nova(becomes(status="accepted"), nothing, nothing, ENDS)
    assert migrate(nova, stop) == "cmp2"
    assert nova.requests == []


@pytest.mark.parametrize("destination", ["cmp2", None])
def test_a_move_whose_record_appears_late_is_not_begun_again(monkeypatch, destination):
    """As after a kill -9 right after the request, while the conductor has much to do."""
    monkeypatch.setattr(moves, "_LOOKS", 3)
    nova = Nova(*[nothing] * 6, becomes(status="running"), ENDS)
    assert migrate(nova, threading.Event(), destination) == "cmp2"
    assert nova.requests == []


def test_a_resize_whose_record_appears_late_is_not_begun_again(monkeypatch):
    monkeypatch.setattr(moves, "_LOOKS", 3)
    ends = becomes(status="confirmed", task=None, flavor="m1.large")
    nova = Nova(
        *[nothing] * 6, becomes(status="migrating"), ends, task="resize_prep", kind="resize"
    )
    made = Moves(Compute(nova, Calls(patience_s=0.0)))
    made.resize("s", "m1.large", threading.Event(), lambda _: None)
    assert nova.requests == []


@pytest.mark.parametrize("destination", ["cmp2", None])
@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "record later"])
def test_a_move_that_ends_between_two_reads_is_not_begun_again(destination, is_late):
    nova = Nova(status="running")
    reads = nova.get_server

    def get_server(server_id: str) -> SimpleNamespace:
        if nova.task is not None:
            becomes(task=None, host="cmp2", status="running" if is_late else "completed")(nova)
            nova.steps = [nothing, nothing, ENDS]
        return reads(server_id)

    nova.get_server = get_server
    assert migrate(nova, threading.Event(), destination) == "cmp2"
    assert nova.requests == []


def test_a_record_that_nova_has_left_unfinished_when_it_died_is_no_move():
    nova = Nova(status="running", task=None)

    def live_migrate_server(*_: object, **__: object) -> None:
        raise exceptions.BadRequestException(message="no valid host", http_status=400)

    nova.live_migrate_server = live_migrate_server
    with pytest.raises(ActionFailed, match=r"web-1 to cmp2 .* no valid host"):
        migrate(nova, threading.Event())


class OneServer:
    """The cloud of one server, for an action."""

    def __init__(self, nova: Nova) -> None:
        self._compute = Compute(nova, Calls(patience_s=0.0))
        self.migrate, self.resize = Moves(self._compute).migrate, Moves(self._compute).resize

    def instance(self, server_id: str) -> dict[str, object]:
        return view(self._compute.existing(server_id))

    def flavor(self, name: str) -> dict[str, object]:
        return {"name": name}


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        (Migrate, {"migration_type": "live", "source_node": "cmp1"}),
        (Resize, {"flavor": "m1.large"}),
    ],
)
def test_work_that_ends_after_the_precheck_is_not_begun_again(action, parameters):
    nova = Nova(status="running")
    context = ActionContext(cloud=lambda: OneServer(nova), output=lambda _: None)
    made = action({"resource_id": "s", **parameters}, context)
    made.precheck()
    becomes(status="completed", task=None, host="cmp2", flavor="m1.large")(nova)
    with pytest.raises(AlreadyDone):
        made.execute(threading.Event())
    assert nova.requests == []


def test_a_move_that_was_accepted_and_has_no_record_yet_is_in_doubt(monkeypatch):
    monkeypatch.setattr(moves, "_LOOKS", 3)
    nova = Nova(task=None)
    with pytest.raises(ConnectionError, match="no migration record"):
        migrate(nova, threading.Event())
    assert nova.requests == ["live_migrate_server"]


def test_a_cold_move_with_a_record_that_nova_had_prepared_before():
    """Nova takes an old record that is pre-migrating, and makes none."""
    nova = Nova(task=None, kind="migration", old_status="pre-migrating", at_rest="ACTIVE")
    begins = nova.migrate_server

    def migrate_server(*_: object, **__: object) -> None:
        begins()
        ends = becomes(old_status="completed", task=None, host="cmp1")
        nova.steps = [nothing, becomes(old_status="migrating"), ends]

    nova.migrate_server = migrate_server
    assert migrate(nova, threading.Event(), "cmp1", live=False) == "cmp1"


@pytest.mark.parametrize("is_lost", [False, True], ids=["after a kill", "answer lost"])
def test_a_confirmation_that_is_under_way_is_waited_for(is_lost):
    nova = Nova(
        task=None,
        kind="migration",
        host="cmp2",
        at_rest="VERIFY_RESIZE",
        status="finished" if is_lost else "confirming",
    )
    confirms, done = nova.confirm_server_resize, becomes(status="confirmed", at_rest="ACTIVE")

    def confirm(server_id: str) -> None:
        confirms(server_id)
        raise keystone.ConnectFailure("lost")

    def servers(**_: object) -> list[SimpleNamespace]:
        done(nova)
        return [nova.get_server("s")]

    nova.confirm_server_resize, nova.servers = confirm, servers
    assert migrate(nova, threading.Event(), live=False) == "cmp2"
    assert nova.requests == (["confirm_server_resize"] if is_lost else [])
