# SPDX-License-Identifier: Apache-2.0
"""The hypervisor of the lab: Nova's fake one, steered by the metadata of servers.

=====================  ====================================================================
lab_lm_seconds = 5     a live migration takes 5 s, and reports how far it is
lab_lm = fail          a live migration rolls back: its record says ``failed``
lab_lm_precheck = fail the destination refuses a live migration
lab_resize = fail      a resize or cold migration fails on the destination: ERROR
lab_spawn = fail       a build and an unshelving fail
lab_destroy = fail     the first removal fails: ERROR
lab_power = fail       stop, start and shelve fail
lab_seconds = 5        stop, start, shelve, unshelve, build, resize, cold migration and removal
                       take 5 s longer
lab_hold = FILE        these, and a live migration, take until the file is gone
=====================  ====================================================================

``LAB_VCPUS``, ``LAB_RAM`` (MiB) and ``LAB_DISK`` (GiB) of the environment size the hosts.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from nova import exception
from nova.virt import fake
from stand_ins import made_id


class LabDriver(fake.FakeDriver):
    """One host; ``moves`` are the live migrations that run, by instance.

    ``kept`` are the instances whose removal has failed.
    """

    vcpus = int(os.environ.get("LAB_VCPUS", 16))
    memory_mb = int(os.environ.get("LAB_RAM", 32768))
    local_gb = int(os.environ.get("LAB_DISK", 500))

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self.moves, self.kept = {}, set()

    def get_nodenames_by_uuid(self, refresh=False):
        return {made_id(f"node.{name}"): name for name in self.get_available_nodes()}

    def get_available_resource(self, nodename):
        resource = super().get_available_resource(nodename)
        resource["uuid"] = made_id(f"node.{nodename}")
        return resource

    def spawn(self, context, instance, *args, **kwargs):
        _take_longer(instance)
        if instance.metadata.get("lab_spawn") == "fail":
            raise exception.BuildAbortException(
                instance_uuid=instance.uuid, reason="lab_spawn=fail"
            )
        return super().spawn(context, instance, *args, **kwargs)

    def finish_migration(self, context, migration, instance, *args, **kwargs):
        if instance.metadata.get("lab_resize") == "fail":
            raise RuntimeError("lab_resize=fail")
        return super().finish_migration(context, migration, instance, *args, **kwargs)

    def destroy(self, context, instance, *args, **kwargs):
        _take_longer(instance)
        if instance.metadata.get("lab_destroy") == "fail" and instance.uuid not in self.kept:
            self.kept.add(instance.uuid)
            raise exception.InstanceTerminationFailure(reason="lab_destroy=fail")
        return super().destroy(context, instance, *args, **kwargs)

    def _power(self, instance):
        _take_longer(instance)
        if instance.metadata.get("lab_power") == "fail":
            raise exception.InstancePowerOffFailure(reason="lab_power=fail")

    def power_off(self, instance, timeout=0, retry_interval=0):
        self._power(instance)
        return super().power_off(instance, timeout, retry_interval)

    def power_on(self, context, instance, *args, **kwargs):
        self._power(instance)
        return super().power_on(context, instance, *args, **kwargs)

    def check_can_live_migrate_destination(self, context, instance, *args, **kwargs):
        if instance.metadata.get("lab_lm_precheck") == "fail":
            raise exception.MigrationPreCheckError(reason="lab_lm_precheck=fail")
        return super().check_can_live_migrate_destination(context, instance, *args, **kwargs)

    def live_migration(
        self,
        context,
        instance,
        dest,
        post_method,
        recover_method,
        block_migration=False,
        migrate_data=None,
    ):
        move = self.moves[instance.uuid] = Move()
        move.wait(migrate_data.migration, instance)
        del self.moves[instance.uuid]
        if move.wanted == "abort":
            recover_method(context, instance, dest, migrate_data, migration_status="cancelled")
        elif instance.metadata.get("lab_lm") == "fail":
            recover_method(context, instance, dest, migrate_data)
        else:
            post_method(context, instance, dest, block_migration, migrate_data)

    def live_migration_abort(self, instance):
        self._end(instance, "abort")

    def live_migration_force_complete(self, instance):
        self._end(instance, "force")

    def _end(self, instance, how):
        if instance.uuid in self.moves:
            self.moves[instance.uuid].end(how)

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        self.destroy(context, instance, None)


def _take_longer(instance):
    time.sleep(float(instance.metadata.get("lab_seconds", 0)))
    while _is_held(instance):
        time.sleep(0.05)


def _is_held(instance):
    path = instance.metadata.get("lab_hold")
    return path is not None and Path(path).exists()


class Move:
    """One live migration; ``wanted`` is how somebody asked it to end."""

    def __init__(self):
        self.wanted = None
        self._asked = threading.Event()

    def end(self, how):
        """Let it end now."""
        self.wanted = how
        self._asked.set()

    def wait(self, migration, instance):
        """Return when the move is over; write down how far it is."""
        seconds = float(instance.metadata.get("lab_lm_seconds", 0.2))
        total = instance.flavor.memory_mb << 20
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 or _is_held(instance):
            if self._asked.wait(min(0.25, max(0.05, left))):
                return
            share = max(0.0, end - time.monotonic()) / seconds
            migration.memory_total = total
            migration.memory_processed = int(total * (1 - share))
            migration.memory_remaining = int(total * share)
            migration.disk_total = migration.disk_processed = migration.disk_remaining = 0
            migration.save()


# Nova looks for drivers in its own package.
fake.LabDriver = LabDriver
