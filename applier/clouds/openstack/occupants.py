# SPDX-License-Identifier: Apache-2.0
"""Refuses to switch off a host while servers run on it or move to it."""

from __future__ import annotations

from applier.clouds.openstack.compute import CELL_IS_DOWN, Compute, Migration
from applier.clouds.openstack.servers import Server, task_of
from applier.errors import ActionFailed
from planner.errors import shown

#: The statuses and the power states of servers whose memory would be lost.
_RUNS = {"ACTIVE", "PAUSED", "RESCUE", "PASSWORD", "VERIFY_RESIZE"}
_RUNNING, _PAUSED = 1, 3
#: The statuses of a migration that has ended, or waits for its confirmation.
_ENDED = {"completed", "done", "confirmed", "reverted", "error", "failed", "cancelled", "finished"}


def must_not_run(compute: Compute, host: str, what: str) -> None:
    """Raise ActionFailed with the names of the instances that run on a host or move to it.

    It is also raised if Nova cannot know them all: see :func:`_must_be_known`.
    """
    nova = compute.nova
    _must_be_known(compute, host, what)
    servers = compute.calls.read(lambda: list(nova.servers(all_projects=True, compute_host=host)))
    running = sorted(str(server.name) for server in servers or () if _runs(server))
    if running:
        raise ActionFailed(f"{what} was refused: {host} still runs {', '.join(shown(running))}")
    records = compute.calls.read(lambda: list(nova.migrations(host=host)))
    # A cell that does not answer is left out of both lists: it must have answered before and after.
    _must_be_known(compute, host, what)
    coming = {record.server_id for record in records or () if _comes(record, host)}
    # A record without an end may be left of a move that Nova broke off when it died.
    moved = [server for server in map(compute.server, coming) if server and task_of(server)]
    if moved:
        names = ", ".join(shown(sorted(str(server.name) for server in moved)))
        raise ActionFailed(f"{what} was refused: on the way to {host}: {names}")


def _must_be_known(compute: Compute, host: str, what: str) -> None:
    """Raise ActionFailed unless Nova has a compute service on a host, and its cell answers.

    Nova may have the host under another name.
    """
    services = compute.calls.read(
        lambda: list(compute.nova.services(binary="nova-compute", host=host))
    )
    if not services:
        raise ActionFailed(f"{what} was refused: Nova has no host {host} to ask for its instances")
    if services[0].status == CELL_IS_DOWN:
        raise ActionFailed(
            f"{what} was refused: Nova cannot read the instances of {host}: its cell does not "
            "answer"
        )


def _runs(server: Server) -> bool:
    is_up = server.status in _RUNS or server.power_state in (_RUNNING, _PAUSED)
    return is_up or task_of(server) is not None


def _comes(record: Migration, host: str) -> bool:
    return record.dest_compute == host and record.status not in _ENDED
