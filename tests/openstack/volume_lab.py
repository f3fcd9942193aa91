# SPDX-License-Identifier: Apache-2.0
"""A real Cinder on the loopback, and what tests do with its volumes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environments
from service_process import ServiceProcess

#: The pools, of two backends.
B1P1, B1P2, B2P1, B2P2 = (
    f"lab@{backend}#{pool}" for backend in ("b1", "b2") for pool in ("p1", "p2")
)


class VolumeLab(ServiceProcess):
    """See ``lab/cinder_in_one_process.py``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(environments.CINDER, "cinder_in_one_process.py", folder)
        self._numbers = itertools.count()
        self._hold = folder.with_suffix(".hold")

    @property
    def cinder(self) -> Any:
        """The block storage proxy of openstacksdk."""
        return self.connection.block_storage

    def create(self, kind: str = "plain", pool: str | None = None, **metadata: str) -> Any:
        """Create a volume in a pool, or wherever it fits; return it when it is available."""
        name = f"data-{next(self._numbers)}"
        made = self.cinder.create_volume(size=1, name=name, volume_type=kind, metadata=metadata)
        self.until(lambda: self.volume(made).status == "available", f"{name} available")
        found = self.volume(made)
        if pool not in (None, found.host):
            self.cinder.migrate_volume(found, host=pool)
            self.until(lambda: self.volume(made).migration_status == "success", f"{name} moved")
        return self.volume(made)

    def reset(self) -> None:
        """Delete all volumes; the scheduler of Cinder knows the room that is free then."""
        for volume in self.cinder.volumes():
            self.cinder.delete_volume(volume)
        self.until(lambda: not list(self.cinder.volumes()), "all volumes deleted")
        self.until(lambda: set(self.free_gb().values()) == {900}, "free pools")

    def free_gb(self) -> dict[str, int]:
        """Return how much Cinder's scheduler believes to be free in each pool, of 1000 GB."""
        pools = self.cinder.backend_pools()
        return {pool.name: pool.capabilities["free_capacity_gb"] for pool in pools}

    def volume(self, volume: Any) -> Any:
        """Return a volume as Cinder shows it now."""
        return self.cinder.get_volume(volume.id)

    def place(self, volume: Any) -> tuple[str, str, str, str | None]:
        """Return pool, type, status and migration status of a volume as they are now."""
        now = self.volume(volume)
        return now.host, now.volume_type, now.status, now.migration_status

    def requests(self, volume: Any) -> int:
        """Return how often Cinder was asked to move or retype a volume, or for its next state."""
        log = (self.folder / "cinder.log").read_text(encoding="utf-8", errors="replace")
        return sum("POST" in line and f"{volume.id}/action" in line for line in log.splitlines())

    def asked_for_changes(self) -> bool:
        """Return whether Cinder was asked for all volumes that have changed since some time."""
        log = (self.folder / "cinder.log").read_text(encoding="utf-8", errors="replace")
        return "updated_at=gte" in log

    @contextmanager
    def held(self) -> Iterator[dict[str, str]]:
        """Let no work on volumes with this metadata end before the end of the block."""
        self._hold.touch()
        try:
            yield {"lab_hold": str(self._hold)}
        finally:
            self._hold.unlink()
