# SPDX-License-Identifier: Apache-2.0
"""Moves and retypes volumes of Cinder.

Cinder answers before the work is done, has no call that cancels it, and writes the reason of a
failure only to its log. An attached volume is copied by Nova, at the request of Cinder.

The migration status of a volume keeps the result of its last move, whatever is done later. It is
None for a moment while a copied volume takes the place of the old one: the move is not over then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from applier.clouds.openstack.calls import Calls, request_id
from applier.clouds.openstack.state_waits import Following, WaitStopped
from applier.contracts import Print, StopSignal, silent
from applier.errors import ActionFailed

#: A volume as openstacksdk returns it.
Volume = Any

_RETYPING = "retyping"
#: The statuses that count as tasks: Cinder replaces them by another one without a request.
_TASKS = {
    *("creating", "downloading", "uploading", "attaching", "detaching", "deleting", "extending"),
    *("maintenance", "backing-up", "restoring-backup", "reverting", _RETYPING),
}
_MOVING = {"starting", "migrating", "completing"}
_SUCCESS, _ERROR = "success", "error"


class _Work(NamedTuple):
    """A move or a change of the type: the body of its request, and how its end is recognized.

    ``what`` names it in messages. ``is_done`` returns whether a volume has the wanted pool or type.
    ``over`` takes the volume before the request, and returns a predicate for later states of it:
    whether the work is over, with success or without.
    """

    what: str
    body: Mapping[str, Any]
    is_done: Callable[[Volume], bool]
    over: Callable[[Volume], Callable[[Volume], bool]]


class Volumes:
    """Reads, moves and retypes volumes; ``connection`` is that of openstacksdk."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls
        self._lock = threading.Lock()
        self._following = Following(self._read, self._changed)

    def volume(self, volume_id: str) -> Mapping[str, Any] | None:
        """Return ``name, pool, type, instance, task`` of a volume, None if there is none."""
        found = self._read(volume_id)
        return found and view(found)

    def migrate(
        self,
        volume_id: str,
        pool: str | None,
        volume_type: str | None,
        stop: StopSignal,
        output: Print = silent,
    ) -> None:
        """Move a volume to another pool, or else change its type, and wait for the end.

        With a pool, ``volume_type`` is ignored. A task that runs already is waited for first. Does
        nothing if the volume has the pool or the type.
        """
        volume = self._read(volume_id)
        if volume is None:
            raise ActionFailed(f"there is no volume {volume_id}")
        work = self._move(volume, pool) if pool else self._retype(volume, str(volume_type))
        before, volume = volume, self._followed(volume, work.what, over(volume), stop)
        if work.is_done(volume):
            return
        if is_moving(before) and place(before) == place(volume):
            raise self._failed(volume, work.what, "what was under way already")
        self._begin(volume, work, stop, output)
        volume = self._followed(volume, work.what, work.over(volume), stop)
        if not work.is_done(volume):
            raise self._failed(volume, work.what)

    def _move(self, volume: Volume, pool: str) -> _Work:
        what = f"the move of volume {name_of(volume)} to {pool}"
        if volume.host is None:
            raise ActionFailed(
                f"{what} was refused: only an administrator of the cloud sees where a volume is"
            )
        pools = self._calls.read(lambda: [p.name for p in self._cinder.backend_pools()]) or []
        if pool not in pools:
            known = ", ".join(sorted(pools)) or "none"
            raise ActionFailed(f"{what} was refused: there is no such pool in use; known: {known}")
        body = {"host": pool, "force_host_copy": False, "lock_volume": False}
        return _Work(
            what,
            {"os-migrate_volume": body},
            lambda now: now.host == pool,
            lambda _: is_move_over,
        )

    def _retype(self, volume: Volume, volume_type: str) -> _Work:
        body = {"new_type": volume_type, "migration_policy": "on-demand"}
        return _Work(
            f"the change of volume {name_of(volume)} to type {volume_type}",
            {"os-retype": body},
            lambda now: now.volume_type == volume_type,
            retype_over,
        )

    def _begin(self, volume: Volume, work: _Work, stop: StopSignal, output: Print) -> None:
        def request() -> str | None:
            path = f"/volumes/{volume.id}/action"
            return request_id(self._cinder.post(path, json=work.body))

        def has_begun() -> bool:
            now = self._read(volume.id)
            return now is None or fields(now) != fields(volume)

        name = self._calls.change(work.what, request, stop, has_begun)
        if name is not None:
            output(f"{work.what}: request {name}\n")

    def _followed(
        self, volume: Volume, what: str, is_over: Callable[[Volume], bool], stop: StopSignal
    ) -> Volume:
        """Wait until ``is_over`` returns True for a volume; return the volume.

        Raises ActionFailed if it was deleted, or once ``stop`` is set.
        """
        try:
            found = self._following.wait(volume.id, is_over, stop)
        except WaitStopped as stopped:
            task = task_of(stopped.server)
            goes_on = "; Cinder cannot cancel it and goes on" if task else ""
            text = f"{what} was stopped{goes_on} (the volume is {task or stopped.server.status})"
            raise ActionFailed(text) from stopped
        if found is None:
            raise ActionFailed(f"{what} failed: the volume was deleted meanwhile")
        return found

    def _failed(self, volume: Volume, what: str, subject: str = "it") -> ActionFailed:
        return ActionFailed(
            f"{what} failed: {subject} ended, and the volume is {described(volume)}. "
            "Cinder tells the reason in its log only"
        )

    def _read(self, volume_id: str) -> Volume | None:
        return self._calls.read(lambda: self._cinder.get_volume(volume_id))

    def _changed(self, since: str) -> list[Volume]:
        def read() -> list[Volume]:
            return list(self._cinder.volumes(all_projects=True, updated_at=f"gte:{since}"))

        return self._calls.read(read) or []

    @property
    def _cinder(self) -> Any:
        # The first use of a proxy is not safe in several threads.
        with self._lock:
            if not self._connection.has_service("block-storage"):
                raise ActionFailed("the cloud has no Cinder: its catalog lists no block storage")
            return self._connection.block_storage


