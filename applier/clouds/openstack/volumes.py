# SPDX-License-Identifier: Apache-2.0
"""Moves and retypes volumes of Cinder.

Cinder answers before the work is done, has no call that cancels it, and writes the reason of a
failure only to its log. An attached volume is copied by Nova, at the request of Cinder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from openstack import exceptions

from applier.clouds.openstack import volume_states as states
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.state_waits import Following, WaitStopped
from applier.clouds.openstack.volume_states import Volume
from applier.contracts import Print, StopSignal
from applier.errors import ActionFailed


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
        return found and states.view(found)

    def migrate(
        self,
        volume_id: str,
        pool: str | None,
        volume_type: str | None,
        stop: StopSignal,
        output: Print,
    ) -> None:
        """Move a volume to another pool, or else change its type, and wait for the end.

        With a pool, ``volume_type`` is ignored. A task that runs already is waited for first. Does
        nothing if the volume has the pool or the type.
        """
        volume = self._read(volume_id)
        if volume is None:
            raise ActionFailed(f"there is no volume {volume_id}")
        work = self._move(volume, pool) if pool else self._retype(volume, str(volume_type))
        before, volume = volume, self._followed(volume, work.what, states.over(volume), stop)
        if work.is_done(volume):
            return
        if states.is_moving(before) and states.place(before) == states.place(volume):
            raise self._failed(volume, work.what, "what was under way already")
        self._begin(volume, work, stop, output)
        volume = self._followed(volume, work.what, work.over(volume), stop)
        if not work.is_done(volume):
            raise self._failed(volume, work.what)

    def _move(self, volume: Volume, pool: str) -> _Work:
        what = f"the move of volume {states.name_of(volume)} to {pool}"
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
            lambda _: states.is_move_over,
        )

    def _retype(self, volume: Volume, volume_type: str) -> _Work:
        body = {"new_type": volume_type, "migration_policy": "on-demand"}
        return _Work(
            f"the change of volume {states.name_of(volume)} to type {volume_type}",
            {"os-retype": body},
            lambda now: now.volume_type == volume_type,
            states.retype_over,
        )

    def _begin(self, volume: Volume, work: _Work, stop: StopSignal, output: Print) -> None:
        if stop.is_set():
            raise ActionFailed(f"{work.what} was stopped before it began")

        def request() -> str | None:
            response = self._cinder.post(f"/volumes/{volume.id}/action", json=work.body)
            exceptions.raise_from_response(response)
            name: str | None = response.headers.get("x-openstack-request-id")
            return name

        def has_begun() -> bool:
            now = self._read(volume.id)
            return now is None or states.fields(now) != states.fields(volume)

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
            task = states.task_of(stopped.server)
            goes_on = "; Cinder cannot cancel it and goes on" if task else ""
            text = f"{what} was stopped{goes_on} (the volume is {task or stopped.server.status})"
            raise ActionFailed(text) from stopped
        if found is None:
            raise ActionFailed(f"{what} failed: the volume was deleted meanwhile")
        return found

    def _failed(self, volume: Volume, what: str, subject: str = "it") -> ActionFailed:
        return ActionFailed(
            f"{what} failed: {subject} ended, and the volume is {states.described(volume)}. "
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
