# SPDX-License-Identifier: Apache-2.0
"""Runs Cinder, the real one, in one process on the loopback.

``python cinder_in_one_process.py FOLDER PORT``, by a Python that has it. Real are its API, its
scheduler, a volume service for each backend, its tables, its RPC, which stays within the process,
and the copies of volumes. The storage is that of ``lab_storage``; Keystone is a stand-in. The ports
are PORT for Keystone and the next for Cinder. FOLDER is empty, or what an earlier process left;
``clouds.yaml`` in it is for clients. READY is printed when both answer.

Pools are lab@b1#p1, lab@b1#p2, lab@b2#p1 and lab@b2#p2. The type ``plain`` may be anywhere, ``t1``
on b1, ``t2`` on b2, ``tnone`` nowhere.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import cinder_configuration
import client_configuration
from nova_in_one_process import serialize_writers
from stand_ins import Keystone
from wsgi_serving import serve

TYPES = {"plain": None, "t1": "b1", "t2": "b2", "tnone": "nowhere"}


def main(folder, port):
    """Start everything and serve until the process is ended."""
    folder, port = Path(folder), int(port)
    keystone, cinder = (f"http://127.0.0.1:{port + k}" for k in range(2))
    catalog = [
        ("identity", "keystone", f"{keystone}/v3"),
        ("block-storage", "cinder", f"{cinder}/v3"),
    ]
    serve(Keystone(keystone, catalog), port)
    for name in ("lock", "coordination"):
        (folder / name).mkdir(exist_ok=True)
    etc = Path(sys.prefix) / "etc/cinder"
    configure(cinder_configuration.write(folder, etc, keystone))
    share_one_process()
    start_services(folder / "volumes")
    make_types()
    serve(application(), port + 1)
    client_configuration.write(folder, keystone)
    print("READY", flush=True)
    threading.Event().wait()


def configure(path):
    """Let Cinder read its configuration, before anything of it is used."""
    os.environ["OS_CINDER_DISABLE_EVENTLET_PATCHING"] = "true"
    from cinder import monkey_patch

    monkey_patch.patch()
    from cinder import coordination, i18n, objects, rpc, version
    from cinder.common import config
    from cinder.db import migration
    from oslo_config import cfg
    from oslo_log import log

    i18n.enable_lazy()
    objects.register_all()
    cfg.CONF(["--config-file", str(path)], project="cinder", version=version.version_string())
    log.setup(cfg.CONF, "cinder")
    config.set_middleware_defaults()
    serialize_writers()
    migration.db_sync()
    coordination.COORDINATOR.start()
    rpc.init(cfg.CONF)


def share_one_process():
    """Let several services share a process without privileges."""
    import cinder.privsep
    import os_brick.privileged
    from cinder import service, utils

    original, reports = service.Service.report_state, threading.Lock()

    def report_state(self):
        # The id is that of the class, where the service that was started last has written its own.
        with reports:
            service.Service.service_id = self.origin_service_id
            original(self)

    service.Service.report_state = report_state
    # No sudo, and no process with privileges: the files are our own.
    utils.get_root_helper = lambda: "env"
    cinder.privsep.sys_admin_pctxt.set_client_mode(False)
    os_brick.privileged.default.set_client_mode(False)
    os_brick.privileged.brick_privsep_hide_output.set_client_mode(False)


def start_services(root):
    """Start a volume service for each backend, then the scheduler, which waits for them."""
    import lab_storage
    from cinder import service
    from cinder.common import constants

    lab_storage.LabDriver.root = root

    def start(binary, **words):
        service.Service.create(binary=binary, **words).start()

    for name in cinder_configuration.BACKENDS:
        words = {"host": f"lab@{name}", "service_name": name, "coordination": True}
        start(constants.VOLUME_BINARY, **words)
    start(constants.SCHEDULER_BINARY, host="lab")


def make_types():
    """Make the volume types, unless an earlier process has done so."""
    from cinder import context, exception
    from cinder.volume import volume_types

    for name, backend in TYPES.items():
        bound = {"volume_backend_name": backend} if backend else {}
        with suppress(exception.VolumeTypeExists):
            volume_types.create(context.get_admin_context(), name, bound)


def application():
    """Return Cinder's API."""
    from oslo_config import cfg
    from oslo_service import wsgi

    return wsgi.Loader(cfg.CONF).load_app("osapi_volume")


if __name__ == "__main__":
    main(*sys.argv[1:])
