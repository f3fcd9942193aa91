# SPDX-License-Identifier: Apache-2.0
"""Moves and resizes servers of Nova.

A move is done when its migration record says so, never because the server is ACTIVE: one whose move
failed is ACTIVE too, on its old host. A record can be behind its server, so both are waited for.
What is under way already is followed, because an earlier attempt may have begun it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from applier.clouds.openstack.compute import Compute, Migration
from applier.clouds.openstack.following import WaitStopped
from applier.clouds.openstack.servers import WAITS_FOR_CONFIRMATION, Server, flavor_of, task_of
from applier.contracts import Print, StopSignal
from applier.errors import ActionFailed

_DONE = {"completed", "done", "confirmed"}
_ENDED = _DONE | {"error", "failed", "cancelled", "reverted"}
#: The types of migration records of moves; a resize has one as well.
_LIVE, _COLD, _RESIZE = "live-migration", "migration", "resize"
#: The statuses of a live migration that can be cancelled or completed.
_RUNNING = {"queued", "preparing", "running"}
#: How often a record that is behind its server is looked at, and the seconds between two looks.
_LOOKS, _BETWEEN_S = 40, 0.5
_NEVER = threading.Event()


class Moves:
    """Migrate and resize."""

    def __init__(self, compute: Compute) -> None:
        self._compute, self._nova = compute, compute.nova

    def migrate(
        self,
        server_id: str,
        destination: str | None,
        live: bool,
        stop: StopSignal,
        output: Print,
    ) -> str:
        """Move a server, never forced; return its new host."""
        server = self._compute.existing(server_id)
        what = f"the move of {server.name}" + (f" to {destination}" if destination else "")
        moving = self._under_way(server, (_LIVE, _COLD))
        if moving is None:
            server = self._settled(server, stop, what)
            moving = self._under_way(server, (_LIVE, _COLD))
        if moving is None:
            begin = self._live if live else self._cold
            moving = self._begun(server, what, begin(server, destination), stop)
        elif destination is not None and moving.dest_compute not in (None, destination):
            raise ActionFailed(
                f"{what} was refused: it is being moved to {moving.dest_compute} already "
                f"(migration {moving.id})"
            )
        output(f"{what}: migration {moving.id}\n")
        self._compute.print_request(server, output)
        end = self._end_of_live if moving.migration_type == _LIVE else self._confirmed
        host = end(server, moving, what, stop)
        if destination not in (None, host):
            raise ActionFailed(f"{what} failed: another move took it to {host}")
        return host

    def resize(self, server_id: str, flavor: str, stop: StopSignal, output: Print) -> None:
        """Change the flavor of a server, and confirm it."""
        server = self._compute.existing(server_id)
        what = f"the resize of {server.name} to {flavor}"
        wanted = self._compute.calls.read(lambda: self._nova.find_flavor(flavor))
        if wanted is None:
            raise ActionFailed(f"there is no flavor {flavor}")
        moving = self._under_way(server, (_RESIZE,))
        if moving is None:
            server = self._settled(server, stop, what)
            begin = partial(self._nova.resize_server, server, wanted.id)
            moving = self._begun(server, what, begin, stop)
        output(f"{what}: migration {moving.id}\n")
        self._compute.print_request(server, output)
        self._confirmed(server, moving, what, stop)
        now = flavor_of(self._compute.existing(server_id))
        if now != wanted.name:
            raise ActionFailed(f"{what} failed: another resize made it {now}")

    def abort(self, server_id: str) -> None:
        """Let Nova cancel the live migration of a server, if it runs and can be cancelled."""
        with suppress(ActionFailed):
            self._of_running(server_id, "the abort", self._nova.abort_server_migration)

    def force_complete(self, server_id: str) -> None:
        """Let Nova end the live migration of a server at once, by pausing the server.

        Raises ActionFailed if none is running, and if it cannot be done.
        """
        call = self._nova.force_complete_server_migration
        if not self._of_running(server_id, "the completion", call):
            raise ActionFailed("no live migration of it is running")

    def _live(self, server: Server, destination: str | None) -> Callable[[], object]:
        return lambda: self._nova.live_migrate_server(
            server, host=destination, block_migration="auto"
        )

    def _cold(self, server: Server, destination: str | None) -> Callable[[], object]:
        return lambda: self._nova.migrate_server(server, host=destination)

    def _settled(self, server: Server, stop: StopSignal, what: str) -> Server:
        try:
            return self._compute.settled(server, stop)
        except WaitStopped as stopped:
            raise ActionFailed(f"{what} was stopped before it began") from stopped

    def _begun(
        self, server: Server, what: str, begin: Callable[[], object], stop: StopSignal
    ) -> Migration:
        """Begin a move, and return its migration record."""
        before = next(iter(self._compute.migrations(server.id)), None)
        after = int(before.id) if before else 0

        def new() -> Migration | None:
            newest = next(iter(self._compute.migrations(server.id)), None)
            return newest if newest and int(newest.id) > after else None

        self._compute.calls.change(what, begin, stop, lambda: new() is not None)
        found = self._looked_for(new)
        if found is None:
            reason = self._compute.reason(self._compute.existing(server.id), "there is no record")
            raise ActionFailed(f"{what} failed: {reason}")
        return found

    def _under_way(self, server: Server, types: tuple[str, ...]) -> Migration | None:
        """Return the record of a move that has not ended, if a server is being moved."""
        if task_of(server) is None and server.status != WAITS_FOR_CONFIRMATION:
            return None
        newest = next(iter(self._compute.migrations(server.id)), None)
        if newest is None or newest.migration_type not in types or newest.status in _ENDED:
            return None
        return newest

    def _end_of_live(self, server: Server, moving: Migration, what: str, stop: StopSignal) -> str:
        try:
            self._compute.wait(server.id, lambda s: task_of(s) is None, stop)
        except WaitStopped:
            self.abort(server.id)
            self._compute.wait(server.id, lambda s: task_of(s) is None, _NEVER)
        record = self._ended(server, moving)
        if record.status == "cancelled":
            raise ActionFailed(f"{what} was stopped: Nova cancelled migration {moving.id}")
        return self._moved_to(server, record, what)

    def _confirmed(self, server: Server, moving: Migration, what: str, stop: StopSignal) -> str:
        """Wait for a cold move or a resize, and confirm it; a stop undoes it."""

        def has_arrived(found: Server) -> bool:
            return task_of(found) is None

        try:
            found = self._compute.wait(server.id, has_arrived, stop)
        except WaitStopped:
            found = self._compute.wait(server.id, has_arrived, _NEVER)
        if found is None:
            raise ActionFailed(f"{what} failed: {server.name} was deleted meanwhile")
        if found.status == WAITS_FOR_CONFIRMATION:
            nova, undo = self._nova, stop.is_set()
            answer = nova.revert_server_resize if undo else nova.confirm_server_resize
            self._answer(found, what, answer)
            self._compute.wait(
                server.id,
                lambda s: task_of(s) is None and s.status != WAITS_FOR_CONFIRMATION,
                _NEVER,
            )
        record = self._ended(server, moving)
        if record.status == "reverted":
            raise ActionFailed(f"{what} was stopped, and undone (migration {moving.id})")
        return self._moved_to(server, record, what)

    def _answer(self, server: Server, what: str, answer: Callable[[str], object]) -> None:
        """Confirm or revert; Nova may have confirmed it a moment before by itself."""

        def has_begun() -> bool:
            now = self._compute.server(server.id)
            return now is None or now.status != WAITS_FOR_CONFIRMATION or now.task_state is not None

        try:
            self._compute.calls.change(what, lambda: answer(server.id), _NEVER, has_begun)
        except ActionFailed:
            if not has_begun():
                raise

    def _moved_to(self, server: Server, record: Migration, what: str) -> str:
        now = self._compute.server(server.id)
        if now is not None and record.status in _DONE:
            return str(now.compute_host)
        otherwise = f"its migration record {record.id} is {record.status}"
        raise ActionFailed(f"{what} failed: {self._compute.reason(now or server, otherwise)}")

    def _ended(self, server: Server, moving: Migration) -> Migration:
        """Return the record of a move when it has an end state; raises ActionFailed."""

        def ended() -> Migration | None:
            for record in self._compute.migrations(server.id):
                if record.id == moving.id:
                    return record if record.status in _ENDED else None
            return None

        record = self._looked_for(ended)
        if record is None:
            raise ConnectionError(f"migration {moving.id} of {server.name} has no end on record")
        return record

    def _looked_for(self, find: Callable[[], Migration | None]) -> Migration | None:
        for _ in range(_LOOKS):
            found = find()
            if found is not None:
                return found
            _NEVER.wait(_BETWEEN_S)
        return None

    def _of_running(
        self, server_id: str, what: str, call: Callable[[Migration, str], object]
    ) -> bool:
        """Make a call about the running migration of a server; return False if there is none."""
        calls = self._compute.calls
        for migration in calls.read(lambda: list(self._nova.server_migrations(server_id))) or []:
            if migration.status in _RUNNING:
                calls.change(what, partial(call, migration, server_id), _NEVER)
                return True
        return False
