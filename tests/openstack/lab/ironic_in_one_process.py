# SPDX-License-Identifier: Apache-2.0
"""Runs Ironic, the real one, in one process on the loopback.

``python ironic_in_one_process.py FOLDER PORT [NOVA_URL]``, by a Python that has it. Real are its
API, its conductor and its tables; a node is a computer that does not exist, whose power is that of
``lab_power``. Keystone is a stand-in, whose catalog has a Nova too if its URL is given; Ironic lets
everybody in. The ports are PORT for Keystone and the next for Ironic. FOLDER is empty;
``clouds.yaml`` in it is for clients. READY is printed when both answer.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import client_configuration
from stand_ins import Keystone
from wsgi_serving import serve

_CONFIGURATION = """\
[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = lab
my_ip = 127.0.0.1
state_path = {folder}
log_file = {folder}/ironic.log
use_stderr = false
tempdir = {folder}
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
default_network_interface = noop
[api]
host_ip = 127.0.0.1
port = {port}
[conductor]
automated_clean = false
# Else the conductor may hold a node just when a test asks for it.
sync_power_state_interval = 0
[database]
connection = sqlite:///{folder}/ironic.sqlite?timeout=60
[oslo_concurrency]
lock_path = {folder}
[service_catalog]
auth_type = none
endpoint_override = {url}
"""


def main(folder, port, nova=None):
    """Start everything and serve until the process is ended."""
    folder, port = Path(folder), int(port)
    keystone, ironic = (f"http://127.0.0.1:{port + k}" for k in range(2))
    catalog = [
        ("identity", "keystone", f"{keystone}/v3"),
        ("baremetal", "ironic", ironic),
        *([("compute", "nova", nova)] if nova else []),
    ]
    serve(Keystone(keystone, catalog), port)
    path = folder / "ironic.conf"
    values = {"folder": folder, "port": port + 1, "url": ironic}
    path.write_text(_CONFIGURATION.format(**values), encoding="utf-8")
    start(path)
    client_configuration.write(folder, keystone)
    print("READY", flush=True)
    threading.Event().wait()


def start(path):
    """Start conductor and API, as Ironic's program for both does, but in this process."""
    # First, because it chooses threads; another import chooses eventlet for good.
    import ironic.command  # noqa: F401
    from ironic.common import service

    service.prepare_service("ironic", ["ironic", "--config-file", str(path)])
    from ironic.conductor import rpc_service
    from ironic.db import migration

    migration.create_schema()
    import lab_power  # noqa: F401 - gives Ironic the power of its nodes

    manager = "ironic.conductor.manager"
    rpc_service.RPCService("lab", manager, "ConductorManager", embed_api=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
