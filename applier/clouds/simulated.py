# SPDX-License-Identifier: Apache-2.0
"""A simulated cloud in one file: hosts, instances and volumes to try plans on.

An operation reserves capacity when it begins, waits without holding a lock, and changes the cloud
when it ends. If it is stopped, fails, or its process dies, the cloud is not changed. Operations
have no ids, so nothing is passed to ``output``.
"""
# ruff: noqa: ARG002

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from applier.clouds import simulated_capacity, simulated_document, simulated_operations
from applier.clouds.simulated_document import ONGOING, ROOM, World
from applier.clouds.simulated_operations import CloudOperation
from applier.clouds.world_file import WorldFile, born
from applier.contracts import Print, StopSignal, silent
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed, ConfigurationError

#: No instance or volume has a task: an operation ends with the process that began it, so that no
#: later attempt has to wait for it.
_IDLE: Mapping[str, Any] = {"task": None}


class SimulatedCloud(Cloud):
    """A cloud in the file ``path``, for any number of threads and processes at once.

    Operations take the seconds in its ``durations``, divided by ``speed``. If the file
    does not exist, it is made from the packaged small cloud. A damaged file raises
    ConfigurationError.
    """

    IS_REAL = False

    def __init__(self, path: str | os.PathLike[str], *, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ConfigurationError(f"the speed of a simulated cloud is above 0, not {speed:g}")
        self._file = WorldFile(path)
        self._speed = speed

    @property
    def name(self) -> str:
        """The same for all files, so that a plan runs on another simulated cloud as well."""
        return "simulated"

    @classmethod
    def reset(
        cls,
        path: str | os.PathLike[str],
        source: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    ) -> None:
        """Write a fresh cloud from a mapping, a YAML or JSON file, or the packaged small cloud.

        Raises ConfigurationError, with a line for each mistake, and then changes nothing. Ongoing
        operations fail at their end.
        """
        WorldFile(path).replace(simulated_document.read(source))

    def snapshot(self) -> dict[str, Any]:
        """Return the whole cloud, with the used and free capacity of hosts and pools."""
        world = self._file.read()
        for name, free in simulated_capacity.free_on_hosts(world).items():
            host = world["hosts"][name]
            host["free"] = free
            host["used"] = {room: host[room] - free[room] for room in ROOM}
        for name, pool in world["pools"].items():
            pool["free_gb"] = simulated_capacity.free_in_pool(world, name)
            pool["used_gb"] = pool["size_gb"] - pool["free_gb"]
        return world

    def inject(self, fault: Mapping[str, Any]) -> None:
        """Add a fault: ``operation, target, times, kind, message, seconds``.

        ``operation`` is migrate, resize, stop, start, shelve, create, delete, service, power,
        volume_migrate or ``*``; ``target`` an instance, volume or host by uuid or unique name, or
        ``*`` (the default); ``times`` a number, or None for always (the default). ``kind`` is
        ``fail`` (the default: ActionFailed with the message, after ``seconds``), ``error``
        (ConnectionError, likewise), ``slow`` (``seconds`` longer) or ``hang`` (until a stop).
        Raises ConfigurationError.
        """
        with self._file.changing() as world:
            world["faults"].append(simulated_document.complete_fault(world, fault))

    def instance_named(self, name: str) -> str | None:
        return simulated_operations.named(self._file.read(), name)

    def _fact(self, table: str, key: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._file.read()[table].get(key)
        more = {"flavors": {"name": key}, "instances": _IDLE, "volumes": _IDLE}.get(table, {})
        return found and {**more, **found}

    def facts(self) -> Mapping[str, Any]:
        # A service is up if its host is on.
        at, world = datetime.now(UTC), self._file.read()
        free = simulated_capacity.free_on_hosts(world)
        hosts = world["hosts"]
        return {
            "cloud": self.name,
            "at": at.isoformat(timespec="seconds"),
            "instances": {uuid: {**i, **_IDLE} for uuid, i in world["instances"].items()},
            "hosts": {name: {**host, "free": free[name]} for name, host in hosts.items()},
            "services": {
                name: {**service, "state": "up" if hosts[name]["power"] == "on" else "down"}
                for name, service in world["services"].items()
            },
            "volumes": {uuid: {**v, **_IDLE} for uuid, v in world["volumes"].items()},
            "flavors": world["flavors"],
            "server_groups": world["server_groups"],
        }

    def migrate(
        self,
        instance_id: str,
        destination: str | None,
        live: bool,
        stop: StopSignal,
        output: Print = silent,
    ) -> str:
        work = self._do(
            lambda w: simulated_operations.migrate(w, instance_id, destination, live), stop
        )
        moved = work.result["instances"][instance_id] or {}
        return str(moved["host"])

    def resize(
        self, instance_id: str, flavor: str, stop: StopSignal, output: Print = silent
    ) -> None:
        self._do(lambda w: simulated_operations.resize(w, instance_id, flavor), stop)

    def set_instance_status(
        self, instance_id: str, status: str, stop: StopSignal, output: Print = silent
    ) -> None:
        self._do(lambda w: simulated_operations.set_instance_status(w, instance_id, status), stop)

    def create_instance(
        self, name: str, wanted: Mapping[str, Any], stop: StopSignal, output: Print = silent
    ) -> str:
        """Create an instance; return its uuid. Of ``wanted`` only the flavor is used."""
        fresh, flavor = str(uuid.uuid4()), wanted.get("flavor")
        self._do(lambda w: simulated_operations.create_instance(w, fresh, name, flavor), stop)
        return fresh

    def delete_instance(self, instance_id: str, stop: StopSignal, output: Print = silent) -> None:
        self._do(lambda w: simulated_operations.delete_instance(w, instance_id), stop)

    def set_service_status(
        self, host: str, status: str, reason: str | None, stop: StopSignal, output: Print = silent
    ) -> None:
        self._do(lambda w: simulated_operations.set_service_status(w, host, status, reason), stop)

    def set_host_power(
        self, host: str, power: str, stop: StopSignal, output: Print = silent
    ) -> None:
        self._do(lambda w: simulated_operations.set_host_power(w, host, power), stop)

    def migrate_volume(
        self,
        volume_id: str,
        pool: str | None,
        volume_type: str | None,
        stop: StopSignal,
        output: Print = silent,
    ) -> None:
        self._do(
            lambda w: simulated_operations.migrate_volume(w, volume_id, pool, volume_type), stop
        )

    def _do(self, begin: Callable[[World], CloudOperation], stop: StopSignal) -> CloudOperation:
        with self._file.changing() as world:
            work = begin(world)
            simulated_operations.refuse_conflicts(world, work)
            fault = simulated_operations.take_fault(world, work)
            entry = _entry(work)
            world["ongoing"].append(entry)
        try:
            self._take_time(work, fault, stop)
        except BaseException:  # whatever ended it, the operation is not left as ongoing
            with self._file.changing() as world:
                _release(world, entry)
            raise
        with self._file.changing() as world:
            if not _release(world, entry):
                raise ActionFailed(f"{work.what} failed: the cloud was reset meanwhile")
            simulated_operations.commit(world, work)
        return work

    def _take_time(
        self, work: CloudOperation, fault: Mapping[str, Any] | None, stop: StopSignal
    ) -> None:
        kind = fault["kind"] if fault else None
        seconds = work.seconds
        if fault and kind in ("fail", "error"):
            seconds = fault["seconds"]
        elif fault and kind == "slow":
            seconds += fault["seconds"]
        if stop.wait(None if kind == "hang" else seconds / self._speed):
            raise ActionFailed(f"{work.what} was stopped")
        if fault and kind in ("fail", "error"):
            text = fault["message"] or f"{work.what} failed (a simulated fault)"
            raise ActionFailed(text) if kind == "fail" else ConnectionError(text)


def _entry(work: CloudOperation) -> dict[str, Any]:
    """Return the entry of an ongoing operation in the file: what it locks, and its process."""
    pid = os.getpid()
    owner = {"id": uuid.uuid4().hex, "pid": pid, "born": born(pid)}
    return owner | {key: getattr(work, key) for key in ONGOING if key not in owner}


def _release(world: World, entry: Mapping[str, Any]) -> bool:
    """Remove an entry from the ongoing ones; return False if it is not among them."""
    before = len(world["ongoing"])
    world["ongoing"] = [other for other in world["ongoing"] if other["id"] != entry["id"]]
    return len(world["ongoing"]) < before
