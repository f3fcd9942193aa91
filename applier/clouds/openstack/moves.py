# SPDX-License-Identifier: Apache-2.0
"""Moves and resizes servers of Nova.

A move has succeeded if its migration record has a status of success. That the server is ACTIVE
does not count: after a failed move it is ACTIVE too, on its old host. Nova may update the record
later than the server, so both are waited for. A move that is under way already is waited for and
not begun again, because an earlier attempt may have begun it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from applier.clouds.openstack.compute import Compute, Migration
from applier.clouds.openstack.server_fields import (
    WAITS_FOR_CONFIRMATION,
    Server,
    flavor_of,
    task_of,
)
from applier.clouds.openstack.state_waits import WaitStopped
from applier.contracts import Print, StopSignal, silent
from applier.errors import ActionFailed

_DONE = {"completed", "done", "confirmed"}
#: The statuses of a migration record that does not change any more.
ENDED = _DONE | {"error", "failed", "cancelled", "reverted"}
#: The types of migration records of moves; a resize has one as well.
_LIVE, _COLD, _RESIZE = "live-migration", "migration", "resize"
#: The statuses of a live migration that can be cancelled or completed.
_RUNNING = {"queued", "preparing", "running"}
#: The status of a record that Nova takes again for the next cold move or resize.
_PREPARED = "pre-migrating"
#: The status of a record whose server waits for its confirmation.
FINISHED = "finished"
#: The tasks that Nova gives a server before it makes the record of a move or resize.
_BEGINS = {"migrating", "resize_prep"}
#: How many times the records are read until one has appeared or ended, and the seconds in between.
_LOOKS, _BETWEEN_S = 40, 0.5
_NEVER = threading.Event()


class Moves:
    """Moves and resizes servers, and completes live migrations."""

    def __init__(self, compute: Compute) -> None:
        self._compute, self._nova = compute, compute.nova

    def migrate(
        self,
        server_id: str,
        destination: str | None,
        live: bool,
        stop: StopSignal,
        output: Print = silent,
    ) -> str:
        """Move a server, and wait for the end of the move; return its new host.

        The scheduler of Nova checks the destination: the move is never forced. Once ``stop`` is
        set, a live migration is cancelled and a cold one reverted, if Nova still can.
        """
        server, moving = self._under_way(server_id, (_LIVE, _COLD))
        what = f"the move of {server.name}" + (f" to {destination}" if destination else "")
        if moving is None and task_of(server) is not None:
            server, moving = self._settled(server, (_LIVE, _COLD), stop, what)
        if moving is None:
            begin = partial(self._nova.migrate_server, server, host=destination)
            if live:
                call = self._nova.live_migrate_server
                begin = partial(call, server, host=destination, block_migration="auto")
            moving = self._begun(server, what, begin, stop)
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

    def resize(self, server_id: str, flavor: str, stop: StopSignal, output: Print = silent) -> None:
        """Change the flavor of a server, and confirm it; revert it once ``stop`` is set."""
        wanted = self._compute.calls.read(lambda: self._nova.find_flavor(flavor))
        server, moving = self._under_way(server_id, (_RESIZE,))
        what = f"the resize of {server.name} to {flavor}"
        if wanted is None:
            raise ActionFailed(f"there is no flavor {flavor}")
        if moving is None and task_of(server) is not None:
            server, moving = self._settled(server, (_RESIZE,), stop, what)
        if moving is None:
            begin = partial(self._nova.resize_server, server, wanted.id)
            moving = self._begun(server, what, begin, stop)
        output(f"{what}: migration {moving.id}\n")
        self._compute.print_request(server, output)
        self._confirmed(server, moving, what, stop)
        now = flavor_of(self._compute.existing(server_id))
        if now != wanted.name:
            raise ActionFailed(f"{what} failed: another resize made it {now}")

    def force_complete(self, server_id: str) -> None:
        """Request that Nova completes the live migration of a server at once, by pausing it.

        Raises ActionFailed if none is running, or if Nova refuses.
        """
        call = self._nova.force_complete_server_migration
        if not self._of_running(server_id, "the completion", call):
            raise ActionFailed("no live migration of it is running")

    def _settled(
        self, server: Server, types: tuple[str, ...], stop: StopSignal, what: str
    ) -> tuple[Server, Migration | None]:
        """Wait until a server has no task; return the server, and the record of a move of it.

        That move was the task, or began during the wait; None if it was of none of these types.
        """
        known = self._newest(server.id)
        try:
            self._compute.settled(server, stop)
        except WaitStopped as stopped:
            raise ActionFailed(f"{what} was stopped before it began") from stopped
        server, moving = self._under_way(server.id, types)
        if moving is None:
            newer = self._newer(server.id, known)
            moving = newer if newer is not None and newer.migration_type in types else None
        return server, moving

    def _begun(
        self, server: Server, what: str, begin: Callable[[], object], stop: StopSignal
    ) -> Migration:
        """Begin a move, and return its migration record."""
        new = partial(self._newer, server.id, self._newest(server.id))
        self._compute.calls.change(what, begin, stop, lambda: new() is not None)
        found = self._looked_for(new)
        if found is None:
            now = self._compute.existing(server.id)
            if task_of(now) in _BEGINS:
                raise ConnectionError(f"{what} has begun, and has no migration record yet")
            reason = self._compute.reason(now, "there is no record")
            raise ActionFailed(f"{what} failed: {reason}")
        return found

    def _newest(self, server_id: str) -> Migration | None:
        return next(iter(self._compute.migrations(server_id)), None)

    def _newer(self, server_id: str, than: Migration | None) -> Migration | None:
        """Return the newest record of a server if it is newer than another; else None.

        A record that was prepared before, and is used now, counts as newer.
        """
        newest = self._newest(server_id)
        if newest is None or than is None or int(newest.id) > int(than.id):
            return newest
        is_used = than.status == _PREPARED and newest.status != _PREPARED
        return newest if is_used else None

    def _under_way(self, server_id: str, types: tuple[str, ...]) -> tuple[Server, Migration | None]:
        """Return a server, and the record of the move or resize of it that is under way.

        The record is None if there is none of these types.
        """
        newest = self._newest(server_id)
        server = self._compute.existing(server_id)
        if newest is None or newest.status in ENDED:
            if task_of(server) not in _BEGINS:
                return server, None
            newest = self._looked_for(partial(self._newer, server_id, newest))
        if newest is None or newest.migration_type not in types:
            return server, None
        if task_of(server) is None and server.status != WAITS_FOR_CONFIRMATION:
            newest = self._just_ended(server, newest)
        return server, newest

    def _just_ended(self, server: Server, moving: Migration) -> Migration | None:
        """Return the record of a move of a server that has no task any more, once it has ended.

        None if it does not end: Nova has died meanwhile, and left it so.
        """
        if server.compute_host == moving.dest_compute:
            return self._looked_for(partial(self._end_of, server.id, moving))
        return self._end_of(server.id, moving)

    def _end_of_live(self, server: Server, moving: Migration, what: str, stop: StopSignal) -> str:
        try:
            self._compute.idle(server.id, stop)
        except WaitStopped:
            # Nova cancels a migration only after it has chosen a host.
            self._compute.wait(
                server.id, lambda s: task_of(s) is None or self._cancelled(s.id), _NEVER
            )
            self._compute.idle(server.id, _NEVER)
        record = self._ended(server, moving)
        if record.status == "cancelled":
            raise ActionFailed(f"{what} was stopped: Nova cancelled migration {moving.id}")
        return self._moved_to(server, record, what)

    def _cancelled(self, server_id: str) -> bool:
        """Request that Nova cancels the live migration of a server; return False if none runs.

        If Nova refuses, the migration goes on, and True is returned.
        """
        try:
            return self._of_running(server_id, "the abort", self._nova.abort_server_migration)
        except ActionFailed:
            return True

    def _confirmed(self, server: Server, moving: Migration, what: str, stop: StopSignal) -> str:
        """Wait for a cold move or a resize, and confirm it, or revert it once ``stop`` is set.

        Returns the host of the server.
        """
        try:
            found = self._compute.idle(server.id, stop)
        except WaitStopped:
            found = self._compute.idle(server.id, _NEVER)
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
        """Confirm or revert a move by ``answer``; Nova may just have confirmed it by itself."""

        def has_begun() -> bool:
            now = self._compute.server(server.id)
            if now is None or now.status != WAITS_FOR_CONFIRMATION or now.task_state is not None:
                return True
            # While it confirms a move, Nova changes the record at once, and the server at the end.
            record = self._newest(server.id)
            return record is not None and record.status != FINISHED

        try:
            self._compute.calls.change(
                what, lambda: has_begun() or answer(server.id), _NEVER, has_begun
            )
        except ActionFailed:
            if not has_begun():
                raise

    def _moved_to(self, server: Server, record: Migration, what: str) -> str:
        now = self._compute.server(server.id)
        if now is not None and record.status in _DONE:
            return str(now.compute_host)
        otherwise = f"its migration record {record.id} is {record.status}"
        why = self._compute.reason(now or server, otherwise)
        left = f"; {now.name} is in ERROR now" if now is not None and now.status == "ERROR" else ""
        raise ActionFailed(f"{what} failed: {why}{left}")

    def _ended(self, server: Server, moving: Migration) -> Migration:
        """Return the record of a move once it has ended; raises ConnectionError if it does not."""
        record = self._looked_for(partial(self._end_of, server.id, moving))
        if record is None:
            raise ConnectionError(f"migration {moving.id} of {server.name} has no end on record")
        return record

    def _end_of(self, server_id: str, moving: Migration) -> Migration | None:
        """Return the record of a move if it has ended; else None."""
        for record in self._compute.migrations(server_id):
            if record.id == moving.id:
                return record if record.status in ENDED else None
        return None

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