def task_of(volume: Volume) -> str | None:
    """Return the task of Cinder on a volume, in Cinder's words, or None."""
    if volume.status in _TASKS:
        return str(volume.status)
    return str(volume.migration_status) if volume.migration_status in _MOVING else None


def view(volume: Volume) -> dict[str, Any]:
    """Return ``name, pool, type, instance, task`` of a volume."""
    attached = [attachment.get("server_id") for attachment in volume.attachments or ()]
    return {
        "name": name_of(volume),
        "pool": volume.host,
        "type": volume.volume_type,
        "instance": next(iter(attached), None),
        "task": task_of(volume),
    }


def name_of(volume: Volume) -> str:
    """Return the name of a volume, or its id if it has none."""
    return volume.name or str(volume.id)


def place(volume: Volume) -> tuple[str | None, str | None]:
    """Return the pool and the type of a volume."""
    return volume.host, volume.volume_type


def fields(volume: Volume) -> tuple[str | None, ...]:
    """Return the fields that a move or a change of the type can change."""
    return (volume.status, volume.migration_status, *place(volume))


def described(volume: Volume) -> str:
    """Return the state of a volume, such as ``available, of type ssd, on a@b#c (error)``."""
    status = f" (migration status {volume.migration_status})" if volume.migration_status else ""
    return f"{volume.status}, of type {volume.volume_type}, on {volume.host}{status}"


def is_moving(volume: Volume) -> bool:
    """Return whether a volume is being moved, or its type is being changed."""
    return volume.status == _RETYPING or volume.migration_status in _MOVING


def is_move_over(volume: Volume) -> bool:
    """Return whether the move that was begun last is over."""
    return volume.migration_status in (_SUCCESS, _ERROR)


def retype_over(before: Volume) -> Callable[[Volume], bool]:
    """Return a predicate for later states of a volume: whether the change of its type is over.

    ``before`` is the volume before the change or during it. A driver that changes the type itself,
    without a copy, may choose another pool, and leaves the migration status as it was.
    """
    is_copied = False

    def is_over(now: Volume) -> bool:
        nonlocal is_copied
        is_copied |= now.migration_status in _MOVING
        if now.status == _RETYPING:
            return False
        return now.host == before.host or now.migration_status == _SUCCESS or not is_copied

    return is_over


def over(volume: Volume) -> Callable[[Volume], bool]:
    """Return a predicate for later states of a volume: whether its present task is over."""
    if volume.status == _RETYPING:
        return retype_over(volume)
    if volume.migration_status in _MOVING:
        return is_move_over
    return lambda now: task_of(now) is None
