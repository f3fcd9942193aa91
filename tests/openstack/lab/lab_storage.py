# SPDX-License-Identifier: Apache-2.0
"""The storage of the lab's Cinder: sparse files, moved as the metadata of volumes says.

=====================  ====================================================================
lab_hold = PATH        a copy, or a move within a backend, waits until this file is gone
lab_copy = fail        the copy fails
lab_create = fail      no volume can be made on the destination of a copy
lab_assist = fail      a move within a backend fails
=====================  ====================================================================

The driver moves a volume between the pools of its backend; between backends Cinder copies.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from cinder import context, objects
from cinder.volume import driver

POOLS = ("p1", "p2")
_GIB = 1 << 30


class LabDriver(driver.VolumeDriver):
    """One backend with two pools; ``root`` is the folder of all backends."""

    VERSION = "1.0"
    root = Path()

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.backend = self.configuration.config_group

    def check_for_setup_error(self):
        for pool in POOLS:
            (self.root / self.backend / pool).mkdir(parents=True, exist_ok=True)

    def create_volume(self, volume):
        if volume.migration_status and _wanted(volume, "lab_create") == "fail":
            raise RuntimeError("lab_create=fail")
        with self._path(volume.host, volume).open("wb") as file:
            file.truncate(volume.size * _GIB)

    def delete_volume(self, volume):
        self._path(volume.host, volume).unlink(missing_ok=True)

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        path = str(self._path(volume.host, volume))
        return {"driver_volume_type": "local", "data": {"device_path": path}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def migrate_volume(self, context, volume, host):
        """Move a volume to another pool of this backend; return whether it was moved."""
        if host["host"].split("#")[0] != volume.host.split("#")[0]:
            return False, None
        _hold(volume)
        if _wanted(volume, "lab_assist") == "fail":
            raise RuntimeError("lab_assist=fail")
        os.rename(self._path(volume.host, volume), self._path(host["host"], volume))
        return True, None

    def before_volume_copy(self, context, src_vol, dest_vol, remote=None):
        _hold(src_vol)
        if _wanted(src_vol, "lab_copy") == "fail":
            raise RuntimeError("lab_copy=fail")

    def after_volume_copy(self, context, src_vol, dest_vol, remote=None):
        pass

    def retype(self, context, volume, new_type, diff, host):
        """Change the type where the volume is; return whether that was possible."""
        return host["host"] == volume.host, None

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": self.backend,
            "vendor_name": "lab",
            "driver_version": self.VERSION,
            "storage_protocol": "file",
            "sparse_copy_volume": True,
            "pools": [self._stats_of(pool) for pool in POOLS],
        }

    def _stats_of(self, pool):
        return {
            "pool_name": pool,
            "volume_backend_name": self.backend,
            "total_capacity_gb": 1000,
            "free_capacity_gb": 900 - self._stored_gb(pool),
            # Watcher reads these of each pool.
            "provisioned_capacity_gb": 100,
            "total_volumes": 0,
            "reserved_percentage": 0,
            "QoS_support": False,
            "thin_provisioning_support": False,
        }

    def _stored_gb(self, pool):
        files = (self.root / self.backend / pool).iterdir()
        return sum(file.stat().st_size for file in files) // _GIB

    def _path(self, host, volume):
        """Return the file of a volume on a host such as ``lab@b1#p1``."""
        backend, pool = host.split("@")[1].split("#")
        return self.root / backend / pool / volume.name


def _wanted(volume, name):
    """Return what the metadata of a volume says, or of the one whose copy it is."""
    if (volume.migration_status or "").startswith("target:"):
        source = volume.migration_status.split(":")[1]
        volume = objects.Volume.get_by_id(context.get_admin_context(), source)
    return volume.metadata.get(name)


def _hold(volume):
    path = _wanted(volume, "lab_hold")
    while path and Path(path).exists():
        time.sleep(0.05)


# Cinder loads drivers by the path of a class of its own.
driver.LabDriver = LabDriver
