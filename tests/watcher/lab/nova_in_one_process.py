# SPDX-License-Identifier: Apache-2.0
"""Runs Nova and Placement, the real ones, in one process on the loopback.

``python nova_in_one_process.py FOLDER PORT COMPUTES WATCHER_URL [CINDER_URL]``, by a Python that
has both. Real are Nova's API, conductor, scheduler and as many computes as asked for, called cmp1,
cmp2, ..., Placement, their tables and their RPC, which stays within the process. The hypervisor is
that of ``lab_hypervisor``; what else they need stands in ``stand_ins``. The ports are PORT for
Keystone and the next six for Nova, Placement, Glance, Neutron, Cinder and Prometheus. FOLDER is
empty; ``clouds.yaml`` in it is for clients. With CINDER_URL, that is the Cinder of the catalog.
READY is printed when all of them answer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections import defaultdict
from pathlib import Path

import nova_configuration
from stand_ins import Glance, Keystone, Prometheus, cinder, made_id, neutron
from wsgi_serving import serve

SERVICES = ("keystone", "nova", "placement", "glance", "neutron", "cinder", "prometheus")
FLAVORS = (
    ("m1.tiny", 1, 512, 1),
    ("m1.small", 1, 2048, 10),
    ("m1.medium", 2, 4096, 20),
    ("m1.large", 4, 8192, 40),
)


def main(folder, port, computes, watcher_url, cinder_url=None):
    """Start everything and serve until the process is ended."""
    folder, port, computes = Path(folder), int(port), int(computes)
    urls = {name: f"http://127.0.0.1:{port + k}" for k, name in enumerate(SERVICES)}
    serve_stand_ins(port, urls, watcher_url, cinder_url)
    serve(Prometheus([f"cmp{number}" for number in range(1, computes + 1)]), port + 6)
    paste = Path(sys.prefix) / "etc/nova/api-paste.ini"
    nova_configuration.write(folder, paste, urls)
    (folder / "lock").mkdir()
    configure_nova(folder / "nova.conf")
    serve(placement_application(folder / "placement.conf"), port + 2)
    context = make_tables(folder)
    start_services(computes, context)
    make_flavors(context)
    serve(nova_application(), port + 1)
    print("READY", flush=True)
    threading.Event().wait()


def serve_stand_ins(port, urls, watcher_url, cinder_url):
    """Serve what is not real."""
    catalog = [
        ("identity", "keystone", f"{urls['keystone']}/v3"),
        ("compute", "nova", f"{urls['nova']}/v2.1"),
        ("placement", "placement", urls["placement"]),
        ("image", "glance", urls["glance"]),
        ("network", "neutron", urls["neutron"]),
        ("block-storage", "cinder", f"{cinder_url or urls['cinder']}/v3"),
        ("infra-optim", "watcher", watcher_url),
    ]
    serve(Keystone(urls["keystone"], catalog), port)
    serve(Glance(), port + 3)
    serve(neutron, port + 4)
    serve(cinder, port + 5)


def configure_nova(path):
    """Let Nova read its configuration, before anything of it is used."""
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "1"
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    import lab_hypervisor  # noqa: F401 - gives Nova its driver
    import nova.conf
    import os_vif
    from nova import config, objects
    from oslo_log import log
    from oslo_service import opts

    serialize_writers()
    sys.argv = ["nova", "--config-file", str(path)]
    config.parse_args(sys.argv)
    opts.register_service_opts(nova.conf.CONF)
    log.setup(nova.conf.CONF, "nova")
    objects.register_all()
    os_vif.initialize()


def serialize_writers():
    """Let one thread write to a file of SQLite at a time."""
    from oslo_db.sqlalchemy import enginefacade

    locks, guard = defaultdict(threading.RLock), threading.Lock()
    original = enginefacade._TransactionContextManager._transaction_scope

    @contextlib.contextmanager
    def scope(self, context):
        lock = contextlib.nullcontext()
        if self._mode is enginefacade._WRITER:
            with guard:
                lock = locks[str(self.reader.get_engine().url)]
        with lock, original(self, context) as resource:
            yield resource

    enginefacade._TransactionContextManager._transaction_scope = scope


def placement_application(path):
    """Return Placement, with its tables; whoever has a token is an administrator."""
    from oslo_config import cfg
    from oslo_policy import opts as policy_options
    from placement import conf, db_api, deploy
    from placement.db.sqlalchemy import migration

    configuration = cfg.ConfigOpts()
    conf.register_opts(configuration)
    configuration([], project="placement", default_config_files=[str(path)])
    policy_options.set_defaults(configuration, enforce_new_defaults=False)
    db_api.configure(configuration)
    migration.create_schema(db_api.get_placement_engine())
    application = deploy.loadapp(configuration)

    def as_administrator(environ, start_response):
        if environ.get("HTTP_X_AUTH_TOKEN"):
            environ["HTTP_X_AUTH_TOKEN"] = "admin"  # noqa: S105
        return application(environ, start_response)

    return as_administrator


def make_tables(folder):
    """Make Nova's databases and its two cells; return a context."""
    from nova import context, objects
    from nova.db import migration

    migration.db_sync(database="api")
    migration.db_sync(database="main")
    shutil.copy(folder / "cell1.sqlite", folder / "cell0.sqlite")
    administrator = context.get_admin_context()
    for name, uuid, transport in (
        ("cell0", objects.CellMapping.CELL0_UUID, "none:///"),
        ("cell1", made_id("cell1"), "fake:/"),
    ):
        objects.CellMapping(
            context=administrator,
            uuid=uuid,
            name=name,
            transport_url=transport,
            database_connection=f"sqlite:///{folder}/{name}.sqlite?timeout=60",
        ).create()
    return administrator


def start_services(computes, context):
    """Start the conductor, the scheduler and the computes."""
    import nova.conf
    from nova import service
    from nova.compute import manager, rpcapi
    from nova.objects import host_mapping
    from nova.virt import node

    # The computes share a process, so none of them has an identity on the disk.
    node.read_local_node_uuid = lambda: None
    node.write_local_node_uuid = lambda _: None
    manager.ComputeManager._ensure_existing_node_identity = lambda *_: None

    def start(binary, host, **topics):
        nova.conf.CONF.set_override("host", host)
        service.Service.create(binary=binary, host=host, **topics).start()

    start("nova-conductor", "ctl")
    start("nova-scheduler", "ctl")
    topics = {"topic": rpcapi.RPC_TOPIC, "topic_alt": rpcapi.RPC_TOPIC_ALT}
    for number in range(1, computes + 1):
        start("nova-compute", f"cmp{number}", **topics)
    nova.conf.CONF.set_override("host", "ctl")
    host_mapping.discover_hosts(context)


def make_flavors(context):
    """Make the flavors 1 to 4."""
    from nova import objects

    for number, (name, processors, memory, disk) in enumerate(FLAVORS, 1):
        objects.Flavor(
            context=context,
            flavorid=str(number),
            name=name,
            vcpus=processors,
            memory_mb=memory,
            root_gb=disk,
            ephemeral_gb=0,
            swap=0,
            rxtx_factor=1.0,
            disabled=False,
            is_public=True,
        ).create()


def nova_application():
    """Return Nova's API."""
    import nova.conf
    from nova.api import wsgi
    from nova.api.openstack import wsgi_app

    wsgi_app._setup_service(nova.conf.CONF.host, "osapi_compute")
    return wsgi.Loader().load_app("osapi_compute")


if __name__ == "__main__":
    main(*sys.argv[1:])
