# SPDX-License-Identifier: Apache-2.0
"""Reads the state of a volume of Cinder: its task, and whether a move or retype is over.

The migration status of a volume keeps the result of its last move, whatever is done later. It is
None for a moment while a copied volume takes the place of the old one: the move is not over then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
